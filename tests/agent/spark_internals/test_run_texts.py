"""What of a text belongs to one run is left out, but is not looked for in very large texts."""

from __future__ import annotations

import pytest
from spark_drain_agent.spark_internals import run_texts
from spark_drain_agent.spark_internals.run_texts import is_secret, without_addresses, without_fetch_ids, without_ids

UUID = "6f1c0000-1111-4222-8333-444455556666"


class NotAsked:
    """A pattern that must not be looked for: that takes a tenth of a second or more for each megabyte."""

    def sub(self, replacement: str, text: str) -> str:
        raise AssertionError("looked for")


def test_ids_are_left_out() -> None:
    assert without_ids(f"run {UUID}, {UUID.replace('-', '')} at 0x7f00") == "run ,  at "
    assert without_fetch_ids(f"/tmp/spark-{UUID}/a.py") == "/tmp/spark/a.py"
    assert without_addresses(f"<function at 0x7f00> of /tmp/spark-{UUID}/a.py, {UUID}") == f"<function at > of /tmp/spark/a.py, {UUID}"


def test_large_texts_count_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_texts, "_ID", NotAsked())
    monkeypatch.setattr(run_texts, "_FETCHED", NotAsked())
    large, other = "a\ud800" * 1_000_000, "b\ud800" * 1_000_000
    for without in (without_ids, without_fetch_ids, without_addresses):
        assert without(large) == without(large) != without(other)
        assert len(without(large)) < 100, "nor handed on"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("kafka.ssl.key.password", True),
        ("es.net.http.auth.pass", True),
        ("SHOP_PASS", True),
        ("keystorePass", True),
        ("sshPassphrase", True),
        ("fs.azure.account.key.shop.dfs.core.windows.net", True),
        ("spark.cosmos.accountKey", True),
        ("apiKey", True),
        ("pem_private_key", True),
        ("kafka.ssl.keystore.key", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("pulsar.client.authParams", True),
        ("gcpAccessToken", True),
        ("tokenizer", False),
        ("passes", False),
        ("compass", False),
        ("key", False),
        ("primaryKey", False),
        ("hoodie.datasource.write.recordkey.field", False),
        ("kafka.bootstrap.servers", False),
    ],
)
def test_names_of_credentials(name: str, secret: bool) -> None:
    """As connectors call them; which other one it is does not make another version."""
    assert is_secret(name) is secret
