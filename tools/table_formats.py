"""Table formats that queries write to in tests: the jars of each, and the Spark that they are made for."""

from pathlib import Path

from devcluster.images import downloads
from tools import sparks

__all__ = ["RELEASES", "fetch", "jars"]

_NEWEST = {"delta": None, "delta-3.3": "3.5.9", "iceberg": "4.1.4", "hudi": "3.5.9"}
RELEASES = {name: release for name, release in _NEWEST.items() if release in (None, *sparks.RELEASES)}
"""The newest Spark that each format has jars for, as far as this Python knows it; None is the locked one."""


def jars(name: str) -> list[str]:
    """Return the jars of a format, fetched once per machine."""
    folder = downloads.resolved_jars(Path(__file__).parent / "tables" / name / "pom.xml")
    return [str(jar) for jar in sorted(folder.glob("*.jar"))]


def fetch() -> None:
    """Fetch what is missing of all of them."""
    for name in RELEASES:
        jars(name)
