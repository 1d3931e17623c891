"""ABAC: a file of policies, one JSON object a line, read once at the start. It allows or has no opinion.

    {"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy",
     "spec":{"user":"alice","namespace":"*","resource":"pods","apiGroup":"*","readonly":true}}

Lines of v0 or without a version are of the oldest form, whose empty fields match everything; `user` and so on stand in
them without a `spec`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import ClassVar

import msgspec

from pybernetes.api import configfile
from pybernetes.api.authorization.v1 import NonResourceRule, ResourceRule, SubjectRulesReviewStatus

from ..requestinfo import RequestInfo
from ..user import AUTHENTICATED, User
from .authorizer import ALLOW, NO_OPINION, Answer

log = logging.getLogger(__name__)
_V0, _V1BETA1 = (f"abac.authorization.kubernetes.io/{version}" for version in ("v0", "v1beta1"))
_SCHEME = configfile.Scheme({(_V0, "Policy"), (_V1BETA1, "Policy")}, "pkg/apis/abac/register.go:33")
_LONGEST = 64 * 1024  # bytes of a line; upstream's
_READS = ("get", "list", "watch")


class PolicySpec(configfile.Section):
    """The conditions of a policy; all that are given must match."""

    go_package: ClassVar[str] = "v1beta1"

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""


class Policy(configfile.Section):
    """A line of today's form."""

    kind: str = ""
    api_version: str = ""
    spec: PolicySpec = msgspec.field(default_factory=PolicySpec)


class ABAC:
    """Asks the policies in the order of the file."""

    kind = "ABAC"
    name = "abac"

    def __init__(self, file: Path) -> None:
        """Raises ValueError or OSError for a file that cannot be read."""
        self._policies = read_policies(file)

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        """Allowed if a policy matches."""
        for policy in self._policies:
            if _applies(policy, user) and _matches(policy, info):
                return ALLOW, ""
        return NO_OPINION, "No policy matched."

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """The policies as rules."""
        found = [each for each in self._policies if _applies(each, user) and each.namespace in ("*", namespace)]
        return SubjectRulesReviewStatus(
            resource_rules=[
                ResourceRule(verbs=_verbs(each), api_groups=[each.api_group], resources=[each.resource])
                for each in found
                if each.resource
            ],
            non_resource_rules=[
                NonResourceRule(verbs=_verbs(each), non_resource_urls=[each.non_resource_path])
                for each in found
                if each.non_resource_path
            ],
            incomplete=False,
        )


def read_policies(file: Path) -> list[PolicySpec]:
    """All policies of a file. Raises ValueError, which names the line."""
    policies = []
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if len(line) >= _LONGEST:
            raise ValueError(f"error reading policy file {file}: bufio.Scanner: token too long")
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        try:
            policies.append(_policy(line))
        except ValueError as error:
            words = line.decode("utf-8", "replace").removesuffix("\r")
            raise ValueError(f"error reading policy file {file}, line {number}: {words}: {error}") from None
    return policies


def _policy(line: bytes) -> PolicySpec:
    value, _ = configfile.parse(line)
    version, kind = configfile.named_type(value)
    if version in ("", _V0):
        if kind not in ("", "Policy"):
            raise configfile.not_registered(version or _V0, kind, _SCHEME)
        log.warning("a policy of the oldest form: %s", line.decode("utf-8", "replace"))
        return _oldest(configfile.decode(PolicySpec, value or {})[0])
    if (version, kind) not in _SCHEME.kinds:
        raise configfile.not_registered(version, kind, _SCHEME)
    spec = configfile.decode(Policy, value)[0].spec
    if "*" in (spec.user, spec.group):
        spec = msgspec.structs.replace(spec, user="", group=AUTHENTICATED)
    return spec


def _oldest(spec: PolicySpec) -> PolicySpec:
    """A policy of the oldest form: empty fields match everything, and every authenticated user."""
    all_users = "*" in (spec.user, spec.group) or not (spec.user or spec.group)
    return PolicySpec(
        user="" if all_users else spec.user,
        group=AUTHENTICATED if all_users else spec.group,
        readonly=spec.readonly,
        api_group="*",
        resource=spec.resource or "*",
        namespace=spec.namespace or "*",
        non_resource_path="" if spec.namespace or spec.resource else "*",
    )


def _applies(policy: PolicySpec, user: User) -> bool:
    if policy.user and policy.user != user.name:
        return False
    if policy.group and policy.group not in user.groups:
        return False
    return bool(policy.user or policy.group)


def _matches(policy: PolicySpec, info: RequestInfo) -> bool:
    if policy.readonly and info.verb not in _READS:
        return False
    if info.is_resource:
        return (
            policy.namespace in ("*", info.namespace)
            and policy.resource in ("*", info.resource)
            and policy.api_group in ("*", info.group)
        )
    path = policy.non_resource_path
    return path in ("*", info.path) or (path.endswith("*") and info.path.startswith(path.rstrip("*")))


def _verbs(policy: PolicySpec) -> list[str]:
    return list(_READS) if policy.readonly else ["*"]
