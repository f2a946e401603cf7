"""Who this driver is: run, pod, versions."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Identity", "identify", "pod_from_token", "store_location"]

_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_APP_LABEL_CONF = "spark.kubernetes.driver.label.sparkoperator.k8s.io/app-name"


@dataclass(frozen=True)
class Identity:
    """This run of the application.

    Parameters
    ----------
    run_id
        ``spark.app.id``.
    pod_name, pod_uid
        The driver's pod; "" outside of Kubernetes.
    spark_version, agent_version
        For reports.
    """

    run_id: str
    pod_name: str
    pod_uid: str
    spark_version: str
    agent_version: str


def pod_from_token(token: str) -> tuple[str, str]:
    """Return name and uid of the pod that a bound service account token was issued to, or two empty strings.

    The kubelet binds the token to the pod, so the driver needs no right to read pods to know its own uid.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        pod = claims["kubernetes.io"]["pod"]
        return str(pod["name"]), str(pod["uid"])
    except (IndexError, KeyError, TypeError, ValueError):
        return "", ""


def identify(run_id: str, spark_version: str) -> Identity:
    """Return who this driver is."""
    name, uid = pod_from_token(_TOKEN.read_text()) if _TOKEN.is_file() else ("", "")
    try:
        agent_version = version("spark-drain")
    except PackageNotFoundError:
        agent_version = "unknown"
    return Identity(
        run_id=run_id,
        pod_name=os.environ.get("SPARK_DRAIN_POD_NAME", name),
        pod_uid=os.environ.get("SPARK_DRAIN_POD_UID", uid),
        spark_version=spark_version,
        agent_version=agent_version,
    )


def store_location(conf: Callable[[str], str | None], given: str | None) -> str | None:
    """Return the metadata store's location: given, from ``spark.sparkdrain.store``, or from what kubeflow's operator set; else None.

    Parameters
    ----------
    conf
        Returns an entry of the application's SparkConf.
    given
        The location that a person gave, or None.
    """
    named = given or conf("spark.sparkdrain.store")
    if named:
        return named
    application, namespace = conf(_APP_LABEL_CONF), conf("spark.kubernetes.namespace")
    return f"configmap:{namespace}/{application}" if application and namespace else None
