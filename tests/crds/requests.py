"""Objects created and changed in the default namespace, mostly only to see what the API server says."""

from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH

from tests.support.apiserver import ApiServer


def create_in(collection: str, server: ApiServer, body: dict[str, Any], *, dry_run: bool = True) -> dict[str, Any]:
    query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
    return server.client.request("POST", collection.format("default"), query=query, body=body)


def change_in(collection: str, server: ApiServer, name: str, spec: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    query = {"dryRun": "All"} if dry_run else {}
    path = f"{collection.format('default')}/{name}"
    return server.client.request("PATCH", path, query=query, body={"spec": spec}, content_type=MERGE_PATCH)
