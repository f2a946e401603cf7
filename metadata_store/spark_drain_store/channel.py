"""The two stores of one application: requests, written by whoever drains, and reports, written by the agent."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from spark_drain_store.file import FileStore
from spark_drain_store.memory import MemoryStore
from spark_drain_store.protocol import MetadataStore, StoreError
from spark_drain_store.topics import DRAIN, TopicStore, is_of_a_topic

__all__ = ["Channel", "absolute_location", "config_map_names", "open_channel"]


@dataclass(frozen=True)
class Channel:
    """The messages of one application about one topic.

    Two stores, because each has one writer only: neither side can lose an update of the other.

    Parameters
    ----------
    requests
        Drain notifications by drain id, or placement requests; written by the operator or a command.
    reports
        Drain reports by drain id, or placement responses; written by the driver agent.
    """

    requests: TopicStore
    reports: TopicStore

    @classmethod
    def over(cls, requests: MetadataStore, reports: MetadataStore, *, topic: str = DRAIN) -> Channel:
        """Return one topic in two whole stores."""
        return cls(TopicStore(requests, topic), TopicStore(reports, topic))

    def about(self, topic: str) -> Channel:
        """Return another topic in the same stores."""
        return Channel.over(self.requests.whole, self.reports.whole, topic=topic)

    def close(self) -> None:
        """End the watches of both stores; their contents stay."""
        self.requests.close()
        self.reports.close()

    @classmethod
    def in_memory(cls) -> Channel:
        """Return a channel within this process."""
        return cls.over(MemoryStore(), MemoryStore())


def config_map_names(application: str, kind: str = "SparkApplication") -> tuple[str, str]:
    """Return the names of the two ConfigMaps of an application: requests, reports."""
    stem = f"{kind.lower()}-{application}-agent"
    return f"{stem}-requests", f"{stem}-reports"


def open_channel(location: str, topic: str = DRAIN) -> Channel:
    """Open one topic of the metadata store that a command line or a Spark conf names.

    Parameters
    ----------
    location
        ``file:DIR``, or ``configmap:NAMESPACE/APP`` with APP the name of a SparkApplication (``KIND:APP`` for another kind).
    topic
        See `spark_drain_store.topics`.

    Raises
    ------
    StoreError
        The location has another form, or the kubernetes package is missing.
    """
    scheme, _, rest = location.partition(":")
    if scheme == "file" and rest:
        folder = _folder(location, rest)
        return Channel.over(FileStore(folder / "requests", is_of_a_topic), FileStore(folder / "reports", is_of_a_topic), topic=topic)
    if scheme == "configmap":
        namespace, _, application = rest.partition("/")
        kind, _, name = application.rpartition(":")
        if namespace.strip(".") and name and "/" not in name:
            try:
                from spark_drain_store.configmap import open_config_maps

                requests, reports = open_config_maps(namespace, config_map_names(name, kind or "SparkApplication"))
            except ImportError as error:
                raise StoreError(
                    f"metadata store {location!r} needs the kubernetes package: in a clone of spark-drain run "
                    "python3 -m pip install '.[agent]'"
                ) from error
            return Channel.over(requests, reports, topic=topic)
    raise StoreError(f"metadata store {location!r} must be file:DIR or configmap:NAMESPACE/APPLICATION")


def absolute_location(location: str) -> str:
    """Return a location that stays where it is now when the process goes to another folder.

    Parameters
    ----------
    location
        As `open_channel` takes it.

    Raises
    ------
    StoreError
        It names its folder in a way that `open_channel` does not take.
    """
    scheme, _, path = location.partition(":")
    return f"file:{_folder(location, path)}" if scheme == "file" and path else location


def _folder(location: str, path: str) -> Path:
    if path.startswith("~"):
        raise StoreError(f"metadata store {location!r} must name its folder without '~', which only a shell replaces: file:/home/...")
    host = path.removeprefix("//")
    if host != path and not host.startswith("/"):
        raise StoreError(f"metadata store {location!r} must be a folder of this machine: file:/{host.partition('/')[2]}")
    folder = Path(path).absolute()  # the application may go to another folder
    if (file := next((place for place in (folder, *folder.parents) if _is_file(place)), None)) is not None:
        raise StoreError(f"metadata store {location!r} must be a folder, and {file} is a file")
    return folder


def _is_file(place: Path) -> bool:
    try:
        return not stat.S_ISDIR(place.stat().st_mode)
    except (OSError, ValueError):  # such as what is not there, or below a folder that may not be read
        return False
