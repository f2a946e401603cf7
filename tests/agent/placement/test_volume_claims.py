"""What a placement says of the claims of an executor, after what Spark's ExecutorPodsAllocator and MountVolumesFeatureStep do."""

from __future__ import annotations

import pytest
from spark_drain_agent.placement.volume_claims import claims_exhausted, claims_note

PREFIX = "spark.kubernetes.executor.volumes.persistentVolumeClaim."
DRIVER = "spark.kubernetes.driver."


def volume(name: str, claim: str = "OnDemand", **options: str) -> dict[str, str]:
    options = {"storageClass": "ssd", "sizeLimit": "10Gi"} | options
    return {f"{PREFIX}{name}.options.claimName": claim, f"{PREFIX}{name}.mount.path": "/local"} | {
        f"{PREFIX}{name}.options.{key}": value for key, value in options.items() if value
    }


POD = {f"{DRIVER}pod.name": "driver"}
LOCAL = volume("spark-local-dir-1")
KEPT = {f"{DRIVER}ownPersistentVolumeClaim": "true", f"{DRIVER}reusePersistentVolumeClaim": "false"}
OF_THE_EXECUTOR = {f"{DRIVER}ownPersistentVolumeClaim": "false"}
WAITING = {f"{DRIVER}waitToReusePersistentVolumeClaim": "true"}


@pytest.mark.parametrize(
    ("confs", "driver_pod", "told"),
    [
        ({}, True, []),
        ({"spark.kubernetes.executor.volumes.hostPath.spark-local-dir-1.mount.path": "/local"}, True, []),
        (volume("shared", "everybody"), True, []),
        (volume("spark-local-dir-1", storageClass=""), True, []),  # Spark makes no claim without class and size
        (LOCAL, True, ["(spark-local-dir-1)", "shuffled and cached blocks", "stay for executors that Spark makes later"]),
        (volume("spark-local-dir-1", "mine-SPARK_EXECUTOR_ID"), True, ["stay for executors"]),
        (LOCAL | volume("spark-local-dir-0"), True, ["(spark-local-dir-0, spark-local-dir-1)"]),
        (LOCAL | OF_THE_EXECUTOR, True, ["go with their pod"]),
        (LOCAL, False, ["go with their pod"]),  # nobody else could own them
        (LOCAL | KEPT, True, ["stay until the driver's pod goes", f"{DRIVER}reusePersistentVolumeClaim is false"]),
        (volume("data"), True, ["(data); the old claims stay"]),
    ],
)
def test_what_becomes_of_the_claims(confs: dict[str, str], driver_pod: bool, told: list[str]) -> None:
    note = claims_note(confs | (POD if driver_pod else {}))
    assert all(part in note for part in told), note
    assert bool(note) == bool(told)


@pytest.mark.parametrize(
    ("confs", "driver_pod", "executors", "refused"),
    [
        (LOCAL | WAITING, True, 2, True),
        (LOCAL | WAITING, True, 1, False),  # dynamic allocation may have more
        (LOCAL, True, 2, False),
        (WAITING, True, 2, False),
        (LOCAL | WAITING, False, 2, False),
        (LOCAL | WAITING | KEPT, True, 2, False),
        (LOCAL | WAITING | OF_THE_EXECUTOR, True, 2, False),
    ],
)
def test_spark_makes_no_executor_more(confs: dict[str, str], driver_pod: bool, executors: int, refused: bool) -> None:
    why = claims_exhausted(confs | (POD if driver_pod else {}), executors=executors, most=2)
    assert ("FORCE_RESTART_LAST_SEEN" in why) == refused == bool(why)
