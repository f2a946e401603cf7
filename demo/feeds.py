"""What goes on in the cluster, followed by threads."""

import contextlib
import itertools
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import batches
from demo.batches import Batch
from demo.errors import DemoError
from demo.kubectl import Kubectl

APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"
DRAINS = "pipelinedrains.sparkdrain.io"
_PERIOD_SECONDS = 2.0


@dataclass(frozen=True)
class Seen:
    """A batch, and the version of the job whose driver reported it."""

    version: str
    batch: Batch


class Feeds:
    """Follows topics, objects and driver logs of one namespace until closed.

    Parameters
    ----------
    kubectl : Kubectl
        Of that namespace.
    follow : list of str
        Command in the tools pod that prints end offsets by topic, a JSON object per line.
    logs : Path
        Folder for the logs of the drivers.
    """

    def __init__(self, kubectl: Kubectl, follow: list[str], logs: Path) -> None:
        self._kubectl = kubectl
        self._logs = logs
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._seen: list[Seen] = []
        self._followed: set[str] = set()
        self.objects: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.ends: Mapping[str, Mapping[str, int]] = {}
        self._threads = [
            threading.Thread(target=self._poll, daemon=True),
            threading.Thread(target=self._follow_topics, args=(follow,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End all of it."""
        self._closed.set()
        with self._lock:
            processes = list(self._processes)
            threads = list(self._threads)
        for process in processes:
            process.terminate()
        for thread in threads:
            thread.join(timeout=10)

    def seen(self, version: str) -> list[Batch]:
        """Return the batches that drivers of one version have reported so far."""
        with self._lock:
            return [item.batch for item in self._seen if item.version == version]

    def object(self, kind: str, name: str) -> Mapping[str, Any] | None:
        """Return an object as it was at the last look, or None."""
        return self.objects.get((kind, name))

    def pods(self, role: str) -> list[Mapping[str, Any]]:
        """Return Spark's pods of one role."""
        pods = [item for (kind, _), item in self.objects.items() if kind == "Pod"]
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get("spark-role") == role]

    @contextlib.contextmanager
    def _process(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = self._kubectl.start(*arguments)
        with self._lock:
            self._processes.add(process)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
            with self._lock:
                self._processes.discard(process)

    def _poll(self) -> None:
        while not self._closed.wait(_PERIOD_SECONDS):
            with contextlib.suppress(DemoError):  # an API server that is busy for a moment
                listed = self._kubectl.get(f"pods,{APPLICATIONS},{DRAINS},jobs")
                self.objects = {(item["kind"], item["metadata"]["name"]): item for item in listed["items"]}
                for driver in self.pods("driver"):
                    self._follow_driver(driver)

    def _follow_topics(self, command: list[str]) -> None:
        while not self._closed.is_set():
            with self._process("exec", "tools", "--", *command) as process:
                for line in process.stdout or ():
                    self.ends = json.loads(line)
            self._closed.wait(_PERIOD_SECONDS)

    def _follow_driver(self, pod: Mapping[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        states = [status["state"] for status in pod.get("status", {}).get("containerStatuses", [])]
        if uid in self._followed or not any("running" in state or "terminated" in state for state in states):
            return
        self._followed.add(uid)
        stem = self._logs / f"driver-{len(self._followed)}"
        thread = threading.Thread(target=self._read_driver, args=(pod["metadata"]["name"], uid, version_of(pod), stem), daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _read_driver(self, name: str, uid: str, version: str, stem: Path) -> None:
        for attempt in itertools.count(1):
            # From the beginning each time: a batch that is seen twice is still one batch.
            log = stem.with_name(f"{stem.name}.{attempt}.log")
            with log.open("w", buffering=1) as copy, self._process("logs", "--follow", name) as process:
                for batch in batches.read(_copied(process, copy.write)):
                    with self._lock:
                        self._seen.append(Seen(version, batch))
            current = self.object("Pod", name)
            ended = current is None or current["metadata"]["uid"] != uid or current["status"]["phase"] in ("Succeeded", "Failed")
            if ended or self._closed.wait(_PERIOD_SECONDS):
                return


def version_of(pod: Mapping[str, Any]) -> str:
    """Return ``v1`` or ``v2``: which program a driver pod runs."""
    words = [word for container in pod["spec"]["containers"] for word in container.get("args", [])]
    return next((Path(word).stem for word in words if word.startswith("/opt/examples/flights/")), "")


def _copied(process: "subprocess.Popen[str]", write: Any) -> Iterator[str]:
    for line in process.stdout or ():
        write(line)
        yield line.rstrip("\n")
