"""The server's address and the credentials for it: of a kubeconfig, overriding flags, or the pod kubectl runs in."""

from __future__ import annotations

import os

from pybernetes.kubectl import kubeconfig
from pybernetes.kubectl.errors import CLIError, PlainError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.flags import Flags

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class RestConfig:
    """How to reach a server. PEM data is bytes; a name ending in `_file` is a path."""

    def __init__(self) -> None:
        self.server = "http://localhost:8080"
        self.ca_data = b""
        self.ca_file = ""
        self.insecure = False
        self.tls_server_name = ""
        self.cert_data = b""
        self.cert_file = ""
        self.key_data = b""
        self.key_file = ""
        self.token = ""
        self.token_file = ""
        self.username = ""
        self.password = ""
        self.exec_plugin: dict[str, Any] | None = None
        self.auth_provider: dict[str, Any] | None = None
        self.user_name = ""
        self.user_origin = ""
        self.cluster_config: dict[str, Any] = {}
        self.headers: list[tuple[str, str]] = []
        self.proxy_url = ""
        self.timeout = 0.0
        self.disable_compression = False
        self.stdin_used = False
        """Whether the command reads stdin itself, so that no exec plugin may ask the user."""


_NAMESPACE_FIRST = frozenset(
    (
        "annotate", "apply edit-last-applied", "apply set-last-applied", "apply view-last-applied", "attach",
        "auth reconcile", "cp", "create token", "debug", "delete", "describe", "edit", "events", "exec", "get", "label",
        "logs", "patch", "port-forward", "scale", "set image", "set resources", "set serviceaccount", "set subject",
        "taint", "top pod",
    )
)  # fmt: skip


