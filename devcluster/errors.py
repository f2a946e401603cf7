"""Errors that a person can act on."""


class DevclusterError(Exception):
    """Something went wrong; the message says what to do about it."""


class MissingPrerequisiteError(DevclusterError):
    """A program or a right that the machine does not have."""
