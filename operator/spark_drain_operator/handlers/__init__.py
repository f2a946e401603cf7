"""What the watches call: each handler keeps what was told, and says which drains are to be looked at."""
