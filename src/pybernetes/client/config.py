"""Where the API server is, and who we are to it: from kubeconfig files, or from the pod we run in.

Several kubeconfig files ($KUBECONFIG) are merged as kubectl does it: the first one to say something about a name, or
about the current context, wins. File names inside a kubeconfig are relative to it.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from .exec_credentials import ConfigError, ExecPlugin

__all__ = ["Config", "ConfigError", "ExecPlugin", "from_kubeconfig", "in_cluster", "load", "load_identity"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Config:
    """All that is needed to connect."""

    server: str
    ca_data: bytes = b""
    """PEM; empty = the system's authorities."""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    client_certificate_data: bytes = field(default=b"", repr=False)
    client_key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    """Read again when it is older than a minute: the kubelet renews it."""
    username: str = ""
    password: str = field(default="", repr=False)
    namespace: str = "default"
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    exec_plugin: ExecPlugin | None = None

    def tls(self) -> ssl.SSLContext | None:
        """The TLS settings; None for plain HTTP."""
        if not self.server.startswith("https:"):
            return None
        # By hand: create_default_context() reads the system's authorities (4 MB, 20 ms) even where ours are given.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca_data:
            context.load_verify_locations(cadata=self.ca_data.decode("ascii"))
        else:
            context.load_default_certs()
        if self.client_certificate_data:
            load_identity(context, self.client_certificate_data, self.client_key_data)
        return context


def load(kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None) -> Config:
    """The kubeconfig given, else those of $KUBECONFIG or ~/.kube/config, else the pod we run in."""
    if kubeconfig:
        return from_kubeconfig([Path(kubeconfig)], context)
    listed = [Path(entry) for entry in os.environ.get("KUBECONFIG", "").split(os.pathsep) if entry]
    paths = [path for path in listed or [Path.home() / ".kube" / "config"] if path.exists()]
    if paths:
        return from_kubeconfig(paths, context)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    raise ConfigError("no kubeconfig found, and not inside of a pod; name a kubeconfig or set $KUBECONFIG")


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Config:
    """The config inside of a pod: its token, the authority, the address of the `kubernetes` Service."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not inside of a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    try:
        token = (folder / "token").read_text().strip()
        authority = (folder / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigError(f"no service account in this pod: {error}") from error
    namespace = folder / "namespace"
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_data=authority,
        token=token,
        token_file=str(folder / "token"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def from_kubeconfig(paths: Sequence[Path], context: str | None = None) -> Config:
    """The cluster and user that the context names."""
    merged = _merge(paths)
    where = ", ".join(map(str, paths))
    name = context or merged["current-context"]
    if not name:
        raise ConfigError(f"no current context in {where}; name one")
    if name not in merged["contexts"]:
        raise ConfigError(f"context {name!r} is not in {where}")
    chosen, _ = merged["contexts"][name]
    cluster_name, user_name = chosen.get("cluster", ""), chosen.get("user", "")
    if cluster_name not in merged["clusters"]:
        raise ConfigError(f"context {name!r} names the cluster {cluster_name!r}, which is not in {where}")
    if user_name and user_name not in merged["users"]:
        raise ConfigError(f"context {name!r} names the user {user_name!r}, which is not in {where}")
    cluster, cluster_folder = merged["clusters"][cluster_name]
    user, user_folder = merged["users"].get(user_name, ({}, Path()))
    if not cluster.get("server"):
        raise ConfigError(f"cluster {cluster_name!r} in {where} has no server")
    if str(cluster["server"]).startswith("http:"):
        user = {}  # what proves who we are is nothing to send in the clear; client-go does not either
    if "auth-provider" in user:
        raise ConfigError(f"user {user_name!r} in {where}: auth-provider is not supported, use exec")
    return Config(
        server=str(cluster["server"]).rstrip("/"),
        ca_data=_data(cluster, "certificate-authority", cluster_folder),
        insecure_skip_tls_verify=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        client_certificate_data=_data(user, "client-certificate", user_folder),
        client_key_data=_data(user, "client-key", user_folder),
        token=str(user.get("token") or ""),
        token_file=str(user_folder / user["tokenFile"]) if user.get("tokenFile") and not user.get("token") else "",
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        namespace=str(chosen.get("namespace") or "default"),
        impersonate_user=str(user.get("as") or ""),
        impersonate_groups=tuple(user.get("as-groups") or ()),
        exec_plugin=_exec(user.get("exec"), user_folder),
    )


def _merge(paths: Sequence[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {"clusters": {}, "contexts": {}, "users": {}, "current-context": ""}
    for path in paths:
        document = _read(path)
        merged["current-context"] = merged["current-context"] or document.get("current-context") or ""
        for plural, singular in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
            for entry in document.get(plural) or ():
                merged[plural].setdefault(entry["name"], (entry.get(singular) or {}, path.resolve().parent))
    return merged


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    try:  # JSON is YAML, and `pyb` writes it for its own components: parsing YAML costs an import of 20 ms
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        import yaml

        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"cannot parse the kubeconfig {path}: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig")
    return document


def _data(entry: dict[str, Any], name: str, folder: Path) -> bytes:
    """Inline data before the file of the same name, as kubectl has it."""
    if inline := entry.get(f"{name}-data"):
        return base64.b64decode(str(inline))
    if file := entry.get(name):
        try:
            return (folder / str(file)).read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read the {name} {folder / file}: {error.strerror}") from error
    return b""


def _exec(entry: dict[str, Any] | None, folder: Path) -> ExecPlugin | None:
    if not entry:
        return None
    command = str(entry["command"])
    if "/" in command and not command.startswith("/"):
        command = str(folder / command)
    return ExecPlugin(
        command,
        tuple(map(str, entry.get("args") or ())),
        tuple((str(each["name"]), str(each["value"])) for each in entry.get("env") or ()),
        str(entry.get("apiVersion") or "client.authentication.k8s.io/v1"),
    )


def load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL takes these only from a file; it is readable by us alone and deleted at once."""
    with tempfile.NamedTemporaryFile(prefix="client-", suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)
