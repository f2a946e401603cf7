"""The daemons of a control plane are killed, and started again."""

import gc
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from devcluster import holding
from devcluster.api import RunningControlPlane
from devcluster.controlplane import ControlPlane, Endpoints
from tests.support.waiting import eventually


@contextmanager
def away(plane: RunningControlPlane, *, etcd: bool = False) -> Iterator[None]:
    """Kill the API server, and end etcd where that is asked for; at the end of the block they are started again."""
    holder = holding.Client(plane.state_dir)
    holder.signal("kube-apiserver", signal.SIGKILL)
    if etcd:
        holder.signal("kube-controller-manager", signal.SIGKILL)
        holder.signal("etcd", signal.SIGTERM)
    gone = {"kube-apiserver"} | ({"etcd", "kube-controller-manager"} if etcd else set())
    eventually(lambda: gone.isdisjoint(holder.running()), what=f"they are gone: {gone}")
    yield
    assert gone.isdisjoint(holder.running())
    ports = json.loads((plane.state_dir / "ports.json").read_text())
    ends = Endpoints("127.0.0.1", ports["api"], ports["etcd"], ports["etcd-peer"])
    ControlPlane(plane.state_dir, holder, plane.kubectl.parent, ends).start()
    gc.collect()  # here, where a TLS socket that was cut off in its handshake is expected, and not in another test
