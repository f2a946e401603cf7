"""A query's checkpoint: its logs and files, and every change that a drain makes to them."""