class Loader:
    """Reads the kubeconfig once and answers what commands ask of it."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self.command = ""
        """The command with its parents: `kubectl get`."""
        self._config: kubeconfig.Kubeconfig | None = None

    @property
    def config(self) -> kubeconfig.Kubeconfig:
        """The merged kubeconfig, without the flags' overrides."""
        if self._config is None:
            self._config = kubeconfig.load(self._flags.get("kubeconfig") or "")
        return self._config

    def _given(self, name: str) -> str:
        """The value of a global flag; a command may have a flag of the same name that holds a list."""
        value = self._flags.get(name)
        return value if isinstance(value, str) else ""

    def context(self) -> tuple[str, dict[str, Any]]:
        """The name and the content of the context in force."""
        config = self.config
        name = self._flags.get("context") or config.current_context
        if not name:
            return "", {}
        found = config.contexts.get(name)
        if found is None:
            if self._flags.get("context"):
                if not self._namespace_first():
                    raise CLIError(f'context "{name}" does not exist')
                raise PlainError(f"Error in configuration: context was not found for specified context: {name}")
            return name, {}
        return name, found

    def namespace(self) -> tuple[str, bool]:
        """The namespace for requests, and whether a flag gave it."""
        given = self._flags.get("namespace")
        if given:
            return str(given), True
        _, context = self.context()
        found = context.get("namespace")
        if not found and self._in_cluster():
            try:
                with open(f"{_SERVICE_ACCOUNT}/namespace") as file:
                    found = file.read().strip()
            except OSError:
                pass
        return str(found or "default"), False

    def _in_cluster(self) -> bool:
        config = self.config
        return (
            not (config.clusters or config.contexts or self._flags.get("server") or self._flags.get("kubeconfig"))
            and "KUBERNETES_SERVICE_HOST" in os.environ
            and os.path.exists(f"{_SERVICE_ACCOUNT}/token")
        )

    def rest(self) -> RestConfig:
        """The server and credentials. Raises CLIError where the kubeconfig contradicts itself."""
        flags = self._flags
        result = RestConfig()
        if self._in_cluster():
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
            result.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
            result.token_file = f"{_SERVICE_ACCOUNT}/token"
            result.ca_file = f"{_SERVICE_ACCOUNT}/ca.crt"
        else:
            config = self.config
            name, context = self.context()
            self._check(config, name, context)
            cluster_name = flags.get("cluster") or context.get("cluster") or ""
            user_name = self._given("user") or context.get("user") or ""
            cluster = config.clusters.get(cluster_name)
            if cluster is None and flags.get("cluster"):
                raise CLIError(f'no server found for cluster "{cluster_name}"')
            user = config.users.get(user_name)
            if user is None and self._given("user"):
                raise CLIError(f'auth info "{user_name}" does not exist')
            self._cluster(result, cluster or {}, cluster_name, bool(name))
            self._user(result, user or {}, user_name)
            result.user_origin = config.origin.get(("users", user_name), "")
        self._override(result)
        return result

    def _namespace_first(self) -> bool:
        """Whether the command needs the namespace before the server, which has another message for a wrong context."""
        words = self.command.split()[1:]
        return words[:1] == ["rollout"] or (" ".join(words) in _NAMESPACE_FIRST and not self._flags.get("raw"))

    def _check(self, config: kubeconfig.Kubeconfig, name: str, context: dict[str, Any]) -> None:
        """The context must exist, and what it names too."""
        problems = []
        if name and name not in config.contexts:
            problems.append("context was not found for specified context: " + name)
        elif name:
            cluster, user = context.get("cluster") or "", context.get("user") or ""
            if user and user not in config.users and not self._given("user"):
                problems.append(f'user "{user}" was not found for context "{name}"')
            if not cluster and not self._flags.get("cluster"):
                problems.append(f'cluster was not specified for context "{name}"')
            elif cluster not in config.clusters and not self._flags.get("cluster"):
                problems.append(f'cluster "{cluster}" was not found for context "{name}"')
        if len(problems) == 1:
            raise PlainError(f"Error in configuration: {problems[0]}")
        if problems:
            raise PlainError("Error in configuration: \n" + "".join(f"* {each}\n" for each in problems))

    def _cluster(self, result: RestConfig, cluster: dict[str, Any], name: str, wanted: bool) -> None:
        server = cluster.get("server") or self._flags.get("server")
        if server:
            result.server = str(server)
        elif name and wanted:
            raise PlainError(f'Error in configuration: no server found for cluster "{name}"')
        result.ca_file = cluster.get("certificate-authority") or ""
        result.ca_data = decode(cluster.get("certificate-authority-data"))
        if result.ca_data:
            result.ca_file = ""
        result.insecure = bool(cluster.get("insecure-skip-tls-verify"))
        result.tls_server_name = cluster.get("tls-server-name") or ""
        result.proxy_url = cluster.get("proxy-url") or ""
        result.disable_compression = bool(cluster.get("disable-compression"))
        result.cluster_config = cluster

    def _user(self, result: RestConfig, user: dict[str, Any], name: str) -> None:
        result.user_name = name
        result.cert_file = user.get("client-certificate") or ""
        result.cert_data = decode(user.get("client-certificate-data"))
        result.key_file = user.get("client-key") or ""
        result.key_data = decode(user.get("client-key-data"))
        result.token = user.get("token") or ""
        result.token_file = user.get("tokenFile") or ""
        result.username = user.get("username") or ""
        result.password = user.get("password") or ""
        result.exec_plugin = user.get("exec")
        result.auth_provider = user.get("auth-provider")
        if (result.cert_data or result.cert_file) and not (result.key_data or result.key_file):
            raise PlainError(
                f"Error in configuration: client-key-data or client-key must be specified for {name}"
                " to use the clientCert authentication method."
            )
        if user.get("as"):
            result.headers.append(("Impersonate-User", str(user["as"])))
        if user.get("as-uid"):
            result.headers.append(("Impersonate-Uid", str(user["as-uid"])))
        for group in user.get("as-groups") or ():
            result.headers.append(("Impersonate-Group", str(group)))
        for key, values in (user.get("as-user-extra") or {}).items():
            result.headers += [(extra_header(key), str(value)) for value in values]

    def _override(self, result: RestConfig) -> None:
        flags = self._flags
        if flags.get("server"):
            result.server = flags.text("server")
        if "://" not in result.server:
            tls = result.ca_data or result.ca_file or result.cert_data or result.cert_file or result.insecure
            result.server = f"{'https' if tls else 'http'}://{result.server}"
        result.server = result.server.rstrip("/")
        for name, file, content in (
            ("certificate-authority", "ca_file", "ca_data"),
            ("client-certificate", "cert_file", "cert_data"),
            ("client-key", "key_file", "key_data"),
        ):
            if flags.get(name):
                setattr(result, file, flags.text(name))
                setattr(result, content, b"")
        if flags.get("insecure-skip-tls-verify"):
            result.insecure = True
        if flags.get("tls-server-name"):
            result.tls_server_name = flags.text("tls-server-name")
        if flags.get("token"):
            result.token, result.token_file = flags.text("token"), ""
            result.exec_plugin = result.auth_provider = None
            result.username = result.password = ""
        if flags.get("username"):
            result.username = flags.text("username")
            result.token, result.token_file, result.exec_plugin, result.auth_provider = "", "", None, None
        if flags.get("password"):
            result.password = flags.text("password")
        if result.cert_data or result.cert_file:
            result.exec_plugin = None  # a certificate that is there already goes before a plugin
        self._impersonate(result)
        if result.insecure:
            if flags.get("insecure-skip-tls-verify") and not flags.get("certificate-authority"):
                result.ca_data, result.ca_file = b"", ""
            if result.ca_data or result.ca_file:
                raise CLIError("specifying a root certificates file with the insecure flag is not allowed")
        result.timeout = request_timeout(str(flags.get("request-timeout") or "0"))
        if flags.get("disable-compression"):
            result.disable_compression = True

    def _impersonate(self, result: RestConfig) -> None:
        flags = self._flags
        if any(flags.get(name) for name in ("as", "as-group", "as-uid", "as-user-extra")):
            result.headers = [pair for pair in result.headers if not pair[0].startswith("Impersonate-")]
            if not flags.get("as"):
                raise CLIError(
                    f"requesting uid, groups or user-extra for {result.user_name} without impersonating a user"
                )
            result.headers.append(("Impersonate-User", flags.text("as")))
            if flags.get("as-uid"):
                result.headers.append(("Impersonate-Uid", flags.text("as-uid")))
            result.headers += [("Impersonate-Group", group) for group in flags.get("as-group") or ()]
            for pair in flags.get("as-user-extra") or ():
                key, _, value = pair.partition("=")
                result.headers.append((extra_header(key), value))


def extra_header(key: str) -> str:
    """The header of one key of impersonated extras."""
    safe = "".join(
        char
        if (char.isalnum() and char.isascii()) or char in "!#$&'*+-.^_`|~"
        else "".join(f"%{b:02X}" for b in char.encode())
        for char in key
    )
    return f"Impersonate-Extra-{safe}"


def request_timeout(text: str) -> float:
    """Seconds of `--request-timeout`: a number of seconds, or a duration."""
    from pybernetes.kubectl.flags import duration

    if text.lstrip("-").isdigit():
        return float(text)
    try:
        return duration(text)
    except ValueError:
        raise CLIError(
            "Invalid timeout value. Timeout must be a single integer in seconds,"
            " or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)"
        ) from None


def decode(text: Any) -> bytes:
    """The bytes of base64 data in a kubeconfig."""
    if not text:
        return b""
    import binascii

    try:
        return binascii.a2b_base64(str(text))
    except ValueError as error:
        raise CLIError(f"illegal base64 data in the kubeconfig: {error}") from None
