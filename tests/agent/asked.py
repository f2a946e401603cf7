"""What a test asks of its JVM."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]  # py4j ships no types

__all__ = ["Asked"]


class Asked:
    """The commands that the thread of a test sends to a JVM, but those by which py4j lets go of an object."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[str] = []
        send, thread = GatewayClient.send_command, threading.get_ident()

        def noted(client: Any, command: str, *arguments: Any, **options: Any) -> Any:
            if threading.get_ident() == thread and not command.startswith("m\nd\n"):
                self.commands.append(command)
            return send(client, command, *arguments, **options)

        monkeypatch.setattr(GatewayClient, "send_command", noted)

    def count(self) -> int:
        """Return how many there were since the last call."""
        number = len(self.commands)
        self.commands.clear()
        return number
