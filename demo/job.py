"""The flights job in one namespace: topics, producer, both versions, drains and output."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_drain_store.channel import config_map_names

from demo import feeds, ledger, manifests
from demo.batches import Batch, Offsets
from demo.errors import DemoError
from demo.feeds import Feeds
from demo.kubectl import Kubectl
from demo.ledger import Output
from demo.stores import SHARED_FOLDER, Store

BOOTSTRAP = "kafka.kafka.svc:9092"
APPLICATION = "flights"
PARTITIONS = 4
EXECUTORS = 2
_ADMISSION_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What may differ from run to run.

    Parameters
    ----------
    image : str
        Reference of the pipeline image.
    prefix : str
        In front of the names of the topics.
    count : int or None
        Only the first flights of the year.
    per_second : int
        Pace of the producer, in flights per second.
    max_offsets : int
        Most records per batch.
    idempotent : bool
        With the sink whose rows a repeated batch replaces.
    conf : mapping of str to str
        Spark settings to add.
    store : Store
        Where the checkpoint is.
    """

    image: str
    conf: Mapping[str, str]
    prefix: str = ""
    count: int | None = None
    per_second: int = 1800
    max_offsets: int = 8000
    idempotent: bool = False
    store: Store = SHARED_FOLDER


class FlightsJob:
    """Commands for the job; nothing is remembered here that the cluster does not know.

    Parameters
    ----------
    kubectl : Kubectl
        Of the namespace, which is the job's own.
    settings : Settings
        See there.
    logs : Path
        Folder for the logs of the drivers; emptied.
    """

    def __init__(self, kubectl: Kubectl, settings: Settings, logs: Path) -> None:
        self.kubectl = kubectl
        self.settings = settings
        self.logs = logs
        self.input = f"{settings.prefix}flights"
        self.output = f"{settings.prefix}flight-counts"
        self.checkpoint = settings.store.checkpoint(kubectl.namespace)

    def clear(self) -> None:
        """Remove everything that an earlier run left."""
        # The namespace itself stays: rights in it belong to the Spark operator's release.
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.kubectl.namespace}})
        for kinds in (feeds.DRAINS, feeds.APPLICATIONS, "jobs,pods,events"):
            self.kubectl.run("delete", kinds, "--all", "--ignore-not-found", "--timeout=180s")
        self.kubectl.run("delete", "configmaps", *config_map_names(APPLICATION), "--ignore-not-found")
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)

    def prepare(self) -> None:
        """Make rights, tools, topics and an empty place for the checkpoint."""
        store = self.settings.store
        self._await_service_account()
        self.kubectl.apply(*manifests.load("rights"), *store.objects, manifests.tools(self.settings.image, store.environment))
        self.kubectl.run("wait", "pod/tools", "--for=condition=Ready", "--timeout=180s")
        self.kubectl.run("exec", "tools", "--", *store.removal(self.kubectl.namespace))
        compact = [f"--compact={self.output}"] if self.settings.idempotent else []
        self._topics("recreate", f"--partitions={PARTITIONS}", *compact, self.input, self.output)

    def follow(self) -> Feeds:
        """Start to follow what goes on."""
        return Feeds(self.kubectl, self._topics_command("follow", self.input), self.logs)

    def start_producer(self) -> None:
        """Begin to write flights."""
        settings = self.settings
        limit = [] if settings.count is None else [f"--count={settings.count}"]
        arguments = [f"--bootstrap={BOOTSTRAP}", f"--topic={self.input}", f"--per-second={settings.per_second}", *limit]
        self.kubectl.apply(manifests.producer(settings.image, arguments))

    def start(self, version: str, *, idle: int = 0, max_offsets: int | None = None) -> None:
        """Apply one version of the application: the manifest says that it is not suspended.

        Parameters
        ----------
        version : str
            ``v1`` or ``v2``.
        idle : int
            Executors that find no place: see `manifests.application`.
        max_offsets : int or None
            Most records per batch, where they are others than the settings'.
        """
        manifest = self.manifest(version, idle=idle, max_offsets=max_offsets)
        deadline = time.monotonic() + _ADMISSION_SECONDS
        while True:
            try:
                self.kubectl.apply(manifest)
                return
            except DemoError as error:
                # A webhook's Service may take a second longer than its pod until the nodes know the way to it.
                if "webhook" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def manifest(self, version: str, *, idle: int = 0, max_offsets: int | None = None) -> dict[str, Any]:
        """Return what `start` applies."""
        settings = self.settings
        arguments = [
            f"--bootstrap={BOOTSTRAP}",
            f"--input={self.input}",
            f"--output={self.output}",
            f"--checkpoint={self.checkpoint}",
            f"--max-offsets={max_offsets or settings.max_offsets}",
            *(["--idempotent"] if settings.idempotent else []),
        ]
        return manifests.application(version, settings.image, arguments, settings.conf, idle=idle, change=settings.store.change)

    def drain(self, version: str) -> Path:
        """Apply the PipelineDrain of one version, as it is in the example, and return its file."""
        path = manifests.FOLDER / f"drain-{version}.yaml"
        self.kubectl.run("apply", f"--filename={path}")
        return path

    def produced(self, feed: Feeds) -> Offsets:
        """Return the end of the input topic, by partition."""
        return feed.ends.get(self.input, {})

    def production_over(self, feed: Feeds) -> bool:
        """Say whether all flights are written.

        Raises
        ------
        DemoError
            If the producer has failed: what is in the topic then is no base for a count.
        """
        job = feed.object("Job", "producer") or {}
        if job.get("status", {}).get("failed"):
            raise DemoError(f"the producer failed: kubectl logs -n {self.kubectl.namespace} job/producer")
        return bool(job.get("status", {}).get("succeeded"))

    def drain_report(self, version: str) -> dict[str, Any]:
        """Return the agent's last report of a drain, from the ConfigMap that outlives the application."""
        return self._result(version, "report.json")

    def _result(self, version: str, name: str) -> dict[str, Any]:
        status = self.kubectl.get(feeds.DRAINS, f"flights-{version}")["status"]
        found: dict[str, Any] = json.loads(self.kubectl.get("configmap", status["resultRef"]["name"])["data"][name])
        return found

    def end_offsets(self, version: str) -> Offsets:
        """Return where a version ended: the next offset to read, by partition, as its drain's result says."""
        (sources,) = self._result(version, "end-offsets.json").values()
        (offsets,) = sources.values()
        (partitions,) = json.loads(offsets).values()
        return dict(sorted(partitions.items(), key=lambda item: int(item[0])))

    def outputs(self) -> tuple[Output, ...]:
        """Read what the job wrote, every record that is in the topic."""
        dump = self._topics("dump", self.output)
        (self.logs / "output.jsonl").write_text(dump)
        return ledger.outputs(dump.splitlines(), last_per_key=self.settings.idempotent)

    def _topics(self, *arguments: str) -> str:
        return self.kubectl.run("exec", "tools", "--", *self._topics_command(*arguments))

    def _topics_command(self, *arguments: str) -> list[str]:
        return ["python3", "/opt/examples/flights/topics.py", f"--bootstrap={BOOTSTRAP}", *arguments]

    def _await_service_account(self) -> None:
        # Pods are refused until the controller manager has made it.
        deadline = time.monotonic() + _ADMISSION_SECONDS
        while "default" not in self.kubectl.run("get", "serviceaccounts", "--output=name"):
            if time.monotonic() > deadline:
                raise DemoError(f"namespace {self.kubectl.namespace} has no ServiceAccount after {_ADMISSION_SECONDS:.0f} s")
            time.sleep(0.2)


def reached(seen: list[Batch]) -> Offsets:
    """Return how far batches have read: the highest next offset by partition."""
    ends: dict[str, int] = {}
    for batch in seen:
        for partition, offset in batch.end.items():
            ends[partition] = max(offset, ends.get(partition, 0))
    return dict(sorted(ends.items(), key=lambda item: int(item[0])))


def began(seen: list[Batch]) -> Offsets:
    """Return where batches began to read: the lowest first offset by partition."""
    starts: dict[str, int] = {}
    for batch in seen:
        for partition, offset in batch.start.items():
            starts[partition] = min(offset, starts.get(partition, offset))
    return dict(sorted(starts.items(), key=lambda item: int(item[0])))
