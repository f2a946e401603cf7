"""Certificates of a cluster, made with the openssl command line."""

import base64
import shutil
import subprocess
from pathlib import Path

import yaml

from devcluster.errors import DevclusterError, MissingPrerequisiteError

_DAYS = "3650"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise MissingPrerequisiteError("`openssl` was not found: apt-get install openssl")
    command = [program, *(str(argument) for argument in arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DevclusterError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")


class Authority:
    """A certificate authority in a folder; making what exists already does nothing.

    Parameters
    ----------
    folder : Path
        Where keys and certificates are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.certificate("ca").exists():
            draft = folder / "ca.draft"
            _openssl(
                *("req", "-x509", *_CURVE, "-days", _DAYS, "-subj", "/CN=devcluster"),
                *("-keyout", self.key("ca"), "-out", draft),
            )
            draft.rename(self.certificate("ca"))

    def certificate(self, name: str) -> Path:
        """Return the path of a certificate."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the path of a private key."""
        return self.folder / f"{name}.key"

    def issue(self, name: str, subject: str, alternative_names: tuple[str, ...] = ()) -> None:
        """Make a certificate for server and client use.

        Parameters
        ----------
        name : str
            Stem of the files.
        subject : str
            As openssl writes it, ``/O=group/CN=user``.
        alternative_names : tuple of str
            ``IP:...`` and ``DNS:...``.
        """
        target = self.certificate(name)
        names = ",".join(alternative_names)
        extensions = self.folder / f"{name}.ext"
        text = "extendedKeyUsage=serverAuth,clientAuth\n"
        text += f"subjectAltName={names}\n" if names else ""
        if target.exists() and extensions.exists() and extensions.read_text() == text:
            return
        extensions.write_text(text)
        request, draft = self.folder / f"{name}.csr", self.folder / f"{name}.draft"
        _openssl("req", *_CURVE, "-subj", subject, "-keyout", self.key(name), "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-out", draft, "-days", _DAYS),
            *("-CA", self.certificate("ca"), "-CAkey", self.key("ca"), "-CAcreateserial"),
            *("-extfile", extensions),
        )
        draft.rename(target)

    def signing_pair(self, name: str) -> tuple[Path, Path]:
        """Return private and public key for service account tokens."""
        private, public = self.key(name), self.folder / f"{name}.pub"
        if not public.exists():
            _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private)
            _openssl("ec", "-in", private, "-pubout", "-out", public)
        return private, public

    def kubeconfig(self, name: str, server: str, target: Path, context: str) -> None:
        """Write a kubeconfig that carries its certificates inside.

        Parameters
        ----------
        name : str
            Stem of an issued certificate.
        server : str
            URL of the API server.
        target : Path
            File to write; replaced in one move, for readers see old or new.
        context : str
            Name of cluster, user and context.
        """

        def inline(path: Path) -> str:
            return base64.b64encode(path.read_bytes()).decode()

        cluster = {"server": server, "certificate-authority-data": inline(self.certificate("ca"))}
        user = {
            "client-certificate-data": inline(self.certificate(name)),
            "client-key-data": inline(self.key(name)),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": context, "cluster": cluster}],
            "users": [{"name": context, "user": user}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
            "current-context": context,
        }
        text = yaml.safe_dump(document, sort_keys=False)
        if target.exists() and target.read_text() == text:
            return
        draft = target.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(text)
        draft.rename(target)
