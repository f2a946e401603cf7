"""The three metadata stores, one after the other."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from spark_drain_store import MetadataStore
from spark_drain_store.configmap import ConfigMapStore
from spark_drain_store.file import FileStore
from spark_drain_store.memory import MemoryStore

from tests.support.apiserver import ApiServer

Opener = Callable[[], MetadataStore]


@pytest.fixture(params=["memory", "file", pytest.param("configmap", marks=pytest.mark.apiserver)])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Open the same store once more, as another process would."""
    if request.param == "memory":
        shared = MemoryStore()
        yield lambda: shared
    elif request.param == "file":
        yield lambda: FileStore(tmp_path / "store")
    else:
        server: ApiServer = request.getfixturevalue("api_server")
        name = f"store-{uuid.uuid4().hex[:8]}"
        yield lambda: ConfigMapStore(server.client, "default", name)
        server.client.request("DELETE", "/api/v1/namespaces/default/configmaps", query={"fieldSelector": f"metadata.name={name}"})
