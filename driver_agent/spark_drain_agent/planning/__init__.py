"""What a drain would do, decided before anything is touched."""
