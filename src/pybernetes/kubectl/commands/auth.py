"""`kubectl auth`: can-i, whoami and reconcile."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, Exit, NoMatch, StatusError, not_found, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns
from pybernetes.kubectl.printing import PRINT_FLAGS, generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

    Line = tuple[str, str, str, str]

_VERBS = frozenset(
    (
        "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "impersonate",
        "*", "approve", "sign", "escalate", "attest",
    )
)  # fmt: skip
_URL_VERBS = frozenset(("get", "put", "post", "head", "options", "delete", "patch", "*"))
_API = "/apis/authorization.k8s.io/v1"


def can_i(context: Context, arguments: list[str]) -> int | None:
    """`auth can-i`."""
    flags = context.flags
    if flags.on("list"):
        if arguments:
            raise CLIError("list option must be specified with no arguments")
        return _list(context)
    namespace = "" if flags.on("all-namespaces") else context.namespace()
    if not 2 <= len(arguments) <= 3:
        raise CLIError(
            "you must specify two arguments: verb resource or verb resource/resourceName."
            "\nSee 'kubectl auth can-i -h' for help and examples."
        )
    verb, what = arguments[:2]
    if what.startswith("/"):
        spec: dict[str, Any] = {"nonResourceAttributes": {"path": what, "verb": verb}}
    else:
        resource, _, name = what.partition("/")
        name = arguments[2] if len(arguments) == 3 else name
        attributes: dict[str, Any] = {"verb": verb, "resource": resource}
        try:
            mapping = context.mapper.resource(resource)
            attributes["resource"], attributes["group"] = mapping.resource, mapping.group
            attributes["version"] = mapping.version
            if not mapping.namespaced:
                if not flags.on("all-namespaces"):
                    scope = f" in group '{mapping.group}'" if mapping.group else ""
                    context.err(f"Warning: resource '{mapping.resource}' is not namespace scoped{scope}\n\n")
                namespace = ""
        except NoMatch:
            if resource != "*" and resource.lower() not in ("users", "groups", "uids"):
                context.err(f"Warning: the server doesn't have a resource type '{resource}'\n\n")
            head, _, group = resource.partition(".")
            attributes["resource"], attributes["group"] = head, group
        if namespace:
            attributes["namespace"] = namespace
        if name:
            attributes["name"] = name
        if flags.text("subresource"):
            attributes["subresource"] = flags.text("subresource")
        spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    if "nonResourceAttributes" in spec and flags.text("subresource"):
        raise CLIError("--subresource can not be used with NonResourceURL")
    if verb not in (_URL_VERBS if "nonResourceAttributes" in spec else _VERBS):
        context.err(f"Warning: verb '{verb}' is not a known verb\n\n")
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    answer = context.client.post(f"{_API}/selfsubjectaccessreviews", body)
    status = answer.get("status") or {}
    allowed = bool(status.get("allowed"))
    if not flags.on("quiet"):
        text = "yes" if allowed else "no"
        if not allowed:
            if status.get("reason"):
                text += f" - {status['reason']}"
            if status.get("evaluationError"):
                text += f" - {status['evaluationError']}"
        context.out(f"{text}\n")
    if not allowed:
        raise Exit(1)
    return None


def _list(context: Context) -> int | None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": context.namespace()},
    }
    status = context.client.post(f"{_API}/selfsubjectrulesreviews", body).get("status") or {}
    if status.get("incomplete"):
        context.err(f"warning: the list may be incomplete: {status.get('evaluationError', '')}\n")
    rows: list[tuple[str, list[str], list[str], list[str]]] = []
    for rule in status.get("resourceRules") or ():
        for group in rule.get("apiGroups") or [""]:
            for resource in rule.get("resources") or ():
                name = f"{resource}.{group}" if group else resource
                rows.append((name, [], rule.get("resourceNames") or [], rule.get("verbs") or []))
    merged: dict[tuple[str, str], list[str]] = {}
    order: list[tuple[str, str]] = []
    for name, _, names, verbs in rows:
        key = (name, " ".join(names))
        if key not in merged:
            merged[key] = []
            order.append(key)
        merged[key] += [verb for verb in verbs if verb not in merged[key]]
    lines = [(name, "[]", f"[{names}]", f"[{' '.join(merged[name, names])}]") for name, names in order]
    lines.sort(key=lambda line: (line[0].partition(".")[2], line[0]) if line[0] != "*.*" else ("", ""))
    urls = []
    for rule in status.get("nonResourceRules") or ():
        for url in rule.get("nonResourceURLs") or ():
            urls.append(("", f"[{url}]", "[]", f"[{' '.join(rule.get('verbs') or ())}]"))
    columns = Columns()
    if not context.flags.on("no-headers"):
        columns.row(["Resources", "Non-Resource URLs", "Resource Names", "Verbs"])
    for line in _ordered(lines, urls):
        columns.row(line)
    context.out(columns.flush())
    return None


def _ordered(lines: list[Line], urls: list[Line]) -> list[Line]:
    """Wide rights first, then by length, as upstream's compaction leaves them."""
    everything = [line for line in lines if line[0].startswith("*")]
    all_urls = [line for line in urls if line[1] == "[*]"]
    rest = [line for line in lines if not line[0].startswith("*")]
    return [*everything, *all_urls, *rest, *sorted(line for line in urls if line[1] != "[*]")]


