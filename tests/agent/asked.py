"""What this process asks of its JVM."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]  # py4j ships no types

__all__ = ["Asked"]


class Asked:
    """The commands that are sent to a JVM, but those by which py4j lets go of an object."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[str] = []
        send = GatewayClient.send_command

        def noted(client: Any, command: str, *arguments: Any, **options: Any) -> Any:
            if not command.startswith("m\nd\n"):
                self.commands.append(command)
            return send(client, command, *arguments, **options)

        monkeypatch.setattr(GatewayClient, "send_command", noted)

    def count(self) -> int:
        """Return how many there were since the last call."""
        number = len(self.commands)
        self.commands.clear()
        return number
