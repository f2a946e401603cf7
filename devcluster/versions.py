"""Versions that are not pinned by a ``go.mod``."""

KUBERNETES = "1.36.3"
