"""`kubectl set env`."""

from __future__ import annotations

import sys

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.setting import FLAGS, change, containers_of, infos, pod_spec, split_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set env`."""
    flags = context.flags
    resources, pairs = split_pairs(arguments, removal=True)
    pairs = [*pairs, *flags.words("env")]
    if flags.on("all") and flags.get("selector"):
        raise CLIError("cannot set --all and --selector at the same time")
    if "-" in pairs and "-" in flags.words("filename"):
        raise CLIError("standard input cannot be used for multiple arguments")
    if not resources and not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if flags.on("list") and flags.text("output"):
        raise CLIError("--list and --output may not be specified together")
    if flags.words("keys") and not flags.text("from"):
        raise CLIError("when specifying --keys, a configmap or secret must be provided with --from")
    new, removed = _parse(pairs)
    if flags.text("from"):
        new += _from(context, flags.text("from"))
    found, errors = infos(context, resources)
    if flags.on("list"):
        return _list(context, found)

    def mutate(obj: dict[str, Any]) -> None:
        chosen = containers_of(obj, flags.text("containers"))
        if not chosen:
            sys.stderr.write(
                f"Warning: {obj['kind']}/{obj['metadata']['name']} does not have any containers matching"
                f' "{flags.text("containers")}"\n'
            )
        for container in chosen:
            _update(container, new, removed, flags.on("overwrite"))

    return change(context, found, errors, mutate, "env updated")


def _update(container: dict[str, Any], new: list[dict[str, Any]], removed: list[str], overwrite: bool) -> None:
    current = container.get("env") or []
    names = {each["name"]: each for each in current}
    if not overwrite:
        for each in new:
            if each["name"] in names and "value" in names[each["name"]]:
                value = names[each["name"]].get("value", "")
                raise CLIError(f"'{each['name']}' already has a value ({value}), and --overwrite is false")
    fresh = {each["name"]: each for each in new}
    result = [fresh.pop(each["name"], each) for each in current if each["name"] not in removed]
    result += list(fresh.values())
    if result:
        container["env"] = result
    else:
        container.pop("env", None)


def _parse(pairs: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    new, removed = [], []
    for pair in pairs:
        if pair == "-":
            for line in sys.stdin.read().split("\n"):
                if "=" in line:
                    name, _, value = line.partition("=")
                    new.append({"name": name, "value": value})
            continue
        name, equals, value = pair.partition("=")
        if equals:
            if not name or any(char.isspace() for char in name):
                raise CLIError(f'"{pair}" is not a valid environment variable')
            new.append({"name": name, "value": value})
        elif pair.endswith("-"):
            removed.append(pair[:-1])
        else:
            raise CLIError(f"environment variables must be of the form key=value: {pair}")
    return new, removed


def _from(context: Context, source: str) -> list[dict[str, Any]]:
    flags = context.flags
    found = []
    for info in Builder(context).arguments([source]).checked():
        kind = {"Secret": "secretKeyRef", "ConfigMap": "configMapKeyRef"}.get(info.mapping.kind)
        if kind is None:
            raise CLIError("unsupported resource specified in --from")
        for key in sorted(info.object.get("data") or {}):
            if flags.words("keys") and key not in flags.words("keys"):
                continue
            name = flags.text("prefix") + "".join(char if char.isalnum() else "_" for char in key).upper()
            if name != key:
                sys.stderr.write(f"Warning: key {key} transferred to {name}\n")
            found.append({"name": name, "valueFrom": {kind: {"key": key, "name": info.name}}})
    return found


def _list(context: Context, found: list[Info]) -> int | None:
    flags = context.flags
    for info in found:
        if pod_spec(info.object) is None:
            continue
        for container in containers_of(info.object, flags.text("containers")):
            context.out(f"# {info.mapping.kind} {info.name}, container {container['name']}\n")
            for each in container.get("env") or ():
                reference = each.get("valueFrom")
                if not reference:
                    context.out(f"{each['name']}={each.get('value', '')}\n")
                elif flags.on("resolve"):
                    context.out(f"{each['name']}={_resolved(context, info, reference)}\n")
                else:
                    context.out(f"# {each['name']} from {_source(reference)}\n")
    return None


def _source(reference: dict[str, Any]) -> str:
    if reference.get("configMapKeyRef"):
        found = reference["configMapKeyRef"]
        return f"configmap {found.get('name')}, key {found.get('key')}"
    if reference.get("secretKeyRef"):
        found = reference["secretKeyRef"]
        return f"secret {found.get('name')}, key {found.get('key')}"
    if reference.get("fieldRef"):
        return f"field path {reference['fieldRef'].get('fieldPath')}"
    if reference.get("resourceFieldRef"):
        found = reference["resourceFieldRef"]
        prefix = f"{found['containerName']}/" if found.get("containerName") else ""
        return f"resource field {prefix}{found.get('resource')}"
    return "invalid valueFrom"


def _resolved(context: Context, info: Info, reference: dict[str, Any]) -> str:
    from binascii import a2b_base64

    for name, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if reference.get(name):
            found = reference[name]
            path = f"/api/v1/namespaces/{info.namespace}/{plural}/{found.get('name')}"
            value = (context.client.get(path).get("data") or {}).get(found.get("key"), "")
            return a2b_base64(value).decode("utf-8", "replace") if plural == "secrets" else str(value)
    return ""


COMMAND = Command(
    "env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N",
    "Update environment variables on a pod template",
    run,
    flags=(
        *FLAGS,
        mutating.SELECTOR,
        Flag("containers", default="*", short="c", help="Names of containers, with * as a wildcard."),
        Flag("env", "array", short="e", help="KEY=VALUE; may be repeated."),
        Flag("from", help="ConfigMap or Secret to take variables of."),
        Flag("keys", "list", help="Keys of the object in --from."),
        Flag("list", "bool", help="Print the variables."),
        Flag("overwrite", "bool", True, "Change variables that are there."),
        Flag("prefix", help="Put before the names of variables from --from."),
        Flag("resolve", "bool", help="With --list: print the values of references."),
    ),
)
