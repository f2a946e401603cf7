"""What `make` runs; not part of the distribution."""
