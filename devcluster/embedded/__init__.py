"""A whole cluster in namespaces of its own, without any container engine."""
