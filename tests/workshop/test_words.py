"""Words that must not be in the repository: whoever clones it has another machine, and nothing is left half done."""

import re

import pytest

from tests.workshop.repository import files, name

# The stroke is taken out below: without it this file would not pass its own test.
FORBIDDEN = {
    "package index": ("py|pi.org", "python|hosted.org", "repo1.|maven", "repo.|maven.apache", "maven-|central", "search.|maven"),
    "module proxy": ("proxy.|golang", "sum.|golang", "go|proxy=", "registry.|npmjs", "crates|.io"),
    "path of one machine": ("/wo|rk/", "/tmp/|brief", "/ro|ot/."),
    "unfinished": ("TO|DO", "FIX|ME", "X|XX", "Not|ImplementedError"),
    "how it came about": ("DESIGN sec|tion", "DESIGN|.md", "the la|b ", "this is|sue", "is|sue #"),
    "test that does not test": ("pytest.|skip", "mark.|skip", "x|fail", "importor|skip", "skip|Test"),
}
# Neither a Docker engine nor root can be had from here: these say so, and each machine runs one of them.
MAY_SKIP = {"tests/kind/conftest.py", "tests/devcluster/test_embedded.py"}
CASELESS = {"package index", "module proxy"}
BINARY = {".png", ".jar", ".gz", ".zst", ".parquet"}
# Generated: hashes and module paths.
GENERATED = ("go.sum", "go.mod", ".lock")


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_has_forbidden_words(kind: str) -> None:
    words = "|".join(re.escape(word.replace("|", "")) for word in FORBIDDEN[kind])
    pattern = re.compile(
        rf"(?<![\w.$}}])(?:{words})(?!\w)" if kind == "unfinished" else rf"(?<![\w.$}}])(?:{words})",
        re.IGNORECASE if kind in CASELESS else 0,
    )
    found = [
        f"{name(path)}:{number}: {line.strip()[:100]}"
        for path in files()
        if not (kind.startswith("test that") and name(path) in MAY_SKIP) and path.suffix not in BINARY and not path.name.endswith(GENERATED)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"{kind}: {found}"


def test_no_lock_names_where_packages_come_from() -> None:
    for path in files("*.lock"):
        assert "://" not in path.read_text(), name(path)
