"""`kubectl create secret` (generic, tls, docker-registry) and `kubectl create token`."""

from __future__ import annotations

from base64 import b64encode

from pybernetes.kubectl import data
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import generator, one_name, require
from pybernetes.kubectl.key_values import append_hash, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def _secret(name: str, kind: str, values: dict[str, bytes]) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    if values:
        obj["data"] = {key: b64encode(value).decode() for key, value in values.items()}
    if kind:
        obj["type"] = kind
    return obj


def generic(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create secret generic`."""
    name = one_name(context, arguments)
    obj = _secret(name, context.flags.text("type"), dict(entries(context.flags)))
    if context.flags.on("append-hash"):
        append_hash(obj)
    return obj


def docker_registry(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create secret docker-registry`."""
    flags = context.flags
    name = one_name(context, arguments)
    kind = "kubernetes.io/dockerconfigjson"
    if flags.words("from-file"):
        values = dict(entries(flags))
        values.setdefault(".dockerconfigjson", next(iter(values.values()), b""))
        return _secret(name, kind, values)
    user, password = flags.text("docker-username"), flags.text("docker-password")
    if not user or not password:
        missing = [f'"{each}"' for each in ("docker-username", "docker-password") if not flags.text(each)]
        if len(missing) == 2:
            raise CLIError(
                "either --from-file or the combination of --docker-username, --docker-password and --docker-server"
                " is required"
            )
        raise CLIError(f"required flag(s) {', '.join(missing)} not set")
    entry = {"username": user, "password": password}
    if flags.text("docker-email"):
        entry["email"] = flags.text("docker-email")
    entry["auth"] = b64encode(f"{user}:{password}".encode()).decode()
    content = data.dumps({"auths": {flags.text("docker-server"): entry}}, sort=False)
    obj = _secret(name, kind, {".dockerconfigjson": content.encode()})
    if flags.on("append-hash"):
        append_hash(obj)
    return obj


def tls(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create secret tls`."""
    flags = context.flags
    name = one_name(context, arguments)
    if not flags.text("key") or not flags.text("cert"):
        raise CLIError("key and cert must be specified")
    values = {}
    for key, flag in (("tls.crt", "cert"), ("tls.key", "key")):
        path = flags.text(flag)
        try:
            with open(path, "rb") as file:
                values[key] = file.read()
        except OSError as error:
            raise CLIError(f"Cannot read file {path}, open {path}: {(error.strerror or '').lower()}") from None
    from pybernetes.kubectl.transport import load_pair

    load_pair(values["tls.crt"], values["tls.key"])
    obj = _secret(name, "kubernetes.io/tls", values)
    if flags.on("append-hash"):
        append_hash(obj)
    return obj


def token(context: Context, arguments: list[str]) -> int | None:
    """`create token`: asks for a token of a service account and prints it."""
    flags = context.flags
    name = one_name(context, arguments)
    spec: dict[str, Any] = {"audiences": flags.words("audience") or None}
    if flags.changed("duration"):
        seconds = flags["duration"]
        if seconds < 0:
            raise CLIError("--duration must be greater than or equal to 0")
        spec["expirationSeconds"] = int(seconds)
    kind, bound = flags.text("bound-object-kind"), flags.text("bound-object-name")
    if bool(kind) != bool(bound):
        raise CLIError(
            "--bound-object-name can only be set if --bound-object-kind is provided"
            if bound
            else "--bound-object-name is required if --bound-object-kind is provided"
        )
    if kind:
        versions = {"Pod": "v1", "Secret": "v1", "Node": "v1"}
        if kind not in versions:
            raise CLIError(f"supported --bound-object-kind values are {', '.join(sorted(versions))}")
        spec["boundObjectRef"] = {"kind": kind, "apiVersion": versions[kind], "name": bound}
        if flags.text("bound-object-uid"):
            spec["boundObjectRef"]["uid"] = flags.text("bound-object-uid")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {k: v for k, v in spec.items() if v},
    }
    path = f"/api/v1/namespaces/{context.namespace()}/serviceaccounts/{name}/token"
    try:
        answer = context.client.post(path, body)
    except CLIError as error:
        from pybernetes.kubectl.errors import StatusError

        if isinstance(error, StatusError):
            raise CLIError(f"failed to create token: {error.message}") from None
        raise
    if flags.text("output"):
        from pybernetes.kubectl.printing import generic as chosen

        context.out(chosen(flags, flags.text("output"))(answer))
        return None
    found = (answer.get("status") or {}).get("token")
    if not found:
        raise CLIError("failed to create token: no token in server response")
    context.out(f"{found}\n")
    return None


_FROM = (
    Flag("from-file", "list", help="File or folder with values."),
    Flag("from-literal", "array", help="key=value."),
    Flag("from-env-file", "list", help="File with lines of key=value."),
    Flag("append-hash", "bool", help="Add a hash of the content to the name."),
)
_CHILDREN = (
    generator(
        "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]"
        " [--dry-run=server|client|none]",
        "Create a secret from a local file, directory, or literal value",
        generic,
        (*_FROM, Flag("type", help="Type of the secret.")),
    ),
    generator(
        "docker-registry NAME --docker-username=user --docker-password=password --docker-email=email"
        " [--docker-server=string] [--from-file=[key=]source] [--dry-run=server|client|none]",
        "Create a secret for use with a Docker registry",
        docker_registry,
        (
            Flag("docker-username"),
            Flag("docker-password"),
            Flag("docker-email"),
            Flag("docker-server", default="https://index.docker.io/v1/"),
            *_FROM,
        ),
    ),
    generator(
        "tls NAME --cert=path/to/cert/file --key=path/to/key/file [--dry-run=server|client|none]",
        "Create a TLS secret",
        tls,
        (Flag("cert"), Flag("key"), Flag("append-hash", "bool")),
    ),
)
COMMANDS = (
    Command(
        "secret (docker-registry | generic | tls)",
        "Create a secret using a specified subcommand",
        children={command.name: command for command in _CHILDREN},
    ),
    Command(
        "token SERVICE_ACCOUNT_NAME",
        "Request a service account token",
        token,
        flags=(
            Flag("output", short="o"),
            Flag("template"),
            Flag("allow-missing-template-keys", "bool", True),
            Flag("show-managed-fields", "bool"),
            Flag("audience", "array", help="Audience of the token; may be repeated."),
            Flag("duration", "duration", help="How long the token is valid."),
            Flag("bound-object-kind", help="Kind of the object that the token is bound to."),
            Flag("bound-object-name", help="Name of the object that the token is bound to."),
            Flag("bound-object-uid", help="UID of the object that the token is bound to."),
        ),
    ),
)
_ = require
