"""What kopf calls: each handler only says which drains are to be looked at."""
