"""``python -m tools.docs``: write the parts of the pages that are made from the code."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from spark_drain_store.options import MODES, OPTIONS

ROOT = Path(__file__).resolve().parent.parent


def options_table() -> str:
    """Return the table of a drain's options."""
    rows = [("option", "what it decides", "values", "default"), ("---",) * 4]
    about_modes = "[what is read and flushed](windows-and-state.md#how-far-a-drain-reads)"
    rows.append(("`mode` (`--mode`)", about_modes, _codes(MODES), f"`{MODES[0]}`"))
    for option in OPTIONS:
        literal = option.default in option.values or option.name.endswith(".format")
        default = f"`{option.default}`" if literal else option.default
        rows.append((f"`{option.name}`", option.description, _codes(option.values) or option.placeholder, default))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


PARTS: dict[str, tuple[str, Callable[[], str]]] = {"options": ("docs/file-store.md", options_table)}
"""What is written where: the name between the marks, the page, and what makes the text."""


def written(name: str, page: str, text: str) -> str:
    """Return a page with the text between the marks of a part replaced.

    Raises
    ------
    ValueError
        The page does not have both marks, once.
    """
    begin, end = f"<!-- begin {name}: written by python -m tools.docs -->", f"<!-- end {name} -->"
    if (page.count(begin), page.count(end)) != (1, 1):
        raise ValueError(f"the page must have {begin!r} and {end!r}, each once")
    return re.sub(f"({re.escape(begin)}\n).*?({re.escape(end)})", lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page, flags=re.DOTALL)


def main() -> int:
    """Write each part into its page."""
    for name, (page, make) in PARTS.items():
        path = ROOT / page
        path.write_text(written(name, path.read_text(), make()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
