"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: how they are started."""

import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from devcluster.certificates import Authority
from devcluster.errors import DevclusterError
from devcluster.holding import Client

SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS = "10.96.0.1"
_READY_SECONDS = 180.0
_SPARING = {"GOGC": "400"}  # memory is cheaper here than the processor: Go collects its garbage less often


@dataclass(frozen=True)
class Endpoints:
    """Where the control plane listens.

    Parameters
    ----------
    address : str
        Address of the API server for its clients.
    api_port, etcd_port, etcd_peer_port : int
        TCP ports; etcd's are on 127.0.0.1.
    reachable : str
        URL of the API server for the caller, when it is not the one of the daemons.
    """

    address: str
    api_port: int
    etcd_port: int
    etcd_peer_port: int
    reachable: str = ""

    @property
    def url(self) -> str:
        """URL of the API server for the daemons."""
        return f"https://{self.address}:{self.api_port}"


class ControlPlane:
    """Starts the daemons through a holder.

    Parameters
    ----------
    folder : Path
        The cluster's folder as the caller sees it.
    client : Client
        The holder; its ``inner`` is the same folder as the daemons see it.
    binaries : Path
        Folder with the program ``kube``, as the daemons see it.
    endpoints : Endpoints
        Where to listen.
    nodes : bool
        Whether kubelets will join: then there is a scheduler and the API server
        knows how to reach kubelets.
    """

    def __init__(
        self,
        folder: Path,
        client: Client,
        binaries: Path,
        endpoints: Endpoints,
        *,
        nodes: bool = False,
    ) -> None:
        self.folder = folder
        self.client = client
        self.kube = binaries / "kube"
        self.endpoints = endpoints
        self.nodes = nodes
        self.pki = client.inner / "pki"

    def issue_certificates(self, context: str) -> Authority:
        """Make the certificates and kubeconfigs; ``folder/kubeconfig`` is the administrator's."""
        authority = Authority(self.folder / "pki")
        names = [f"IP:{ip}" for ip in ("127.0.0.1", FIRST_SERVICE_ADDRESS)]
        if self.endpoints.address != "127.0.0.1":
            names.append(f"IP:{self.endpoints.address}")
        service = "kubernetes"
        for part in ("", ".default", ".svc", ".cluster.local"):
            service += part
            names.append(f"DNS:{service}")
        authority.issue("apiserver", "/CN=kube-apiserver", (*names, "DNS:localhost"))
        authority.issue("etcd", "/CN=etcd", ("IP:127.0.0.1", "DNS:localhost"))
        authority.issue("etcd-client", "/CN=etcd-client")
        authority.issue("admin", "/O=system:masters/CN=devcluster-admin")
        for daemon in ("kube-controller-manager", "kube-scheduler"):
            authority.issue(daemon, f"/CN=system:{daemon}")
            target = authority.folder / f"{daemon}.kubeconfig"
            authority.kubeconfig(daemon, self.endpoints.url, target, context)
        inside = authority.folder / "admin.kubeconfig"
        authority.kubeconfig("admin", self.endpoints.url, inside, context)
        reachable = self.endpoints.reachable or self.endpoints.url
        authority.kubeconfig("admin", reachable, self.folder / "kubeconfig", context)
        authority.signing_pair("service-account")
        return authority

    def start(self) -> None:
        """Start everything and return when objects can be made.

        Raises
        ------
        DevclusterError
            If a daemon ends, or is not ready after 3 minutes.
        """
        self.client.start("etcd", self._etcd(), _SPARING)
        self.client.start("kube-apiserver", self._apiserver(), _SPARING)
        self._await("the API server", "/readyz", "etcd", "kube-apiserver")
        self.client.start("kube-controller-manager", self._controller_manager(), _SPARING)
        if self.nodes:
            self.client.start("kube-scheduler", self._scheduler(), _SPARING)
        # Made by the controller-manager; no pod is admitted in a namespace without it.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._await("the first service account", account, "etcd", "kube-apiserver", "kube-controller-manager")

    def get(self, path: str) -> bytes:
        """Return the answer of the API server to a GET by the administrator; OSError if it is not 200."""
        context = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        context.load_cert_chain(self.folder / "pki" / "admin.crt", self.folder / "pki" / "admin.key")
        address = urlsplit(self.endpoints.reachable or self.endpoints.url)
        connection = HTTPSConnection(address.hostname or "", address.port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != HTTPStatus.OK:
            raise OSError(f"GET {path}: {answer.status} {answer.reason}")
        return content

    def _await(self, what: str, path: str, *daemons: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        last: Exception | None = None
        while time.monotonic() < deadline:
            try:
                self.get(path)
                return
            except (OSError, HTTPException) as error:
                last = error
            self.client.check(*daemons)
            time.sleep(0.1)
        raise DevclusterError(f"{what} was not ready after {_READY_SECONDS:.0f} s ({last}): see {self.folder}/log")

    def _file(self, name: str) -> str:
        return str(self.pki / name)

    def _etcd(self) -> list[str | Path]:
        here = f"https://127.0.0.1:{self.endpoints.etcd_port}"
        peer = f"https://127.0.0.1:{self.endpoints.etcd_peer_port}"
        flags = {
            "name": "etcd",
            "data-dir": str(self.client.inner / "etcd"),
            "listen-client-urls": here,
            "advertise-client-urls": here,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"etcd={peer}",
            "log-level": "error",
        }
        for side in ("", "peer-"):
            flags |= {
                f"{side}cert-file": self._file("etcd.crt"),
                f"{side}key-file": self._file("etcd.key"),
                f"{side}trusted-ca-file": self._file("ca.crt"),
                # Without it every user of the machine could read all secrets over loopback.
                f"{side}client-cert-auth": "true",
            }
        # A cluster for tests may lose its last second in a power cut; fsync costs it half its speed.
        return [self.kube, "etcd", "--unsafe-no-fsync", *_flags(flags)]

    def _apiserver(self) -> list[str | Path]:
        ends = self.endpoints
        flags = {
            "etcd-servers": f"https://127.0.0.1:{ends.etcd_port}",
            "etcd-cafile": self._file("ca.crt"),
            "etcd-certfile": self._file("etcd-client.crt"),
            "etcd-keyfile": self._file("etcd-client.key"),
            "secure-port": str(ends.api_port),
            "advertise-address": ends.address,
            "client-ca-file": self._file("ca.crt"),
            "requestheader-client-ca-file": self._file("ca.crt"),
            "requestheader-allowed-names": "front-proxy",
            "tls-cert-file": self._file("apiserver.crt"),
            "tls-private-key-file": self._file("apiserver.key"),
            "service-account-key-file": self._file("service-account.pub"),
            "service-account-signing-key-file": self._file("service-account.key"),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-cluster-ip-range": SERVICE_RANGE,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
        }
        if self.nodes:
            flags |= {
                # Else `kubectl logs` asks DNS for the node's name.
                "kubelet-preferred-address-types": "InternalIP",
                "kubelet-client-certificate": self._file("admin.crt"),
                "kubelet-client-key": self._file("admin.key"),
            }
        else:
            # 127.0.0.1 is not allowed in Endpoints; the reconciler would log it for ever.
            flags |= {"bind-address": ends.address, "endpoint-reconciler-type": "none"}
        return [self.kube, "kube-apiserver", *_flags(flags)]

    def _controller_manager(self) -> list[str | Path]:
        flags = self._client_flags("kube-controller-manager") | {
            "service-account-private-key-file": self._file("service-account.key"),
            "root-ca-file": self._file("ca.crt"),
            "use-service-account-credentials": "true",
            "cluster-signing-cert-file": self._file("ca.crt"),
            "cluster-signing-key-file": self._file("ca.key"),
        }
        return [self.kube, "kube-controller-manager", *_flags(flags)]

    def _scheduler(self) -> list[str | Path]:
        return [self.kube, "kube-scheduler", *_flags(self._client_flags("kube-scheduler"))]

    def _client_flags(self, daemon: str) -> dict[str, str]:
        config = self._file(f"{daemon}.kubeconfig")
        return {
            "kubeconfig": config,
            "authentication-kubeconfig": config,
            "authorization-kubeconfig": config,
            "leader-elect": "false",
            "secure-port": "0",
        }


def _flags(flags: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
