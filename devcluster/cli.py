"""The command line."""

import argparse
import sys
from pathlib import Path

from devcluster import gobuild, holding, loopback
from devcluster.errors import DevclusterError
from devcluster.paths import cluster_dir
from devcluster.progress import Progress


def _up(options: argparse.Namespace) -> int:
    folder = cluster_dir(options.name)
    progress = Progress(3)
    with progress.step("building kube"):
        binaries = gobuild.build(gobuild.KUBE)
    with progress.step("starting the holder"):
        if holding.holder_pid(folder) is None:
            holding.launch(folder)
    with progress.step("starting the control plane"):
        loopback.start(folder, binaries, options.name)
    progress.say("ready")
    print(folder / "kubeconfig")
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    path: Path = cluster_dir(options.name) / "kubeconfig"
    print(path)
    return 0


def _down(options: argparse.Namespace) -> int:
    holding.end(cluster_dir(options.name))
    return 0


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m devcluster")
    commands = parser.add_subparsers(required=True)
    for name, function in (("up", _up), ("down", _down), ("kubeconfig", _kubeconfig)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--name", default="dev")
        if name == "up":
            command.add_argument("--control-plane-only", action="store_true")
    options = parser.parse_args()
    try:
        return int(options.function(options))
    except DevclusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
