"""The command line: ``python -m devcluster COMMAND``."""

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devcluster import clusters, demo_dependencies, gobuild, kindcluster
from devcluster.embedded.cluster import EmbeddedCluster
from devcluster.errors import DevclusterError
from devcluster.images import loading
from devcluster.images.recipes import EXAMPLE, OPERATOR
from devcluster.locks import only_one
from devcluster.paths import cluster_dir
from devcluster.progress import Progress

_ABOUT = """\
Throw-away Kubernetes clusters for development and tests. Never for production:
certificates are not renewed, data is not synced to disk, nothing is hardened.

Any other cluster will do as well: set KUBECONFIG to it and leave devcluster alone.
"""
_MORE = """\
providers:
  kind       where a Docker engine will do (23 or newer, with buildx): kind-config.yaml
  embedded   else, as root: one control plane and two nodes in namespaces of their
             own, without any way out to a network, reached at a port of 127.0.0.1

typical:
  python -m devcluster up
  export KUBECONFIG=$(python -m devcluster kubeconfig)
  python -m devcluster build-images
  python -m devcluster down
"""


def _up(options: argparse.Namespace) -> int:
    if options.control_plane_only and (options.with_demo_deps or options.with_s3 or options.provider):
        raise DevclusterError("--control-plane-only has no nodes: it goes with none of --with-demo-deps, --with-s3 and --provider")
    with only_one(cluster_dir(options.name)):
        provider, cluster = clusters.create(options.name, options.provider, control_plane_only=options.control_plane_only)
        extra = (demo_dependencies.STEPS[provider] if options.with_demo_deps else 0) + demo_dependencies.S3_STEPS * options.with_s3
        progress = Progress(clusters.STEPS[provider] + extra)
        cluster.up(progress)
        if not isinstance(cluster, clusters.LoopbackCluster):
            if options.with_demo_deps:
                demo_dependencies.install(cluster, tuple(options.job_namespace), progress)
            if options.with_s3:
                demo_dependencies.install_s3(cluster, progress)
    progress.say(f"ready: export KUBECONFIG={cluster.kubeconfig}")
    print(cluster.kubeconfig)
    return 0


def _down(options: argparse.Namespace) -> int:
    failed = []
    for name in clusters.known() if options.all else [options.name]:
        if clusters.provider_of(name) is not None:
            try:
                # Not locked: it must also end a cluster whose `up` hangs.
                clusters.find(name).down(purge=options.purge)
            except DevclusterError as error:
                failed.append(f"cluster {name!r}: {error}")
    if failed:
        raise DevclusterError("\n".join(failed))
    return 0


def _status(_options: argparse.Namespace) -> int:
    print(clusters.describe_all())
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    print(clusters.kubeconfig(options.name))
    return 0


def _kubectl(options: argparse.Namespace) -> int:
    kubectl = gobuild.build(gobuild.KUBE) / "kubectl"
    environment = os.environ | {"KUBECONFIG": str(clusters.kubeconfig(options.name))}
    return subprocess.run([kubectl, *options.arguments], check=False, env=environment).returncode


def _helm(options: argparse.Namespace) -> int:
    helm = gobuild.build(gobuild.HELM) / "helm"
    environment = os.environ | {"KUBECONFIG": str(clusters.kubeconfig(options.name))}
    return subprocess.run([helm, *options.arguments], check=False, env=environment).returncode


def _exec(options: argparse.Namespace) -> int:
    cluster = clusters.find(options.name)
    if not isinstance(cluster, EmbeddedCluster):
        raise DevclusterError(f"cluster {options.name!r} has no namespaces to enter: exec is for the provider embedded")
    words = options.arguments or ["bash"]
    return subprocess.run(cluster.namespace.command(words), check=False).returncode


def _build_images(options: argparse.Namespace) -> int:
    cluster = clusters.find_with_nodes(options.name)
    names = options.images or [OPERATOR, EXAMPLE]
    recipes = [loading.recipe_for(name, None, None) for name in names]
    loading.load(cluster, recipes, Progress(2 * len(recipes)))
    return 0


def _load_image(options: argparse.Namespace) -> int:
    cluster = clusters.find_with_nodes(options.name)
    recipe = loading.recipe_for(options.image, options.dockerfile, options.context)
    loading.load(cluster, [recipe], Progress(2))
    return 0


def _check_kind_config(options: argparse.Namespace) -> int:
    program = gobuild.build(gobuild.KIND) / "check-kind-config"
    return subprocess.run([program, options.file], check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster", description=_ABOUT, epilog=_MORE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str, *, named: bool = True) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(function=function)
        if named:
            added.add_argument("--name", default=clusters.DEFAULT_NAME, help="which cluster (default: %(default)s)")
        return added

    up = command("up", _up, "start a cluster, or what of it does not run")
    up.add_argument("--provider", choices=clusters.PROVIDERS, help="default: kind where a Docker engine will do, else embedded")
    up.add_argument("--control-plane-only", action="store_true", help="an API server without nodes, on 127.0.0.1, without root")
    up.add_argument("--with-demo-deps", action="store_true", help="also a Kafka broker and kubeflow's Spark operator")
    up.add_argument("--with-s3", action="store_true", help="also an S3 server with a bucket `checkpoints`")
    up.add_argument(
        "--job-namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="a namespace besides `default` that the Spark operator runs applications in; made if missing, can be repeated",
    )
    down = command("down", _down, "end a cluster; its objects and images stay for the next `up`")
    down.add_argument("--purge", action="store_true", help="forget its objects and images too")
    down.add_argument("--all", action="store_true", help="every known cluster")
    command("status", _status, "print all known clusters as JSON", named=False)
    command("kubeconfig", _kubeconfig, "print the path of the administrator's kubeconfig")
    kubectl = command("kubectl", _kubectl, "run the kubectl of the cluster's minor version: kubectl -- get pods")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    helm = command("helm", _helm, "run helm on the cluster: helm -- list -A")
    helm.add_argument("arguments", nargs=argparse.REMAINDER)
    inside = command("exec", _exec, "run a command in the embedded cluster's namespaces: exec -- ip address")
    inside.add_argument("arguments", nargs=argparse.REMAINDER)
    build = command("build-images", _build_images, "build this project's images and load them onto every node")
    build.add_argument("images", nargs="*", help=f"default: {OPERATOR} {EXAMPLE}")
    load = command("load-image", _load_image, "build one image, known or your own, and load it onto every node")
    load.add_argument("image", help="name and tag")
    load.add_argument("--dockerfile", type=Path, help="a Dockerfile with ARG BASE_IMAGE; not needed for known images")
    load.add_argument("--context", type=Path, help="default: the Dockerfile's folder")
    check = command("check-kind-config", _check_kind_config, "read a kind configuration with kind's own loader", named=False)
    check.add_argument("file", nargs="?", default=str(kindcluster.CONFIG))
    return parser


def main() -> int:
    """Run one command; 1 and a message when it fails."""
    options = _parser().parse_args()
    if getattr(options, "arguments", [])[:1] == ["--"]:
        options.arguments = options.arguments[1:]
    try:
        return int(options.function(options))
    except DevclusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        print(f"devcluster: {error}: make room, or name another folder in XDG_CACHE_HOME", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("devcluster: interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return 130
