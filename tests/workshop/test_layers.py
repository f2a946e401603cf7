"""Who may import what, and who may touch Spark's private parts: what import-linter cannot see."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workshop.repository import ROOT, files, name

STORE = "metadata_store/spark_drain_store/"
AGENT = "driver_agent/spark_drain_agent/"
OPERATOR = "operator/spark_drain_operator/"
# Needs an API server, so it may need the client too; everything else of the store runs on a bare Python.
KUBERNETES = (f"{STORE}kube_client.py", f"{STORE}configmap.py", f"{OPERATOR}storage/")
SPARK_INTERNALS = f"{AGENT}spark_internals"
# Names through which Python reaches the JVM's objects behind pyspark's public ones.
PRIVATE_SPARK = ("_j", "_gateway", "_sc", "_activeSession", "_instantiatedSession", "_active_spark_context", "_ssql_ctx")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def private_spark(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        found: object = None
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            found = None if own else node.attr
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr", "hasattr", "delattr"}
        ):
            found = next((each.value for each in node.args[1:2] if isinstance(each, ast.Constant)), None)
        if isinstance(found, str) and found.startswith(PRIVATE_SPARK) and not found.startswith("__"):
            yield getattr(node, "lineno", 0), found


def parsed(prefix: str) -> list[tuple[str, ast.AST]]:
    found: list[tuple[str, ast.AST]] = [(name(path), ast.parse(path.read_text())) for path in files(f"{prefix}**.py")]
    assert found, f"nothing below {prefix}"
    return found


def test_the_store_needs_nothing_but_python() -> None:
    foreign = {
        f"{file} imports {module}"
        for file, tree in parsed(STORE)
        for module in imported(tree)
        if module.split(".")[0] not in sys.stdlib_module_names | {"spark_drain_store"}
        and not (file.startswith(KUBERNETES) and module.split(".")[0] in {"kubernetes", "urllib3"})  # one comes with the other
    }
    assert not foreign


def test_only_the_storage_layer_talks_to_kubernetes() -> None:
    astray = {
        f"{file} imports {module}"
        for prefix in (STORE, AGENT, OPERATOR)
        for file, tree in parsed(prefix)
        for module in imported(tree)
        if module.split(".")[0] == "kubernetes" and not file.startswith(KUBERNETES)
    }
    assert not astray


def test_kopf_is_known_to_handlers_only() -> None:
    astray = {
        f"{file} imports {module}"
        for prefix in (STORE, AGENT, OPERATOR)
        for file, tree in parsed(prefix)
        for module in imported(tree)
        if module.split(".")[0] == "kopf" and not file.startswith(f"{OPERATOR}handlers/")
    }
    assert not astray


def test_operator_and_agent_do_not_know_each_other() -> None:
    astray = {
        f"{file} imports {module}"
        for prefix, other in ((AGENT, "spark_drain_operator"), (OPERATOR, "spark_drain_agent"), (OPERATOR, "pyspark"))
        for file, tree in parsed(prefix)
        for module in imported(tree)
        if module.split(".")[0] == other
    }
    assert not astray


def test_private_spark_is_touched_in_one_place() -> None:
    astray = [
        f"{file}:{line} uses {attribute}"
        for file, tree in parsed(AGENT)
        if not file.startswith(SPARK_INTERNALS)
        for line, attribute in private_spark(tree)
    ]
    assert not astray


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("spark._jvm.java", ["_jvm"]),
        ("frame._jdf", ["_jdf"]),
        ("spark.sparkContext._gateway.close()", ["_gateway"]),
        ("getattr(query, '_jsq')", ["_jsq"]),
        ("self._jobs", []),
        ("spark.sparkContext", []),
        ("query.__json__", []),
    ],
)
def test_the_search_for_private_spark_finds_it(source: str, found: list[str]) -> None:
    assert [attribute for _, attribute in private_spark(ast.parse(source))] == found


def test_the_operator_folder_does_not_hide_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_the_wheel_has_the_three_packages_and_their_types() -> None:
    for prefix in (STORE, AGENT, OPERATOR):
        assert Path(ROOT, prefix, "__init__.py").is_file()
        assert Path(ROOT, prefix, "py.typed").is_file()
