"""Throw-away Kubernetes clusters for development and tests, never for production.

Not part of the distribution: nothing here is in the wheel.
"""
