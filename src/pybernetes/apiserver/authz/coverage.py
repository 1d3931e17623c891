"""What one set of rules grants and another does not, in words: the question behind every escalation check.

Wanted rules are taken apart until each asks for one thing only; such a thing is then covered by a single rule of the
other side or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pybernetes.api.quote import quote
from pybernetes.api.rbac.v1 import PolicyRule


def missing(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """What of the wanted rules nobody has who has the held ones, each as a rule for one single thing."""
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(each, part) for each in held)]


def describe(rules: Iterable[PolicyRule]) -> list[str]:
    """Rules for one thing each, put together again by resource; sorted, in upstream's words."""
    simple: dict[tuple[str, str, str | None], PolicyRule] = {}
    other: list[PolicyRule] = []
    for rule in rules:
        if rule.non_resource_urls:
            other.append(rule)
            continue
        names = rule.resource_names
        key = ((rule.api_groups or [""])[0], (rule.resources or [""])[0], names[0] if names else None)
        if key in simple:
            simple[key].verbs = [*(simple[key].verbs or ()), *(rule.verbs or ())]
        else:
            simple[key] = msgspec.structs.replace(rule)
    return sorted({_text(rule) for rule in [*other, *simple.values()]})


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group in rule.api_groups or ():
        for resource in rule.resources or ():
            for verb in rule.verbs or ():
                part = PolicyRule(verbs=[verb], api_groups=[group], resources=[resource])
                if not rule.resource_names:
                    yield part
                for name in rule.resource_names or ():
                    yield msgspec.structs.replace(part, resource_names=[name])
    for url in rule.non_resource_urls or ():
        for verb in rule.verbs or ():
            yield PolicyRule(verbs=[verb], non_resource_urls=[url])


def _covers(held: PolicyRule, part: PolicyRule) -> bool:
    """`part` asks for one verb on one thing."""
    verbs = held.verbs or ()
    if "*" not in verbs and (part.verbs or [""])[0] not in verbs:
        return False
    if part.non_resource_urls:
        wanted = part.non_resource_urls[0]
        return not held.resource_names and any(_url_covers(url, wanted) for url in held.non_resource_urls or ())
    groups = held.api_groups or ()
    if "*" not in groups and (part.api_groups or [""])[0] not in groups:
        return False
    if held.resource_names and (not part.resource_names or part.resource_names[0] not in held.resource_names):
        return False
    resources, resource = held.resources or (), (part.resources or [""])[0]
    if "*" in resources or resource in resources:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in resources


def _url_covers(url: str, wanted: str) -> bool:
    return url == wanted or (url.endswith("*") and wanted.startswith(url.rstrip("*")))


def _text(rule: PolicyRule) -> str:
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts if values) + "}"


def quoted_list(values: Iterable[str]) -> str:
    """A list of texts as Go prints it with %q."""
    return "[" + " ".join(quote(value) for value in values) + "]"
