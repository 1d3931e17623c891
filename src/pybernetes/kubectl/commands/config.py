"""`kubectl config`: views and changes kubeconfig files."""

from __future__ import annotations

import os

from pybernetes.kubectl import kubeconfig
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import copy, in_order
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.kubeconfig_edit import Editor
from pybernetes.kubectl.kubeconfig_property import change
from pybernetes.kubectl.printers.table import Columns
from pybernetes.kubectl.printing import PRINT_FLAGS, generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_SECRETS = {
    "certificate-authority-data": "DATA+OMITTED",
    "client-certificate-data": "DATA+OMITTED",
    "client-key-data": "DATA+OMITTED",
    "token": "REDACTED",
    "password": "REDACTED",
}


def _editor(context: Context) -> Editor:
    return Editor(context.flags.get("kubeconfig") or "")


def _usage(context: Context, message: str) -> CLIError:
    from pybernetes.kubectl import usage
    from pybernetes.kubectl.main import find

    command, path, _ = find(context.path.split()[1:])
    if command is not None:
        context.out(usage.command(command, path))
    return CLIError(message)


def _config(context: Context) -> kubeconfig.Kubeconfig:
    """The merged kubeconfig; a file that is named but not there is an empty one, as for all commands that write it."""
    explicit = context.flags.get("kubeconfig") or ""
    return kubeconfig.Kubeconfig() if explicit and not os.path.exists(explicit) else context.loader.config


def view(context: Context, arguments: list[str]) -> int | None:
    """`config view`."""
    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    config = _config(context)
    content = _whole(config)
    if flags.on("minify"):
        content = _minified(context, content)
    if flags.on("flatten"):
        _flatten(content)
    elif not flags.on("raw"):
        for section, inner in (("clusters", "cluster"), ("users", "user")):
            for entry in content[section] or ():
                for key, shown in _SECRETS.items():
                    if entry[inner].get(key):
                        entry[inner][key] = shown
    if flags.text("output") == "json":
        from pybernetes.kubectl.data import pretty

        context.out(pretty(_ordered(content), sort=False) + "\n")
        return None
    context.out(generic(flags, flags.text("output") or "yaml")(content))
    return None


_ORDER = (
    "kind", "apiVersion", "preferences", "clusters", "users", "contexts", "current-context", "extensions", "name",
    "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data",
    "proxy-url", "disable-compression", "client-certificate", "client-certificate-data", "client-key",
    "client-key-data", "token", "tokenFile", "as", "as-uid", "as-groups", "as-user-extra", "username", "password",
    "auth-provider", "exec", "cluster", "user", "namespace",
)  # fmt: skip
_EXEC_ORDER = ("command", "args", "env", "apiVersion", "installHint", "provideClusterInfo", "interactiveMode")