def whoami(context: Context, arguments: list[str]) -> int | None:
    """`auth whoami`."""
    flags = context.flags
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = context.client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    if flags.text("output"):
        context.out(generic(flags, flags.text("output"))(answer))
        return None
    user = dig(answer, "status", "userInfo", default={})
    columns = Columns()
    columns.row(["ATTRIBUTE", "VALUE"])
    if user.get("username"):
        columns.row(["Username", user["username"]])
    if user.get("uid"):
        columns.row(["UID", user["uid"]])
    if user.get("groups"):
        columns.row(["Groups", f"[{' '.join(user['groups'])}]"])
    for key in sorted(user.get("extra") or {}):
        columns.row([f"Extra: {key}", f"[{' '.join(user['extra'][key])}]"])
    context.out(columns.flush())
    return None


def reconcile(context: Context, arguments: list[str]) -> int | None:
    """`auth reconcile`: adds the rules and subjects of files to what is on the server."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    if not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("must specify one of -f and -k")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.latest = False
    for info in builder.infos():
        if info.mapping.group != "rbac.authorization.k8s.io":
            continue
        _reconcile(context, info, dry)
    raise_all(builder.errors)
    return None


def _reconcile(context: Context, info: Info, dry: str) -> None:
    flags = context.flags
    field = "rules" if info.mapping.kind.endswith("Role") else "subjects"
    remove = flags.on("remove-extra-permissions" if field == "rules" else "remove-extra-subjects")
    parameters = {"dryRun": "All"} if dry == "server" else {}
    try:
        current = context.client.get(info.path())
        operation = "update"
    except StatusError as error:
        if not not_found(error):
            raise
        current, operation = None, "create"
    protected = dig(current or {}, "metadata", "annotations", _AUTOUPDATE) == "false"
    if current is not None and field == "subjects" and current.get("roleRef") != info.object.get("roleRef"):
        operation = "recreate"  # the role of a binding cannot be changed
    wanted = info.object.get(field) or []
    here = [] if current is None or operation == "recreate" else current.get(field) or []
    missing = [each for each in wanted if each not in here]
    extra = [each for each in here if each not in wanted]
    needed = operation != "update" or bool(missing) or bool(extra and remove)
    if needed and dry != "client" and not protected:
        if operation == "recreate":
            context.client.delete(info.path(), {}, parameters)
        if operation == "update":
            assert current is not None
            current[field] = wanted if remove else [*here, *missing]
            current = context.client.put(info.path(), current, parameters)
        elif not (operation == "recreate" and dry == "server"):
            current = mutating.post(context, info, info.object, dry)
    context.out(mutating.printer_for(flags, "reconciled", dry)(current or info.object))
    if not needed:
        return
    caveat = f", but object opted out ({_AUTOUPDATE}: false)" if protected else ""
    context.err(f"\treconciliation required {operation}{caveat}\n")
    for title, found in ((f"missing {field} added", missing), (f"extra {field} removed", extra if remove else [])):
        if found:
            context.err(f"\t{title}:\n" + "".join(f"\t\t{_go_struct(each, field)}\n" for each in found))


_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_STRUCTS = {
    "rules": ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"),
    "subjects": ("kind", "apiGroup", "name", "namespace"),
}


def _go_struct(value: dict[str, Any], field: str) -> str:
    """A rule or a subject as Go prints the struct."""
    parts = []
    for key in _STRUCTS[field]:
        each = value.get(key)
        shown = f"[{' '.join(each or ())}]" if field == "rules" else each or ""
        name = key[0].upper() + key[1:]
        parts.append(f"{'APIGroup' if key == 'apiGroup' else 'APIGroups' if key == 'apiGroups' else name}:{shown}")
    return "{" + " ".join(parts) + "}"


COMMAND = Command(
    "auth",
    "Inspect authorization",
    children={
        "can-i": Command(
            "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
            "Check whether an action is allowed",
            can_i,
            flags=(
                Flag("all-namespaces", "bool", short="A", help="In all namespaces."),
                Flag("list", "bool", help="Print everything that is allowed."),
                Flag("no-headers", "bool", help="Do not print headers."),
                Flag("quiet", "bool", short="q", help="Only the exit code."),
                Flag("subresource", help="Subresource such as log or scale."),
            ),
        ),
        "whoami": Command("whoami", "Experimental: Check self subject attributes", whoami, flags=PRINT_FLAGS),
        "reconcile": Command(
            "reconcile -f FILENAME",
            "Reconciles rules for RBAC role, role binding, cluster role, and cluster role binding objects",
            reconcile,
            flags=(
                *PRINT_FLAGS,
                *mutating.FILENAME_FLAGS,
                mutating.DRY_RUN,
                Flag("remove-extra-permissions", "bool"),
                Flag("remove-extra-subjects", "bool"),
            ),
        ),
    },
)
