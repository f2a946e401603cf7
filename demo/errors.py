"""What the user is told."""


class DemoError(Exception):
    """The demonstration cannot go on; the message says why and what to do."""
