"""`kubectl create role`, `clusterrole`, `rolebinding` and `clusterrolebinding`."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError, NoMatch, PlainError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import generator, one_name, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_API = "rbac.authorization.k8s.io"
VERBS = (
    "get", "delete", "list", "create", "update", "patch", "watch", "deletecollection", "use", "bind", "escalate",
    "impersonate", "*", "proxy", "approve", "sign", "attest",
)  # fmt: skip


def _rules(context: Context) -> list[dict[str, Any]]:
    """One rule for each API group of the resources."""
    flags = context.flags
    verbs = list(dict.fromkeys(verb.strip() for verb in flags.words("verb") if verb.strip()))
    verbs = ["*"] if "*" in verbs else verbs
    if not verbs:
        raise CLIError("at least one verb must be specified")
    for verb in verbs:
        if verb not in VERBS:
            context.err(f"Warning: '{verb}' is not a standard resource verb\n")
    names = list(dict.fromkeys(flags.words("resource-name")))
    groups: dict[str, list[str]] = {}
    for word in flags.words("resource"):
        resource, _, sub = word.partition("/")
        if resource == "*":
            groups.setdefault("*", []).append("*")
            continue
        try:
            mapping = context.mapper.resource(resource)
        except NoMatch as error:
            kind, _, group = resource.partition(".")
            where = f' in group "{group}"' if group else ""
            raise PlainError(f'the server doesn\'t have a resource type "{kind}"{where}') from error
        full = f"{mapping.resource}/{sub}" if sub else mapping.resource
        if full not in groups.setdefault(mapping.group, []):
            groups[mapping.group].append(full)
    found = []
    for group, resources in groups.items():
        rule: dict[str, Any] = {"apiGroups": [group], "resources": resources, "verbs": verbs}
        if names:
            rule["resourceNames"] = names
        found.append(rule)
    return found


def role(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create role`."""
    flags = context.flags
    name = one_name(context, arguments)
    if not flags.words("verb"):
        raise CLIError("at least one verb must be specified")
    if not flags.words("resource"):
        raise CLIError("at least one resource must be specified")
    return {"apiVersion": f"{_API}/v1", "kind": "Role", "metadata": {"name": name}, "rules": _rules(context)}


def clusterrole(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create clusterrole`."""
    flags = context.flags
    name = one_name(context, arguments)
    obj: dict[str, Any] = {"apiVersion": f"{_API}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    if flags.words("aggregation-rule"):
        for pair in flags.words("aggregation-rule"):
            if "=" not in pair:
                raise CLIError(
                    f'invalid argument "{pair}" for "--aggregation-rule" flag: malformed pair, expect string=string'
                    f"\nSee '{context.path} --help' for usage."
                )
        labels = dict(pair.split("=", 1) for pair in flags.words("aggregation-rule"))
        obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        obj["rules"] = None
        return obj
    urls = flags.words("non-resource-url")
    if not flags.words("verb"):
        raise CLIError("at least one verb must be specified")
    if not flags.words("resource") and not urls:
        raise CLIError("one of resource or nonResourceURL must be specified")
    rules = _rules(context) if flags.words("resource") else []
    if urls:
        verbs = flags.words("verb")
        for verb in verbs:
            if verb not in ("get", "post", "put", "delete", "patch", "head", "options", "*"):
                raise CLIError(f"invalid verb: '{verb}' for nonResourceURL")
        for url in urls:
            if url != "*" and not url.startswith("/"):
                raise CLIError("nonResourceURL should start with /")
            if "*" in url[:-1]:
                raise CLIError("nonResourceURL only supports wildcard matches when '*' is at the end")
        rules.append({"nonResourceURLs": urls, "verbs": verbs})
    obj["rules"] = rules
    return obj


def _subjects(context: Context) -> list[dict[str, Any]]:
    flags = context.flags
    found = []
    for kind in ("user", "group"):
        for name in dict.fromkeys(flags.words(kind)):
            found.append({"apiGroup": _API, "kind": kind.capitalize(), "name": name})
    for word in dict.fromkeys(flags.words("serviceaccount")):
        parts = word.split(":")
        if len(parts) != 2 or not parts[0] or not parts[1]:
            raise CLIError("serviceaccount must be <namespace>:<name>")
        found.append({"kind": "ServiceAccount", "name": parts[1], "namespace": parts[0]})
    return found


def rolebinding(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create rolebinding`."""
    flags = context.flags
    name = one_name(context, arguments)
    role_name, cluster = flags.text("role"), flags.text("clusterrole")
    if bool(role_name) == bool(cluster):
        raise CLIError("exactly one of clusterrole or role must be specified")
    return _binding("RoleBinding", name, "ClusterRole" if cluster else "Role", cluster or role_name, _subjects(context))


def clusterrolebinding(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create clusterrolebinding`."""
    require(context, "clusterrole")
    name = one_name(context, arguments)
    return _binding("ClusterRoleBinding", name, "ClusterRole", context.flags.text("clusterrole"), _subjects(context))


def _binding(kind: str, name: str, role_kind: str, role_name: str, subjects: list[dict[str, Any]]) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": f"{_API}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _API, "kind": role_kind, "name": role_name},
    }
    if subjects:
        obj["subjects"] = subjects
    return obj


_RULES = (
    Flag("verb", "list", help="Verbs of the rule."),
    Flag("resource", "list", help="Resources of the rule."),
    Flag("resource-name", "array", help="Names that the rule is for; may be repeated."),
)
_WHO = (
    Flag("user", "array", help="User of the binding; may be repeated."),
    Flag("group", "array", help="Group of the binding; may be repeated."),
    Flag("serviceaccount", "array", help="Service account as namespace:name; may be repeated."),
)
COMMANDS = (
    generator(
        "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename]"
        " [--dry-run=server|client|none]",
        "Create a role with single rule",
        role,
        _RULES,
    ),
    generator(
        "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename]"
        " [--dry-run=server|client|none]",
        "Create a cluster role",
        clusterrole,
        (
            *_RULES,
            Flag("non-resource-url", "list", help="URL paths of the rule."),
            Flag("aggregation-rule", "list", help="Labels of the roles to aggregate."),
        ),
    ),
    generator(
        "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname]"
        " [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
        "Create a role binding for a particular role or cluster role",
        rolebinding,
        (*_WHO, Flag("role", help="Role of the binding."), Flag("clusterrole", help="ClusterRole of the binding.")),
    ),
    generator(
        "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname]"
        " [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
        "Create a cluster role binding for a particular cluster role",
        clusterrolebinding,
        (*_WHO, Flag("clusterrole", help="ClusterRole of the binding.")),
    ),
)
