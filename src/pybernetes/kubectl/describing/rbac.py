"""Descriptions of roles and bindings."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description


def role(this: Description) -> None:
    """A Role or ClusterRole: one line for each resource and group."""
    this.head(namespace=False)
    this.write(0, "PolicyRule:\n")
    this.write(1, "Resources\tNon-Resource URLs\tResource Names\tVerbs\n")
    this.write(1, "---------\t-----------------\t--------------\t-----\n")
    rows: dict[tuple[str, str, str], list[str]] = {}
    for rule in this.obj.get("rules") or ():
        names = " ".join(rule.get("resourceNames") or ())
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                key = (f"{resource}.{group}" if group else resource, "", names)
                rows.setdefault(key, []).extend(rule.get("verbs") or ())
        for url in rule.get("nonResourceURLs") or ():
            rows.setdefault(("", url, ""), []).extend(rule.get("verbs") or ())
    for resource, url, names in sorted(rows):
        verbs = " ".join(dict.fromkeys(rows[resource, url, names]))
        this.write(1, f"{resource}\t[{url}]\t[{names}]\t[{verbs}]\n")


def binding(this: Description) -> None:
    """A RoleBinding or ClusterRoleBinding."""
    reference = this.obj.get("roleRef") or {}
    this.head(namespace=False)
    this.write(0, f"Role:\n  Kind:\t{reference.get('kind')}\n  Name:\t{reference.get('name')}\nSubjects:\n")
    this.write(1, "Kind\tName\tNamespace\n")
    this.write(1, "----\t----\t---------\n")
    for each in this.obj.get("subjects") or ():
        this.write(1, f"{each.get('kind')}\t{each.get('name')}\t{each.get('namespace', '')}\n")
