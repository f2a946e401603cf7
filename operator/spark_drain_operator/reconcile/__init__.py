"""From what is observed to what is done: one step of a drain per module, in `sequence`."""
