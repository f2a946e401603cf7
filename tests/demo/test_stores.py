import re
import sys
from typing import Any

import pytest
import yaml

from demo import cli, manifests
from demo.job import FlightsJob, Settings
from demo.kubectl import Kubectl
from demo.stores import S3, SHARED_FOLDER, Store
from devcluster.images import recipes
from devcluster.paths import GO_SOURCES, PACKAGE
from tests.workshop.repository import ROOT

SERVER = {item["kind"]: item for item in yaml.safe_load_all((PACKAGE / "manifests" / "s3.yaml").read_text())}


def application(store: Store, tmp_path: Any) -> dict[str, Any]:
    kubectl = Kubectl(tmp_path / "kubectl", {}, "space")
    return FlightsJob(kubectl, Settings(image=store.image, conf={}, store=store), tmp_path).manifest("v1")


def location(manifest: dict[str, Any]) -> str:
    """Return what the program takes: the last of an option that is given twice."""
    given = [word for word in manifest["spec"]["arguments"] if word.startswith("--checkpoint=")]
    return str(given[-1].partition("=")[2])


def flat(item: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(item, dict):
        return {path: item}
    return {key: value for name, each in item.items() for key, value in flat(each, f"{path}/{name}").items()}


def test_only_where_the_checkpoint_is_differs(tmp_path: Any) -> None:
    folder, s3 = flat(application(SHARED_FOLDER, tmp_path)), flat(application(S3, tmp_path))
    differing = {key for key in folder | s3 if folder.get(key) != s3.get(key)}
    assert {re.sub(r"/spark\.kubernetes\.(driver|executor)\.volumes.*|/spark\.hadoop\.fs\.s3a.*", "", key) for key in differing} == {
        "/spec/image",
        "/spec/arguments",
        "/spec/sparkConf",
        "/spec/driver/envFrom",
        "/spec/executor/envFrom",
    }
    assert (location(application(SHARED_FOLDER, tmp_path)), location(application(S3, tmp_path))) == (
        "file:///mnt/shared/space/checkpoint",
        "s3a://checkpoints/space/checkpoint",
    )
    assert "/mnt/shared" not in s3.values()


def test_a_removal_is_of_what_the_job_has_written() -> None:
    assert SHARED_FOLDER.removal("space") == ["rm", "-rf", "/mnt/shared/space"]
    assert S3.removal("space")[-5:] == ["-rm", "-r", "-f", "-skipTrash", "s3a://checkpoints/space"]
    assert "-Dfs.s3a.path.style.access=true" in S3.removal("space")


def test_application_and_server_agree() -> None:
    service = SERVER["Service"]
    address = f"http://{service['metadata']['name']}.{service['metadata']['namespace']}.svc:{service['spec']['ports'][0]['port']}"
    conf = S3.change["spec"]["sparkConf"]
    (secret,) = S3.objects
    (container,) = SERVER["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert conf["spark.hadoop.fs.s3a.endpoint"] == address
    assert list(secret["stringData"].values()) == list(SERVER["Secret"]["stringData"].values())
    assert S3.environment == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    assert container["volumeMounts"][0]["mountPath"].endswith(S3.root.replace("s3a://", "/"))
    assert (container["image"], S3.image) == (recipes.S3, recipes.EXAMPLE_S3)


def test_the_servers_image_is_named_by_its_version() -> None:
    (version,) = re.findall(r"github\.com/versity/versitygw v(\S+)", (GO_SOURCES / "s3" / "go.mod").read_text())
    assert recipes.S3.endswith(f":{version}")


def test_the_tools_reach_the_store() -> None:
    (container,) = manifests.tools("image:1", S3.environment)["spec"]["containers"]
    assert container["envFrom"] == list(S3.environment)
    assert manifests.tools("image:1", SHARED_FOLDER.environment)["spec"]["containers"][0]["envFrom"] == []


@pytest.mark.parametrize("text", ["gs", "S3", "s3,folder", ""])
def test_another_store_is_refused_with_the_choices(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", f"--store={text}"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert f"argument --store: {text!r} must be one of folder, s3" in capsys.readouterr().err


def test_the_page_on_object_stores_sets_what_the_example_sets() -> None:
    page = (ROOT / "docs" / "object-stores.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    spec = yaml.safe_load(block)["spec"]
    example = S3.change["spec"]
    assert list(spec["sparkConf"]) == [key for key, value in example["sparkConf"].items() if value is not None]
    for role in ("driver", "executor"):
        (written,), (used,) = spec[role]["envFrom"], example[role]["envFrom"]
        assert written.keys() == used.keys()
