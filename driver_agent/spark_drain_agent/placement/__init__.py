"""Replacing single executors while the application runs on (SEP-22); a sibling of ``drain`` that knows no checkpoint."""
