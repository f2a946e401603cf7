"""What people copy out of the pages works: manifests fit the API, commands fit the programs."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from spark_drain_agent.cli import run_script
from spark_drain_store import cli

from devcluster import gobuild
from tests.workshop.repository import ROOT, files, name

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PAGES = files("*.md")
INLINE = re.compile(r"`([^`\n]+)`")


def blocks(*languages: str) -> list[tuple[str, str]]:
    return [(name(page), text) for page in PAGES for language, text in BLOCK.findall(page.read_text()) if language in languages]


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Return each command line that begins with a program and stands alone on a line of a block, split into words."""
    lines = [(page, line.strip()) for page, text in blocks("", "sh", "bash", "console") for line in text.splitlines()]
    return [(page, shlex.split(line, comments=True)) for page, line in lines if line.startswith(f"{program} ") and " [" not in line]


def definition(kind: str = "PipelineDrain") -> dict[str, Any]:
    crd = yaml.safe_load((ROOT / "crds" / f"{kind.lower()}.yaml").read_text())
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return closed(schema)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse fields that the schema does not name, as strict validation by the API server does."""
    if schema.get("properties"):
        schema["additionalProperties"] = False
        for each in schema["properties"].values():
            closed(each)
    if "items" in schema:
        closed(schema["items"])
    return schema


def test_every_manifest_in_the_pages_is_yaml_and_fits_the_definition() -> None:
    schemas = {kind: definition(kind) for kind in ("PipelineDrain", "ExecutorPlacement")}
    found = set()
    for page, text in blocks("yaml"):
        for document in yaml.safe_load_all(text):
            assert isinstance(document, dict), f"{page}: {text[:60]}"
            kind = document.get("kind")
            if kind in schemas:
                found.add(kind)
                jsonschema.validate(document, schemas[kind])
    assert found == schemas.keys()


@pytest.mark.parametrize("change", [{"checkpoint": {"policy": "reseed"}}, {"checkpointPolicy": "Reseed"}], ids=str)
def test_a_drain_that_does_not_fit_would_be_found(change: dict[str, Any]) -> None:
    reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "a"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": {"applicationRef": reference, **change}}, definition())


def test_every_command_of_the_store_in_the_pages_is_one() -> None:
    found = commands("python -m spark_drain_store")
    assert found
    for page, words in found:
        assert cli._parser().parse_args(words[3:]).topic in ("drain", "placement"), page


def test_every_command_of_the_agent_in_the_pages_is_one() -> None:
    found = commands("python -m spark_drain_agent")
    assert found
    for page, words in found:
        assert run_script._parser().parse_args(words[3:]).program, page


def test_every_make_target_in_the_pages_exists() -> None:
    declared = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    inline = [(name(page), code) for page in PAGES for code in INLINE.findall(BLOCK.sub("", page.read_text()))]
    lines = [(page, line.strip()) for page, text in blocks("", "sh", "bash", "console") for line in text.splitlines()]
    mentioned = [(page, found[1]) for page, code in inline + lines if (found := re.match(r"make ([a-z][a-z-]*)\b", code))]
    assert mentioned
    assert not [(page, target) for page, target in mentioned if target not in declared[1].split()]


def test_every_installation_by_helm_in_the_pages_renders(tmp_path: Path) -> None:
    """With the values that it names, or that the page shows after the name of their file."""
    helm = str(gobuild.build(gobuild.HELM) / "helm")
    found = commands("helm upgrade --install")
    assert found
    for page, words in found:
        if "-f" in words:
            values = words.index("-f") + 1
            shown = re.search(rf"`{re.escape(words[values])}`.*?```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
            assert shown, f"{page}: {words[values]}"
            (tmp_path / words[values]).write_text(shown[1])
            words[values] = str(tmp_path / words[values])
        done = subprocess.run([helm, "template", *words[3:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{page}: {done.stderr}"


def test_every_image_in_the_pages_is_built_from_what_is_there() -> None:
    """A Dockerfile and its context are of this repository, or the page shows the one and makes the other."""
    found = commands("docker build")
    assert found
    for page, words in found:
        text = (ROOT / page).read_text()
        file, context = words[words.index("-f") + 1], words[-1]
        assert (ROOT / file).is_file() or f"`{file}`" in text, f"{page}: {file}"
        assert (ROOT / context / "pyproject.toml").is_file() or f"--wheel-dir {context} " in text, f"{page}: {context}"


def test_every_folder_of_the_architecture_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = re.findall(r"^\| (`[^|]+?`) \|", page.partition("## The path")[0], re.MULTILINE)
    folders = [folder for cell in table for folder in INLINE.findall(cell)]
    assert folders
    assert not [folder for folder in folders if not Path(ROOT, folder).is_dir()]
