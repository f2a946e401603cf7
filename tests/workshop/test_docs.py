"""What pages say about the code is what the code says: generated parts are up to date, and versions agree with each other."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from spark_drain_store.options import OPTIONS, DrainOptions, Option

from devcluster import gobuild
from devcluster.versions import KUBERNETES
from tests.workshop.repository import ROOT
from tools import docs, sparks

CHART = ROOT / "charts" / "spark-drain"


@pytest.mark.parametrize("part", docs.PARTS)
def test_a_generated_part_is_what_the_code_says(part: str) -> None:
    page, make = docs.PARTS[part]
    text = (ROOT / page).read_text()
    assert text == docs.written(part, text, make()), "write it again: python -m tools.docs"


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="each once"):
        docs.written("options", "# Page\n", "text")


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.values], ids=lambda option: option.name)
def test_every_documented_default_is_a_value_and_the_one_that_holds(option: Option) -> None:
    assert option.default in option.values
    assert DrainOptions.parse("Drain", {option.name: option.default}) == DrainOptions()


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def said(pattern: str, pages: Iterable[str] = ("README.md",)) -> set[str]:
    """Return what the pattern finds in the pages, at least once in each."""
    found = {page: set(re.findall(pattern, (ROOT / page).read_text())) for page in pages}
    assert all(found.values()), found
    return set().union(*found.values())


def test_the_least_kubernetes_is_that_of_the_chart_and_the_tested_one_is_that_of_the_tests() -> None:
    least = minor(yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"].removeprefix(">="))
    assert said(r"Kubernetes (\d+\.\d+) or newer") == {least}
    assert said(r"Kubernetes \d+\.\d+ or newer[^.]*tested on (\d+\.\d+)") == {minor(KUBERNETES)}


@pytest.mark.parametrize(("version", "installed"), [("1.30.14", False), ("1.31.0", True), ("1.31.4-eks-1", True), (KUBERNETES, True)])
def test_the_chart_is_refused_by_a_cluster_that_is_too_old(version: str, installed: bool) -> None:
    """A definition's selectable fields are on by default from 1.31."""
    helm = str(gobuild.build(gobuild.HELM) / "helm")
    command = [helm, "template", "spark-drain", str(CHART), "--kube-version", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is installed, done.stderr
    assert installed or "kubeVersion: >=1.31" in done.stderr


def test_the_tested_versions_of_spark_are_those_of_the_tests() -> None:
    locked = re.search(r"pyspark==([\d.]+)", (ROOT / "pyproject.toml").read_text())
    assert locked
    tested = {"3.5", minor(locked[1]), *map(minor, sparks.RELEASES)}  # 3.5 only where Python is old enough for it
    for page in ("README.md", "docs/unmodified-application.md"):
        [versions] = said(r"[Tt]ested (?:with|on) Spark ((?:\d\.\d(?:, | and )?)+)", (page,))
        assert set(re.split(", | and ", versions)) == tested, page


def test_the_least_python_is_that_of_the_package() -> None:
    required = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert required
    assert said(r"Python (\d+\.\d+) or newer") == {required[1]}


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/*.yaml")), ids=lambda path: path.name)
def test_an_example_that_cannot_be_applied_says_so(path: Path) -> None:
    """`kubectl apply` refuses a name that the API server is to generate."""
    text = path.read_text()
    generated = any("generateName" in body["metadata"] for body in yaml.safe_load_all(text))
    assert (f"kubectl create -f {path.name}" in text) is generated
