"""Links between the pages of this repository lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.workshop.repository import ROOT, files, name

LINK = re.compile(r"!?\[([^\]]*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """Return the fragments that GitHub gives to the headings of a page."""
    found: dict[str, int] = {}
    result = set()
    for title in re.findall(r"^#{1,6} +(.+?) *$", prose(path), re.MULTILINE):
        fragment = slug(title)
        count = found.get(fragment, 0)
        result.add(f"{fragment}-{count}" if count else fragment)
        found[fragment] = count + 1
    return result


def slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).replace(" ", "-")


def broken(page: Path, text: str, target: str) -> str | None:
    if re.match(r"[a-z]+:", target):
        return None
    file, _, fragment = target.partition("#")
    other = (ROOT / file.lstrip("/") if file.startswith("/") else page.parent / file).resolve() if file else page
    if not other.exists():
        return f"{name(page)}: {target}: there is no such file"
    if fragment and other.suffix == ".md" and fragment not in anchors(other):
        return f"{name(page)}: {target}: there is no such heading; there are {', '.join(sorted(anchors(other)))}"
    missing = [word for word in re.findall(r"`([^`]+)`", text) if other.is_file() and not explained(word, other, fragment)]
    if missing:
        return f"{name(page)}: [{text}]({target}): that place does not have {', '.join(missing)}"
    return None


def explained(word: str, page: Path, fragment: str) -> bool:
    """Return whether a page, or the section that is linked, has a word in code: whoever follows a link on a name looks for that name."""
    text = page.read_text()
    if fragment and page.suffix == ".md":
        text = next((body for slug, body in sections(text) if slug == fragment), text)
    return word.removesuffix("()") in text or Path(word).name == page.name


def sections(text: str) -> list[tuple[str, str]]:
    """Return the fragment of each heading, and the text from there to the next heading of its rank or a higher one."""
    found = []
    headings = list(re.finditer(r"^(#{1,6}) +(.+?) *$", FENCE.sub(lambda m: " " * len(m[0]), text), re.MULTILINE))
    for number, heading in enumerate(headings):
        later = [other.start() for other in headings[number + 1 :] if len(other[1]) <= len(heading[1])]
        found.append((slug(heading[2]), text[heading.start() : later[0] if later else len(text)]))
    return found


def test_every_link_inside_the_repository_resolves() -> None:
    pages = files("*.md")
    assert pages
    assert not [problem for page in pages for text, target in LINK.findall(prose(page)) if (problem := broken(page, text, target))]


def test_every_page_of_docs_can_be_reached_from_its_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for _, target in LINK.findall(prose(index))}
    assert not [name(page) for page in files("docs/*.md") if page not in {index, *linked}]


@pytest.mark.parametrize(
    ("text", "target", "problem"),
    [
        ("there", "other.md", None),
        ("there", "other.md#how-it-is-said-x-y", None),
        ("here", "#top", None),
        ("there", "https://example.com/nothing", None),
        ("there", "missing.md", "no such file"),
        ("there", "other.md#nowhere", "no such heading"),
        ("here", "#nowhere", "no such heading"),
        ("`known()`", "other.md", None),
        ("`known()`", "other.md#deeper", None),
        ("`known()`", "other.md#how-it-is-said-x-y", None),
        ("`unknown()`", "other.md", "does not have unknown()"),
        ("`known()`", "other.md#last", "does not have known()"),
        ("`other.md`", "other.md", None),
    ],
)
def test_the_check_of_links_finds_broken_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, target: str, problem: str | None
) -> None:
    monkeypatch.setattr("tests.workshop.repository.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Top\n")
    other = "## How *it* is said: `x y`\n```\n# Nowhere\n```\n### Deeper\nHere is `known()`.\n## Last\n"
    (tmp_path / "other.md").write_text(other)
    found = broken(page, text, target)
    assert found is None if problem is None else problem in (found or "")
