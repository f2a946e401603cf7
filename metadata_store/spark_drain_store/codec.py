"""JSON of the messages: dataclass to camelCase object, and back with errors that name entry, field and value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["KEY", "MalformedMessageError", "Reader", "format_time", "parse_time", "render"]


KEY: Final = "key"
"""In a field's metadata: its name in JSON, where that is not its own in camelCase."""


class MalformedMessageError(ValueError):
    """A stored message cannot be read; the text says which entry and field, and what is there."""


def format_time(time: datetime) -> str:
    """Return RFC 3339 in UTC with milliseconds."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Read RFC 3339; raises ValueError for another form or a time without a zone."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return time.astimezone(UTC)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.metadata.get(KEY, _camel(field.name)): _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def render(message: object, version: int) -> str:
    """Return a dataclass as one JSON object with its format version first."""
    plain = _plain(message)
    assert isinstance(plain, dict)
    text = json.dumps({"version": version, **plain}, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()  # JSON's own escapes of what is no character, as in a file's name


class Reader:
    """Typed access to one JSON object.

    Parameters
    ----------
    what
        Names the entry in errors, such as ``drain report 'abc'``.
    fields
        The object.
    """

    def __init__(self, what: str, fields: Mapping[str, Any]) -> None:
        self._what = what
        self._fields = fields

    @classmethod
    def over(cls, what: str, text: str, version: int) -> Reader:
        """Parse a stored message of the given format version."""
        try:
            loaded = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(f"{what} is not JSON ({error}): {text[:80]!r}") from error
        if not isinstance(loaded, dict):
            raise MalformedMessageError(f"{what} must be a JSON object, not {text[:80]!r}")
        if loaded.get("version") != version:
            raise MalformedMessageError(
                f"{what} has version {loaded.get('version')!r}; this side reads version {version}: upgrade the older side"
            )
        return cls(what, loaded)

    def _bad(self, name: str, expected: str) -> MalformedMessageError:
        return MalformedMessageError(f"{self._what}: field {name!r} must be {expected}, not {self._fields.get(name)!r}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; required where ``default`` is None."""
        value = self._fields.get(name, default)
        if not isinstance(value, str):
            raise self._bad(name, "a string")
        return value

    def matching(self, name: str, key: str) -> str:
        """Return a string that must equal the entry's key."""
        value = self.text(name)
        if value != key:
            raise self._bad(name, f"the entry's key {key!r}")
        return value

    def choice(self, name: str, choices: Iterable[str]) -> str:
        """Return a string that must be one of the choices."""
        value = self.text(name)
        allowed = [str(choice) for choice in choices]
        if value not in allowed:
            raise self._bad(name, f"one of {', '.join(allowed)}")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a string, or None where absent or null."""
        return None if self._fields.get(name) is None else self.text(name)

    def integer(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self._fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._bad(name, "a whole number")
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return a whole number, or None where absent or null."""
        return None if self._fields.get(name) is None else self.integer(name, 0)

    def flag(self, name: str) -> bool:
        """Return a boolean, false where absent."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise self._bad(name, "true or false")
        return value

    def time(self, name: str) -> datetime:
        """Return a UTC time."""
        try:
            return parse_time(self.text(name))
        except (ValueError, OverflowError) as error:  # year 1 or 9999 leaves the calendar when it is taken to UTC
            raise self._bad(name, "an RFC 3339 time with zone") from error

    def optional_time(self, name: str) -> datetime | None:
        """Return a UTC time, or None where absent or null."""
        return None if self._fields.get(name) is None else self.time(name)

    def _mapping(self, name: str) -> Mapping[str, Any]:
        value = self._fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._bad(name, "an object")
        return value

    def text_map(self, name: str) -> dict[str, str]:
        """Return an object of strings, empty where absent."""
        value = self._mapping(name)
        if not all(isinstance(item, str) for item in value.values()):
            raise self._bad(name, "an object of strings")
        return dict(value)

    def number_map(self, name: str) -> dict[str, float]:
        """Return an object of numbers, empty where absent."""
        value = self._mapping(name)
        if not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value.values()):
            raise self._bad(name, "an object of numbers")
        try:
            return {key: float(item) for key, item in value.items()}
        except OverflowError as error:
            raise self._bad(name, "an object of numbers") from error

    def _list(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._bad(name, "a list")
        return value

    def text_list(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, empty where absent."""
        value = self._list(name)
        if not all(isinstance(item, str) for item in value):
            raise self._bad(name, "a list of strings")
        return tuple(value)

    def objects(self, name: str) -> list[Reader]:
        """Return a list of objects, empty where absent."""
        value = self._list(name)
        if not all(isinstance(item, dict) for item in value):
            raise self._bad(name, "a list of objects")
        return [Reader(f"{self._what}: {name}[{index}]", item) for index, item in enumerate(value)]
