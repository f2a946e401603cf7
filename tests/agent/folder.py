"""A checkpoint's files without Spark: the names and texts that the agent's pure parts read and write."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import cast

from spark_drain_agent.checkpoint.files import CheckpointFiles, nothing


class Folder:
    """The operations of `CheckpointFiles` on a local folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = str(path)
        self.check_before_change = nothing

    def elsewhere(self, root: str) -> CheckpointFiles:
        return files_in(Path(root.removeprefix("file:")))

    def uri(self, name: str) -> str:
        return f"file:{self.path / name}"

    def exists(self, name: str) -> bool:
        return (self.path / name).exists()

    def names(self, folder: str) -> list[str]:
        return sorted(item.name for item in (self.path / folder).glob("[!.]*"))

    def below(self, folder: str) -> list[str]:
        return sorted(str(path.relative_to(self.path)) for path in (self.path / folder).rglob("*") if path.is_file())

    def names_by_age(self, folder: str) -> list[str]:
        return [path.name for path in sorted((self.path / folder).glob("[!.]*"), key=lambda path: path.stat().st_mtime_ns)]

    def read(self, name: str) -> str | None:
        return (self.path / name).read_text() if self.exists(name) else None

    def write(self, name: str, text: str) -> None:
        self.check_before_change()
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        part = self.path / f"{name}.{threading.get_ident()}"
        part.write_text(text)
        part.rename(self.path / name)

    def delete(self, name: str) -> None:
        self.check_before_change()
        target = self.path / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def move(self, source: str, target: str) -> None:
        self.check_before_change()
        (self.path / target).parent.mkdir(parents=True, exist_ok=True)
        (self.path / source).rename(self.path / target)

    def copy(self, source: str, target: str) -> None:
        self.check_before_change()
        (self.path / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (self.path / source).is_dir() else shutil.copyfile
        copy(self.path / source, self.path / target)


def files_in(path: Path) -> CheckpointFiles:
    return cast(CheckpointFiles, Folder(path))
