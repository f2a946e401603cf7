"""A node that is to be cleared: what has to be moved, by which placements and drains, and the command that asks for them."""