def _ordered(value: Any) -> Any:
    """A kubeconfig with its fields in the order of upstream's type."""
    if isinstance(value, list):
        return [_ordered(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _ordered(each) for key, each in in_order(value, _EXEC_ORDER if "command" in value else _ORDER).items()}


def _whole(config: kubeconfig.Kubeconfig) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": config.current_context}
    for section, inner in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
        entries = config.section(section)
        found[section] = [{"name": name, inner: copy(entries[name])} for name in sorted(entries)] or None
    if config.preferences:
        found["preferences"] = copy(config.preferences)
    return found


def _minified(context: Context, content: dict[str, Any]) -> dict[str, Any]:
    name = context.flags.get("context") or content["current-context"]
    if not name:
        raise CLIError("current-context must exist in order to minify")
    chosen = [entry for entry in content["contexts"] or () if entry["name"] == name]
    if not chosen:
        raise CLIError(f"cannot locate context {name}")
    inner = chosen[0]["context"]
    content["current-context"] = name
    content["contexts"] = chosen
    for section, key in (("clusters", "cluster"), ("users", "user")):
        content[section] = [entry for entry in content[section] or () if entry["name"] == inner.get(key)] or None
    return content


def _flatten(content: dict[str, Any]) -> None:
    from base64 import b64encode

    pairs = (
        ("clusters", "cluster", "certificate-authority"),
        ("users", "user", "client-certificate"),
        ("users", "user", "client-key"),
    )
    for section, inner, key in pairs:
        for entry in content[section] or ():
            path = entry[inner].pop(key, None)
            if path and not entry[inner].get(f"{key}-data"):
                try:
                    with open(path, "rb") as file:
                        entry[inner][f"{key}-data"] = b64encode(file.read()).decode()
                except OSError as error:
                    raise CLIError(f"open {path}: {(error.strerror or '').lower()}") from None


def current_context(context: Context, arguments: list[str]) -> int | None:
    """`config current-context`."""
    name = _editor(context).current_context()
    if not name:
        raise CLIError("current-context is not set")
    context.out(f"{name}\n")
    return None


def get_contexts(context: Context, arguments: list[str]) -> int | None:
    """`config get-contexts`."""
    flags = context.flags
    output = flags.text("output")
    if output not in ("", "name", "wide"):
        raise CLIError(
            f"--output {output} is not available in kubectl config get-contexts; resetting to default output format"
        )
    config = context.loader.config
    names = arguments or sorted(config.contexts)
    errors: list[CLIError] = []
    columns = Columns()
    if not output and not flags.on("no-headers"):
        columns.row(["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"])
    for name in sorted(names):
        found = config.contexts.get(name)
        if found is None:
            errors.append(CLIError(f"context {name} not found"))
            continue
        if output == "name":
            columns.row([name])
            continue
        mark = "*" if name == config.current_context else ""
        columns.row([mark, name, found.get("cluster", ""), found.get("user", ""), found.get("namespace", "")])
    context.out(columns.flush())
    raise_all(errors)
    return None


def get_clusters(context: Context, arguments: list[str]) -> int | None:
    """`config get-clusters`."""
    context.out("NAME\n" + "".join(f"{name}\n" for name in _editor(context).names("clusters")))
    return None


def get_users(context: Context, arguments: list[str]) -> int | None:
    """`config get-users`."""
    context.out("NAME\n" + "".join(f"{name}\n" for name in _editor(context).names("users")))
    return None


def use_context(context: Context, arguments: list[str]) -> int | None:
    """`config use-context`."""
    if len(arguments) != 1:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    editor = _editor(context)
    if editor.find("contexts", arguments[0]) is None:
        raise CLIError(f'no context exists with the name: "{arguments[0]}"')
    editor.set_current_context(arguments[0])
    editor.save()
    context.out(f'Switched to context "{arguments[0]}".\n')
    return None


def rename_context(context: Context, arguments: list[str]) -> int | None:
    """`config rename-context`."""
    if len(arguments) != 2:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    old, new = arguments
    editor = _editor(context)
    found = editor.find("contexts", old)
    file = editor.default_file()
    if found is None:
        raise CLIError(f'cannot rename the context "{old}", it\'s not in {file}')
    if editor.find("contexts", new):
        raise CLIError(f'cannot rename the context "{old}", the context "{new}" already exists in {file}')
    content = found[1].get("context") or {}
    editor.remove("contexts", old)
    editor.put("contexts", new, content)
    if editor.current_context() == old:
        editor.set_current_context(new)
    editor.save()
    context.out(f'Context "{old}" renamed to "{new}".\n')
    return None


def _delete(section: str, word: str) -> Any:
    def run(context: Context, arguments: list[str]) -> int | None:
        if len(arguments) != 1:
            if word == "user":
                raise CLIError(f"user to delete is required\nSee '{context.path} -h' for help and examples")
            raise CLIError(f"Unexpected args: [{' '.join(arguments)}]")
        editor = _editor(context)
        name = arguments[0]
        current = editor.current_context()
        file = editor.remove(section, name)
        if file is None:
            raise CLIError(f"cannot delete {word} {name}, not in {editor.default_file()}")
        editor.save()
        if word == "context" and name == current:
            context.err(
                'warning: this removed your active context, use "kubectl config use-context" to select a different'
                " one\n"
            )
        context.out(f"deleted {word} {name} from {file}\n")
        return None

    return run


def set_context(context: Context, arguments: list[str]) -> int | None:
    """`config set-context`."""
    flags = context.flags
    editor = _editor(context)
    if flags.on("current"):
        if arguments:
            raise CLIError("you cannot specify both a context name and --current")
        name = editor.current_context()
        if not name:
            raise CLIError("no current context is set")
    elif not arguments:
        raise CLIError("you must specify a non-empty context name or --current")
    elif len(arguments) != 1:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    else:
        name = arguments[0]
    found = editor.find("contexts", name)
    value = dict((found[1].get("context") or {}) if found else {})
    for key in ("cluster", "user", "namespace"):
        if flags.changed(key):
            value[key] = flags.text(key)
    editor.put("contexts", name, {key: each for key, each in value.items() if each or key in ("cluster", "user")})
    editor.save()
    context.out(f'Context "{name}" {"modified" if found else "created"}.\n')
    return None


def set_cluster(context: Context, arguments: list[str]) -> int | None:
    """`config set-cluster`."""
    flags = context.flags
    if len(arguments) != 1:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    if flags.on("insecure-skip-tls-verify") and flags.text("certificate-authority"):
        raise CLIError("you cannot specify a certificate authority and insecure mode at the same time")
    editor = _editor(context)
    found = editor.find("clusters", arguments[0])
    value = dict((found[1].get("cluster") or {}) if found else {})
    for key in ("server", "tls-server-name", "proxy-url"):
        if flags.changed(key):
            value[key] = flags.text(key)
    if flags.changed("insecure-skip-tls-verify"):
        value["insecure-skip-tls-verify"] = flags.on("insecure-skip-tls-verify")
        if value["insecure-skip-tls-verify"]:
            value.pop("certificate-authority", None)
            value.pop("certificate-authority-data", None)
        else:
            value.pop("insecure-skip-tls-verify")
    if flags.changed("certificate-authority"):
        path = flags.text("certificate-authority")
        if flags.on("embed-certs"):
            value["certificate-authority-data"] = _embed(path, "certificate-authority")
            value.pop("certificate-authority", None)
        else:
            value["certificate-authority"] = os.path.abspath(path)
            value.pop("certificate-authority-data", None)
        value.pop("insecure-skip-tls-verify", None)
    elif flags.on("embed-certs"):
        raise CLIError("you must specify a --certificate-authority to embed")
    editor.put("clusters", arguments[0], {"server": "", **value})
    editor.save()
    context.out(f'Cluster "{arguments[0]}" set.\n')
    return None


def _embed(path: str, flag: str) -> str:
    from base64 import b64encode

    try:
        with open(path, "rb") as file:
            return b64encode(file.read()).decode()
    except OSError as error:
        reason = f"stat {path}: {(error.strerror or '').lower()}"
        raise CLIError(f"could not stat {flag} file {path}: {reason}") from None


def set_credentials(context: Context, arguments: list[str]) -> int | None:
    """`config set-credentials`."""
    flags = context.flags
    if len(arguments) != 1:
        raise CLIError(f"unexpected args: [{' '.join(arguments)}]")
    methods = []
    if flags.text("token"):
        methods.append("--token")
    if flags.text("username") or flags.text("password"):
        methods.append("--username/--password")
    if len(methods) > 1:
        raise CLIError("you cannot specify more than one authentication method at the same time: " + ", ".join(methods))
    editor = _editor(context)
    found = editor.find("users", arguments[0])
    value = dict((found[1].get("user") or {}) if found else {})
    for key in ("client-certificate", "client-key"):
        if flags.changed(key):
            value.pop(f"{key}-data", None)
            value.pop(key, None)
            if flags.on("embed-certs"):
                value[f"{key}-data"] = _embed(flags.text(key), key)
            else:
                value[key] = os.path.abspath(flags.text(key))
    for key in ("token", "username", "password"):
        if flags.changed(key):
            value[key] = flags.text(key)
            if key == "token":
                value.pop("username", None)
                value.pop("password", None)
            else:
                value.pop("token", None)
    if flags.text("auth-provider"):
        provider = value.get("auth-provider") or {}
        provider["name"] = flags.text("auth-provider")
        value["auth-provider"] = provider
    if flags.words("auth-provider-arg") and value.get("auth-provider"):
        settings = value["auth-provider"].get("config") or {}
        for pair in flags.words("auth-provider-arg"):
            key, equals, text = pair.partition("=")
            if not equals and key.endswith("-"):
                settings.pop(key[:-1], None)
            else:
                settings[key] = text
        value["auth-provider"]["config"] = settings or None
    _exec(flags, value)
    editor.put("users", arguments[0], value)
    editor.save()
    context.out(f'User "{arguments[0]}" set.\n')
    return None


def _exec(flags: Any, value: dict[str, Any]) -> None:
    if not any(flags.changed(f"exec-{name}") for name in ("command", "api-version", "arg", "env")):
        return
    plugin: dict[str, Any] = value.get("exec") or {"args": None, "env": None, "provideClusterInfo": False}
    if flags.changed("exec-command"):
        plugin["command"] = flags.text("exec-command")
    if flags.changed("exec-api-version"):
        plugin["apiVersion"] = flags.text("exec-api-version")
    if flags.changed("exec-interactive-mode"):
        plugin["interactiveMode"] = flags.text("exec-interactive-mode")
    if flags.changed("exec-arg"):
        plugin["args"] = flags.words("exec-arg")
    if flags.changed("exec-provide-cluster-info"):
        plugin["provideClusterInfo"] = flags.on("exec-provide-cluster-info")
    for pair in flags.words("exec-env"):
        name, equals, text = pair.partition("=")
        if not equals and not name.endswith("-"):
            raise CLIError(f"invalid exec-env format: {pair}")
        variables = [each for each in plugin.get("env") or () if each["name"] != (name if equals else name[:-1])]
        plugin["env"] = [*variables, *([{"name": name, "value": text}] if equals else [])]
    value["exec"] = plugin


def set_property(context: Context, arguments: list[str]) -> int | None:
    """`config set PROPERTY VALUE`."""
    if len(arguments) != 2:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    name, value = arguments
    if context.flags.on("set-raw-bytes"):
        from binascii import b2a_base64

        value = b2a_base64(value.encode("utf-8", "surrogateescape"), newline=False).decode()
    editor = _editor(context)
    change(editor, name, value)
    editor.save()
    context.out(f'Property "{name}" set.\n')
    return None


def unset(context: Context, arguments: list[str]) -> int | None:
    """`config unset PROPERTY`."""
    if len(arguments) != 1:
        raise _usage(context, f"Unexpected args: [{' '.join(arguments)}]")
    editor = _editor(context)
    change(editor, arguments[0], None)
    editor.save()
    context.out(f'Property "{arguments[0]}" unset.\n')
    return None


COMMAND = Command(
    "config SUBCOMMAND",
    "Modify kubeconfig files",
    children={
        "view": Command(
            "view",
            "Display merged kubeconfig settings or a specified kubeconfig file",
            view,
            flags=(
                *PRINT_FLAGS,
                Flag("flatten", "bool", help="Put the content of files into the output."),
                Flag("merge", "bool", True, help="Merge the files."),
                Flag("minify", "bool", help="Only what the current context uses."),
                Flag("raw", "bool", help="Show secrets too."),
            ),
        ),
        "current-context": Command("current-context", "Display the current-context", current_context),
        "get-contexts": Command(
            "get-contexts [(-o|--output=)name)]",
            "Describe one or many contexts",
            get_contexts,
            flags=(Flag("no-headers", "bool"), Flag("output", short="o")),
        ),
        "get-clusters": Command("get-clusters", "Display clusters defined in the kubeconfig", get_clusters),
        "get-users": Command("get-users", "Display users defined in the kubeconfig", get_users),
        "use-context": Command(
            "use-context CONTEXT_NAME", "Set the current-context in a kubeconfig file", use_context, aliases=("use",)
        ),
        "rename-context": Command(
            "rename-context CONTEXT_NAME NEW_NAME", "Rename a context from the kubeconfig file", rename_context
        ),
        "delete-context": Command(
            "delete-context NAME", "Delete the specified context from the kubeconfig", _delete("contexts", "context")
        ),
        "delete-cluster": Command(
            "delete-cluster NAME", "Delete the specified cluster from the kubeconfig", _delete("clusters", "cluster")
        ),
        "delete-user": Command(
            "delete-user NAME", "Delete the specified user from the kubeconfig", _delete("users", "user")
        ),
        "set": Command(
            "set PROPERTY_NAME PROPERTY_VALUE",
            "Set an individual value in a kubeconfig file",
            set_property,
            flags=(Flag("set-raw-bytes", "bool", help="The value of a []byte field is not in base64 yet."),),
        ),
        "unset": Command("unset PROPERTY_NAME", "Unset an individual value in a kubeconfig file", unset),
        "set-context": Command(
            "set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname]"
            " [--namespace=namespace]",
            "Set a context entry in kubeconfig",
            set_context,
            flags=(Flag("current", "bool", help="The current context."), Flag("cluster"), Flag("user")),
        ),
        "set-cluster": Command(
            "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority]",
            "Set a cluster entry in kubeconfig",
            set_cluster,
            flags=(Flag("embed-certs", "bool"), Flag("proxy-url")),
        ),
        "set-credentials": Command(
            "set-credentials NAME [--client-certificate=path/to/certfile] [--token=bearer_token]",
            "Set a user entry in kubeconfig",
            set_credentials,
            flags=(
                Flag("embed-certs", "bool"),
                Flag("auth-provider"),
                Flag("auth-provider-arg", "list"),
                Flag("exec-command"),
                Flag("exec-api-version"),
                Flag("exec-arg", "list"),
                Flag("exec-env", "array"),
                Flag("exec-interactive-mode"),
                Flag("exec-provide-cluster-info", "bool"),
            ),
        ),
    },
)
