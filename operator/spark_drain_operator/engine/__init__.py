"""What every kind of object needs, and nothing that only one of them knows: `kind.Kind` is what a kind tells about itself."""
