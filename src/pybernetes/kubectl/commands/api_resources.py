"""`kubectl api-resources` and `kubectl api-versions`."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping


def run(context: Context, arguments: list[str]) -> int | None:
    """`api-resources`."""
    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    output = flags.text("output")
    if output not in ("", "wide", "name", "json", "yaml", "kyaml"):
        raise CLIError(
            f'unable to match a printer suitable for the output format "{output}", allowed formats are:'
            " json,kyaml,name,wide,yaml"
        )
    if flags.get("sort-by") not in ("", "name", "kind"):
        raise CLIError("--sort-by accepts only name or kind")
    discovery = context.mapper.discovery
    if not flags.on("cached"):
        discovery.invalidate()
    groups, verbs, categories = flags.text("api-group"), set(flags.words("verbs")), set(flags.words("categories"))
    found: list[Mapping] = []
    for mapping in context.mapper.all():
        if any(each.group == mapping.group and each.resource == mapping.resource for each in found):
            continue
        if not mapping.verbs:
            continue
        if flags.changed("api-group") and mapping.group != groups:
            continue
        if flags.changed("namespaced") and mapping.namespaced != flags.on("namespaced"):
            continue
        if not verbs <= set(mapping.verbs) or not categories <= set(mapping.categories):
            continue
        found.append(mapping)
    by = flags.text("sort-by")
    found.sort(
        key=lambda each: (
            (each.resource,) if by == "name" else (each.kind,) if by == "kind" else (each.group, each.resource)
        )
    )
    if output in ("json", "yaml", "kyaml"):
        from pybernetes.kubectl.data import pretty
        from pybernetes.kubectl.printing import generic

        items = [
            {
                "name": each.resource,
                "singularName": each.singular,
                "namespaced": each.namespaced,
                **({"group": each.group} if each.group else {}),
                "version": each.version,
                "kind": each.kind,
                "verbs": each.verbs,
                **({"shortNames": each.short_names} if each.short_names else {}),
                **({"categories": each.categories} if each.categories else {}),
            }
            for each in found
        ]
        whole = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": items}
        if output == "json":
            context.out(pretty(whole, sort=False) + "\n")
            return None
        context.out(generic(flags, output)(whole))
        return None
    columns = Columns()
    if output == "name":
        context.out("".join(f"{each.group_resource}\n" for each in found))
        return None
    if not flags.on("no-headers"):
        headers = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
        columns.row([*headers, "VERBS", "CATEGORIES"] if output == "wide" else headers)
    for each in found:
        row = [
            each.resource,
            ",".join(each.short_names),
            each.api_version,
            "true" if each.namespaced else "false",
            each.kind,
        ]
        columns.row([*row, ",".join(each.verbs), ",".join(each.categories)] if output == "wide" else row)
    context.out(columns.flush())
    if discovery.failed:
        names = ", ".join(f"{name}: {reason}" for name, reason in sorted(discovery.failed.items()))
        raise CLIError(f"unable to retrieve the complete list of server APIs: {names}")
    return None


def versions(context: Context, arguments: list[str]) -> int | None:
    """`api-versions`."""
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    discovery = context.mapper.discovery
    discovery.invalidate()
    found = [version["groupVersion"] for group in discovery.groups for version in group["versions"]]
    context.out("".join(f"{each}\n" for each in sorted(found)))
    return None


COMMAND = Command(
    "api-resources",
    "Print the supported API resources on the server",
    run,
    flags=(
        Flag("api-group", help="Only resources of this group."),
        Flag("cached", "bool", help="Use the cache if there is one."),
        Flag("categories", "list", help="Only resources of these categories."),
        Flag("namespaced", "bool", True, "Only resources that are, or are not, in namespaces."),
        Flag("no-headers", "bool", help="Do not print headers."),
        Flag("output", short="o", help="wide, name, json, yaml or kyaml."),
        Flag("show-managed-fields", "bool", help="Keep managedFields."),
        Flag("sort-by", help="name or kind."),
        Flag("verbs", "list", help="Only resources that support these verbs."),
    ),
)
