"""The Pod Security Standards: what each check has against a pod, in upstream's words.

A check belongs to a level and has versions, each from a release on. A namespace that pins an old version is judged by
the checks of that release. Restricted checks may take the place of baseline ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from pybernetes.api.core.v1 import PodSpec

from . import baseline, restricted
from .policy import BASELINE, PRIVILEGED, RESTRICTED, LevelVersion
from .wording import Annotations, Judge, Violation, for_windows, in_user_namespace, unless


class Check(NamedTuple):
    """One of the standards: its versions, each with the first minor release it is for."""

    id: str
    level: str
    versions: tuple[tuple[int, Judge], ...]
    replaces: str = ""
    """The baseline check that it takes the place of, in all of its versions."""


def violations(standard: LevelVersion, annotations: Annotations | None, spec: PodSpec) -> list[Violation]:
    """The pod's violations of the standard."""
    if standard.level == PRIVILEGED:
        return []
    minor = standard.minor
    judges = _judges(standard.level, _NEWEST if minor is None else min(minor, _NEWEST))
    found = (judge(annotations or {}, spec) for judge in judges)
    return [each for each in found if each is not None]


def reason(found: Iterable[Violation]) -> str:
    """In short, what many pods may have in common."""
    return ", ".join(each[0] for each in found)


def detail(found: Iterable[Violation]) -> str:
    """In full."""
    return ", ".join(f"{short} ({long})" if long else short for short, long in found)


@cache
def _judges(level: str, minor: int) -> tuple[Judge, ...]:
    """The checks of a level in a release: baseline first, each by name."""
    found: dict[str, dict[str, tuple[Check, Judge]]] = {BASELINE: {}, RESTRICTED: {}}
    for check in CHECKS:
        fitting = [judge for since, judge in check.versions if since <= minor]
        if fitting:
            found[check.level][check.id] = (check, fitting[-1])
    if level == BASELINE:
        return tuple(found[BASELINE][each][1] for each in sorted(found[BASELINE]))
    replaced = {check.replaces for check, _ in found[RESTRICTED].values()}
    baseline = [found[BASELINE][each][1] for each in sorted(found[BASELINE]) if each not in replaced]
    return (*baseline, *(found[RESTRICTED][each][1] for each in sorted(found[RESTRICTED])))


CHECKS: Final = (
    Check("appArmorProfile", BASELINE, ((0, baseline.app_armor),)),
    Check("capabilities_baseline", BASELINE, ((0, baseline.capabilities),)),
    Check("hostNamespaces", BASELINE, ((0, baseline.host_namespaces),)),
    Check("hostPathVolumes", BASELINE, ((0, baseline.host_path),)),
    Check("hostPorts", BASELINE, ((0, baseline.host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, ((34, baseline.probe_hosts),)),
    Check("privileged", BASELINE, ((0, baseline.privileged),)),
    Check("procMount", BASELINE, ((0, baseline.proc_mount), (35, unless(in_user_namespace, baseline.proc_mount)))),
    Check(
        "seLinuxOptions",
        BASELINE,
        (
            (0, baseline.se_linux(baseline.SE_LINUX)),
            (31, baseline.se_linux((*baseline.SE_LINUX, "container_engine_t"))),
        ),
    ),
    Check("seccompProfile_baseline", BASELINE, ((0, baseline.seccomp_annotations), (19, baseline.seccomp))),
    Check("sysctls", BASELINE, tuple((minor, baseline.sysctls(minor)) for minor in baseline.SYSCTLS)),
    Check("windowsHostProcess", BASELINE, ((0, baseline.windows_host_process),)),
    Check(
        "allowPrivilegeEscalation",
        RESTRICTED,
        ((8, restricted.escalation), (25, unless(for_windows, restricted.escalation))),
    ),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        ((22, restricted.few_capabilities), (25, unless(for_windows, restricted.few_capabilities))),
        replaces="capabilities_baseline",
    ),
    Check("procMount_restricted", RESTRICTED, ((35, baseline.proc_mount),), replaces="procMount"),
    Check("restrictedVolumes", RESTRICTED, ((0, restricted.few_volumes),), replaces="hostPathVolumes"),
    Check("runAsNonRoot", RESTRICTED, ((0, restricted.non_root), (35, unless(in_user_namespace, restricted.non_root)))),
    Check(
        "runAsUser",
        RESTRICTED,
        ((23, restricted.non_zero_user), (35, unless(in_user_namespace, restricted.non_zero_user))),
    ),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        ((19, restricted.seccomp_required), (25, unless(for_windows, restricted.seccomp_required))),
        replaces="seccompProfile_baseline",
    ),
)
_NEWEST: Final = max(check.versions[-1][0] for check in CHECKS)
