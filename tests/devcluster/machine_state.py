"""What a cluster could leave behind on a machine."""

import os
import subprocess
from pathlib import Path

from devcluster.embedded.cgroups import hierarchies

ANOTHER_TESTS_DISK = "spark-drain-test"


def mounts() -> set[str]:
    """Mount points, without the ids that change from read to read, and without the disk that a test beside this one fills."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line.split()[4] for line in lines if f" {ANOTHER_TESTS_DISK} " not in line}


def cgroups(name: str) -> set[str]:
    return {folder for root in hierarchies() for folder, _, _ in os.walk(root) if name in folder}


def namespaces(kind: str) -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(str((entry / "ns" / kind).readlink()))
            except OSError:  # ended meanwhile
                continue
    return found


def links() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def named_namespaces() -> str:
    return subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout


def packet_filter() -> str:
    return subprocess.run(["nft", "list", "tables"], check=True, capture_output=True, text=True).stdout


def settings() -> dict[str, str]:
    names = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    return {name: Path("/proc/sys", name).read_text() for name in names}


def processes_that_mention(*words: str) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if any(word in line for word in words):
                found[int(entry.name)] = line
    return found


def snapshot(names: tuple[str, ...]) -> dict[str, object]:
    """Everything at once; ``names`` are namespaces that others may not have made meanwhile."""
    return {
        "mounts": mounts(),
        "cgroups": set().union(*(cgroups(name) for name in names)),
        "links": links(),
        "named namespaces": named_namespaces(),
        "packet filter": packet_filter(),
        "settings": settings(),
        "processes": processes_that_mention(*names),
    }
