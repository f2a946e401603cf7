"""What is done to a query and its checkpoint, one file per step, in the order freeze, fence, flush, seed.

Every step after the freeze can be repeated: after a crash the next run calls `complete` and the steps do what is still missing.
"""
