"""A checkpoint's files without Spark: the names and texts that the agent's pure parts read and write."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from spark_drain_agent.checkpoint.files import CheckpointFiles, nothing

_MUCH = 8
"""Bytes that a bucket with much state copies; more it moves."""


class KilledError(BaseException):
    """The process ends here."""


class Folder:
    """The operations of `CheckpointFiles` on a local folder, each change of which may be the last.

    Parameters
    ----------
    path
        The folder.
    objects
        Whether it is a bucket: what is moved or deleted changes object by object.
    takes_by_moving
        Whether it is a bucket with more state than goes through the driver.
    """

    def __init__(self, path: Path, *, objects: bool = False, takes_by_moving: bool = False) -> None:
        self.path = path
        self.root = str(path)
        self.check_before_change = nothing
        self.renames_atomically = not objects
        self.takes_by_moving = takes_by_moving
        self.compares = self.spark_hides_failures = False
        self.changes_left: Iterator[int] | None = None

    def _change(self) -> None:
        self.check_before_change()
        if self.changes_left is not None and next(self.changes_left, None) is None:
            raise KilledError

    def elsewhere(self, root: str) -> CheckpointFiles:
        return files_in(Path(root.removeprefix("file:")), objects=not self.renames_atomically)

    def uri(self, name: str) -> str:
        return f"file:{self.path / name}"

    def is_file(self, name: str) -> bool:
        return (self.path / name).is_file()

    def is_folder(self, name: str) -> bool:
        return (self.path / name).is_dir()

    def names(self, folder: str) -> list[str]:
        return sorted(item.name for item in (self.path / folder).glob("[!.]*"))

    def below(self, folder: str) -> list[str]:
        return sorted(str(path.relative_to(self.path)) for path in (self.path / folder).rglob("*") if path.is_file())

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: (self.path / name).stat().st_size for name in self.below(folder)}

    def below_all(self, folders: Sequence[str]) -> list[str]:
        return [name for folder in folders for name in self.below(folder)]

    def folders_by_age(self, folder: str) -> list[str]:
        return [path.name for path in sorted((self.path / folder).glob("[!.]*/"), key=lambda path: path.stat().st_mtime_ns)]

    def read(self, name: str) -> str | None:
        return (self.path / name).read_text() if self.is_file(name) else None

    def read_bytes(self, name: str) -> bytes | None:
        return (self.path / name).read_bytes() if self.is_file(name) else None

    def read_all(self, names: Sequence[str]) -> dict[str, str | None]:
        return {name: self.read(name) for name in names}

    def write_all(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        self._change()
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        part = self.path / f"{name}.{threading.get_ident()}"
        part.write_text(text)
        part.rename(self.path / name)

    def write_if(self, name: str, text: str, before: str | None) -> bool:
        held = self.read(name) == before
        if held:
            self.write(name, text)
        return held

    def replace(self, name: str, text: str) -> bool:
        self.write(name, text)
        return True

    def delete(self, name: str) -> None:
        target = self.path / name
        if self.renames_atomically or target.is_file():
            self._change()
        else:
            for one in self.below(name):
                self._change()
                (self.path / one).unlink()
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def drop_checksum(self, name: str) -> None:
        """These files have none."""

    def delete_files(self, *names: str) -> None:
        for name in names:
            if self.is_file(name):
                self._change()
                (self.path / name).unlink()

    def empty(self, *folders: str) -> None:
        if self.renames_atomically:
            for folder in folders:
                self.delete(folder)
        else:
            self.delete_files(*self.below_all(folders))

    def merge(self, source: str, target: str, names: Sequence[str] | None = None) -> None:
        if self.renames_atomically and names is None and not self.is_folder(target):
            self._change()
            (self.path / target).parent.mkdir(parents=True, exist_ok=True)
            (self.path / source).rename(self.path / target)
            return
        for name in self.below(source) if names is None else [f"{source}/{name}" for name in names]:
            self._copy(name, target + name.removeprefix(source))
            self.delete(name)
        if names is None:
            self.delete(source)

    def take(self, source: str, target: str, choose: Callable[[list[str]], list[str]]) -> bool:
        if self.renames_atomically:
            there = self.is_folder(source)
            if there:
                self.merge(source, target)
            return there
        needed = choose([name.removeprefix(f"{source}/") for name in self.below(source)])
        if self.takes_by_moving and sum((self.path / source / name).stat().st_size for name in needed) > _MUCH:
            self.merge(source, target)
            return True
        for name in needed:
            self._copy(f"{source}/{name}", f"{target}/{name}")
        return False

    def copy(self, source: str, target: str) -> None:
        if self.renames_atomically and (self.path / source).is_dir():
            self._change()
            shutil.copytree(self.path / source, self.path / target)
            return
        for name in self.below(source) or [source]:
            self._copy(name, target + name.removeprefix(source))

    def _copy(self, source: str, target: str) -> None:
        self._change()
        (self.path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.path / source, self.path / target)


def files_in(path: Path, *, objects: bool = False, takes_by_moving: bool = False) -> CheckpointFiles:
    return cast(CheckpointFiles, Folder(path, objects=objects, takes_by_moving=takes_by_moving))


@contextmanager
def killed_after(changes: int, files: CheckpointFiles) -> Iterator[list[bool]]:
    """Let the block change so much, and end it by force before the next change; what is yielded says whether that was so."""
    killed: list[bool] = []
    folder = cast(Folder, files)
    folder.changes_left = iter(range(changes))
    try:
        yield killed
    except KilledError:
        killed.append(True)
    finally:
        folder.changes_left = None
