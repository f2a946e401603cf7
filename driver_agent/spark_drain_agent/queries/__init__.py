"""What is done to a running query: stop reading, catch up, flush in place."""
