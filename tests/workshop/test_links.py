"""Links between the pages of this repository lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.workshop.repository import ROOT, files, name

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """Return the fragments that GitHub gives to the headings of a page."""
    found: dict[str, int] = {}
    result = set()
    for title in re.findall(r"^#{1,6} +(.+?) *$", prose(path), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).replace(" ", "-")
        count = found.get(slug, 0)
        result.add(f"{slug}-{count}" if count else slug)
        found[slug] = count + 1
    return result


def broken(page: Path, target: str) -> str | None:
    if re.match(r"[a-z]+:", target):
        return None
    file, _, fragment = target.partition("#")
    other = (ROOT / file.lstrip("/") if file.startswith("/") else page.parent / file).resolve() if file else page
    if not other.exists():
        return f"{name(page)}: {target}: there is no such file"
    if fragment and other.suffix == ".md" and fragment not in anchors(other):
        return f"{name(page)}: {target}: there is no such heading; there are {', '.join(sorted(anchors(other)))}"
    return None


def test_every_link_inside_the_repository_resolves() -> None:
    pages = files("*.md")
    assert pages
    assert not [problem for page in pages for target in LINK.findall(prose(page)) if (problem := broken(page, target))]


def test_every_page_of_docs_can_be_reached_from_its_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in LINK.findall(prose(index))}
    assert not [name(page) for page in files("docs/*.md") if page not in {index, *linked}]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("other.md", None),
        ("other.md#how-it-is-said-x-y", None),
        ("#top", None),
        ("https://example.com/nothing", None),
        ("missing.md", "no such file"),
        ("other.md#nowhere", "no such heading"),
        ("#nowhere", "no such heading"),
    ],
)
def test_the_check_of_links_finds_broken_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, problem: str | None) -> None:
    monkeypatch.setattr("tests.workshop.repository.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Top\n")
    (tmp_path / "other.md").write_text("## How *it* is said: `x.y`\n".replace("x.y", "x y") + "```\n# Nowhere\n```\n")
    said = broken(page, target)
    assert said is None if problem is None else problem in (said or "")
