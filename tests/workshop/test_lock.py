"""The locks are in step with pyproject.toml and with what is installed; no index is asked."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.workshop.repository import ROOT, files, name
from tools.lock import LOCKS

LOCK = ROOT / "requirements.lock"
ENTRY = re.compile(r"^(?P<requirement>[A-Za-z0-9][^\\\n]*?) *\\\n(?P<hashes>(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def entries(lock: Path) -> list[Requirement]:
    return [Requirement(match["requirement"]) for match in ENTRY.finditer(lock.read_text())]


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    return [Requirement(text) for group in groups for text in group] + [Requirement(text) for text in project["project"]["dependencies"]]


def pinned(requirement: Requirement) -> Version:
    [specifier] = requirement.specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


def test_every_declared_dependency_is_locked_at_a_version_it_allows() -> None:
    locked = {canonicalize_name(each.name): pinned(each) for each in entries(LOCK)}
    wrong = [
        f"{each}: locked is {locked.get(canonicalize_name(each.name), 'nothing')}; run `make lock`"
        for each in declared()
        if not (version := locked.get(canonicalize_name(each.name))) or not each.specifier.contains(version, prereleases=True)
    ]
    assert not wrong


def test_images_get_the_versions_that_the_tests_run_with() -> None:
    tested = {canonicalize_name(each.name): pinned(each) for each in entries(LOCK)}
    others = [lock for lock in LOCKS if lock != name(LOCK)]
    assert others
    for lock in others:
        shipped = {canonicalize_name(each.name): pinned(each) for each in entries(ROOT / lock)}
        assert {package: version for package, version in shipped.items() if tested.get(package) != version} == {}, (
            f"{lock}: run `make lock`"
        )


@pytest.mark.parametrize(("lock", "extra"), [("operator/requirements.lock", "operator"), ("examples/requirements.lock", "agent")])
def test_an_image_has_what_its_extra_needs(lock: str, extra: str) -> None:
    locked = {canonicalize_name(each.name) for each in entries(ROOT / lock)}
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    assert {canonicalize_name(Requirement(text).name) for text in needed} <= locked


def test_nothing_is_locked_that_no_dependency_wants() -> None:
    wanted: set[str] = set()
    queue = [canonicalize_name(each.name) for each in declared()]
    while queue:
        if (package := queue.pop()) in wanted:
            continue
        wanted.add(package)
        try:
            requires = metadata.requires(package) or []
        except metadata.PackageNotFoundError:
            continue  # wanted on another platform only
        queue += [canonicalize_name(Requirement(text).name) for text in requires]
    assert not {canonicalize_name(each.name) for each in entries(LOCK)} - wanted


def test_what_is_installed_is_what_is_locked() -> None:
    wrong = []
    for each in entries(LOCK):
        if each.marker is None or each.marker.evaluate():
            try:
                found = metadata.version(each.name)
            except metadata.PackageNotFoundError:
                found = "nothing"
            if found != str(pinned(each)):
                wrong.append(f"{each.name}: locked {pinned(each)}, installed {found}; run `make setup`")
    assert not wrong


@pytest.mark.parametrize("lock", [name(path) for path in files("*.lock")])
def test_every_line_of_a_lock_is_a_pinned_package_with_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    rest = [line for line in ENTRY.sub("", text).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert not rest
    assert entries(ROOT / lock)
    assert all(pinned(each) for each in entries(ROOT / lock))


@pytest.mark.parametrize(
    "dependency", [each for each in (ROOT / "pyproject.toml").read_text().splitlines() if re.match(r'    "[A-Za-z]+[-\w]*[=<>!]', each)]
)
def test_every_dependency_says_why_it_is_there(dependency: str) -> None:
    assert re.search(r'",  # \S+', dependency)
