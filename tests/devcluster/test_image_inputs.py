"""What image builds are given."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.images import downloads
from devcluster.images.names import full_name, registry_path
from devcluster.images.recipes import RECIPES
from devcluster.paths import REPOSITORY

LOCKS = ("operator/requirements.lock", "examples/requirements.lock", "requirements.lock")


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", (REPOSITORY / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS[:2])
def test_images_have_the_versions_that_tests_ran_with(lock: str) -> None:
    tested = pins("requirements.lock")
    assert pins(lock)
    assert {name: version for name, version in pins(lock).items() if tested.get(name) != version} == {}


def test_the_operators_image_has_no_spark_and_the_examples_no_kopf() -> None:
    assert not {"pyspark", "py4j"} & set(pins("operator/requirements.lock"))
    assert "kopf" not in pins("examples/requirements.lock")


def test_every_line_of_a_lock_is_downloaded() -> None:
    lock = REPOSITORY / "examples" / "requirements.lock"
    blocks = downloads._blocks(lock)
    assert "".join(text for _, text in blocks) == lock.read_text()
    assert [name for name, _ in blocks] == list(pins("examples/requirements.lock"))


@pytest.mark.parametrize("name", RECIPES)
def test_every_dockerfile_has_the_stages_that_are_replaced(name: str) -> None:
    recipe = RECIPES[name]
    text = recipe.dockerfile.read_text()
    assert re.search(r"^ARG BASE_IMAGE=\S+$", text, re.MULTILINE)
    stages = set(re.findall(r"^FROM scratch AS (\S+)$", text, re.MULTILINE))
    assert stages == set(recipe.contexts)
    assert recipe.context.is_dir()
    assert not recipe.target or f" AS {recipe.target}\n" in text
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1].split(":")[0] not in {"0", "root"}


def test_java_is_installed_after_its_folder_for_manual_pages() -> None:
    """Debian's package of Java fails without it, and slim images lack it."""
    text = (REPOSITORY / "examples" / "Dockerfile").read_text()
    assert re.search(r"mkdir -p /usr/share/man/man1.*apt-get install [^\n]*openjdk", text, re.DOTALL)


@pytest.mark.parametrize(
    ("name", "path", "full"),
    [
        ("a:1.2", "library/a:1.2", "docker.io/library/a:1.2"),
        ("b/c:1", "b/c:1", "docker.io/b/c:1"),
        ("registry.example/b/c:1", "b/c:1", "registry.example/b/c:1"),
    ],
)
def test_names_as_registries_and_kubelets_have_them(name: str, path: str, full: str) -> None:
    assert (registry_path(name), full_name(name)) == (path, full)


_DRIVER = {
    "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1",
    "SPARK_HOME": "HOME",
}
_EXECUTOR = {
    "SPARK_JAVA_OPT_0": "-Dfirst=with blank",
    "SPARK_JAVA_OPT_1": "-Dsecond=2",
    "SPARK_JAVA_OPT_10": "-Dnot-reached=1",
    "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_DRIVER_URL": "spark://d:7078",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "p-exec-7",
    "SPARK_HOME": "/opt/spark",
}


def entrypoint(folder: Path, environment: dict[str, str], *arguments: str) -> list[str]:
    """Run the entry point with programs that print their arguments, one per line."""
    for program in ("java", "bin/spark-submit"):
        path = folder / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\nimport sys\nprint('\\n'.join(sys.argv))\n")
        path.chmod(0o755)
    settings = {"PATH": f"{folder}:/usr/bin:/bin"} | environment | ({"SPARK_HOME": str(folder)} if environment is _DRIVER else {})
    script = REPOSITORY / "examples" / "entrypoint.sh"
    return subprocess.run(["bash", script, *arguments], check=True, env=settings, capture_output=True, text=True).stdout.splitlines()


def test_a_driver_submits_in_client_mode_at_its_pods_address(tmp_path: Path) -> None:
    words = entrypoint(tmp_path, _DRIVER, "driver", "--properties-file", "/a b", "app.py")
    assert words[1:3] == ["--deploy-mode", "client"]
    assert "spark.driver.bindAddress=10.0.0.1" in words
    assert words[-3:] == ["--properties-file", "/a b", "app.py"]


def test_an_executor_gets_its_options_in_order_and_unbroken(tmp_path: Path) -> None:
    words = entrypoint(tmp_path, _EXECUTOR, "executor")
    assert words[1:5] == ["-Dfirst=with blank", "-Dsecond=2", "-Xms600m", "-Xmx600m"]
    assert "-Dnot-reached=1" not in words
    assert words[-2:] == ["--podName", "p-exec-7"]


def test_anything_else_is_run_as_it_is(tmp_path: Path) -> None:
    assert entrypoint(tmp_path, _EXECUTOR, "echo", "a  b") == ["a  b"]
