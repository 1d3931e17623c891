"""Descriptions of roles and bindings."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def role(this: Description) -> None:
    """A Role or ClusterRole: one line for each resource and group."""
    this.head(namespace=False)
    this.write(0, "PolicyRule:\n")
    this.write(1, "Resources\tNon-Resource URLs\tResource Names\tVerbs\n")
    this.write(1, "---------\t-----------------\t--------------\t-----\n")
    rows = []
    for (group, resource, name), verbs in _rules(this.obj.get("rules") or []).items():
        names = f"[{'' if name is None else name}]"
        order = f"Verbs:[{' '.join(verbs)}],APIGroups:[{group}],Resources:[{resource}],ResourceNames:{names},"
        kind, slash, part = resource.partition("/")
        shown = f"{kind}{f'.{group}' if group else ''}{slash}{part}"
        rows.append((order + "NonResourceURLs:[]", f"{shown}\t[]\t{names}\t[{' '.join(verbs)}]\n"))
    for rule in this.obj.get("rules") or ():
        for url in rule.get("nonResourceURLs") or ():
            for verb in rule.get("verbs") or ():
                order = f"Verbs:[{verb}],APIGroups:[],Resources:[],ResourceNames:[],NonResourceURLs:[{url}]"
                rows.append((order, f"\t[{url}]\t[]\t[{verb}]\n"))
    for _, row in sorted(rows):  # in the order of the rules as text, which begins with the verbs
        this.write(1, row)


def _rules(rules: list[dict[str, Any]]) -> dict[tuple[str, str, str | None], list[str]]:
    """The verbs of each resource of each group, by its names where a rule has some."""
    found: dict[tuple[str, str, str | None], list[str]] = {}
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or [None]:
                    for verb in rule.get("verbs") or ():
                        verbs = found.setdefault((group, resource, name), [])
                        if verb not in verbs:
                            verbs.append(verb)
    return found


def binding(this: Description) -> None:
    """A RoleBinding or ClusterRoleBinding."""
    reference = this.obj.get("roleRef") or {}
    this.head(namespace=False)
    this.write(0, f"Role:\n  Kind:\t{reference.get('kind')}\n  Name:\t{reference.get('name')}\nSubjects:\n")
    this.write(1, "Kind\tName\tNamespace\n")
    this.write(1, "----\t----\t---------\n")
    for each in this.obj.get("subjects") or ():
        this.write(1, f"{each.get('kind')}\t{each.get('name')}\t{each.get('namespace', '')}\n")
