"""Odd values by the type and meaning of a field: what a program that computes with it may not expect.

Most of them pass upstream's validation somewhere, because a field's type allows them.
"""

from __future__ import annotations

import random
from typing import Any

from pybernetes.api.schema import FieldInfo

TIMES = (
    "0000-05-01T00:00:00Z",
    "0000-02-29T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
    "2024-01-01T1:00:00Z",
    "2024-01-01T00:00:00+24:60",
    "2024-06-30T23:59:60Z",
    "2024-01-01T00:00:00,5Z",
    "2024-01-01t00:00:00z",
    "9999-12-31T23:59:59.999999999-23:59",
)
QUANTITIES = (
    "0",
    "-1",
    "1e18",
    "9223372036854775807",
    "9223372036854775808E",
    "0.0000000000001",
    "1n",
    "1" + "0" * 300,
    "9" * 4400,
    "1e-300",
    "999999999999Ei",
)
INTEGERS = (0, -1, 1, 2, 31, 32, 33, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
INT_OR_STRINGS = (0, -1, 2**31 - 1, "0%", "100%", "101%", "99999999999999999999%", "-1%", "%", "1.5%", "http")
SCHEDULES = (
    "* * * * *",
    "0 0 30 2 *",
    "0 0 29 2 *",
    "*/59 23 31 12 0",
    "@every 1ns",
    "@every 99999h",
    "@reboot",
    "TZ=Pacific/Apia 0 0 31 12 *",
    "CRON_TZ=UTC 0 0 * * *",
    "0-59/1,0-59/1 * * * *",
)
TEXTS = (
    "",
    "a",
    ".",
    "..",
    "../../../../etc/passwd",
    "/proc/self/mem",
    "x" * 253,
    "x" * 70000,
    "$(A)" * 1000,
    "$" * 70000,
    "{{.}}",
    ".." * 30,
    "{.." * 20,
    "a\nb",
    "\x1b[2J",
    "\u202eabc",
    "👩‍👩‍👧",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1e309",
    "NaN",
    "(a+)+$",
    "[" * 200,
    "::ffff:127.0.0.1",
    "0.0.0.0/0",
    "::/0",
    "sha256:" + "0" * 64,
    "registry.invalid:99999/a:b",
    *TIMES[:3],
    *QUANTITIES[:5],
    *SCHEDULES[:3],
)
ANNOTATIONS = (
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubectl.kubernetes.io/restartedAt",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
    "controller.kubernetes.io/pod-deletion-cost",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "endpoints.kubernetes.io/over-capacity",
    "service.kubernetes.io/topology-mode",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/provisioned-by",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
    "kubernetes.io/psp",
    "container.apparmor.security.beta.kubernetes.io/main",
    "scheduler.alpha.kubernetes.io/node-selector",
    "autoscaling.alpha.kubernetes.io/conditions",
    "storageclass.kubernetes.io/is-default-class",
    "control-plane.alpha.kubernetes.io/leader",
    "rbac.authorization.kubernetes.io/autoupdate",
    "kubernetes.io/service-account.name",
    "kubernetes.io/ingress-bandwidth",
)
"""Annotations that some component reads."""


def odd(info: FieldInfo, draw: random.Random, depth: int = 3) -> Any:
    """An odd value of the field's type."""
    match info.kind:
        case "string" if info.enum:
            return draw.choice((*info.enum, *TEXTS[:4]))
        case "string" if info.format in ("date-time", "micro-time"):
            return draw.choice(TIMES)
        case "string" if info.format == "quantity":
            return draw.choice(QUANTITIES)
        case "string" if info.format == "int-or-string":
            return draw.choice(INT_OR_STRINGS)
        case "string" if info.wire == "schedule":
            return draw.choice(SCHEDULES)
        case "string":
            return draw.choice(TEXTS)
        case "int":
            bound = 2**31 if info.format == "int32" else 2**63
            return draw.choice([number for number in INTEGERS if -bound <= number < bound])
        case "bool":
            return draw.random() < 0.5
        case "float":
            return draw.choice((0.0, -0.0, 1e308, -1e308, 5e-324))
        case "list" if info.items is not None:
            count = draw.choice((0, 1, 1, 2, 300)) if depth > 1 else 1
            item = odd(info.items, draw, depth - 1)
            return (
                [item] * count
                if draw.random() < 0.5
                else [odd(info.items, draw, depth - 1) for _ in range(min(count, 3))]
            )
        case "map" if info.items is not None:
            keys = ANNOTATIONS if info.wire == "annotations" else ("a", "cpu", "memory", "example.com/x", "x" * 63)
            return {draw.choice(keys): odd(info.items, draw, depth - 1) for _ in range(3)}
        case "struct" if info.struct is not None:
            return document(info.struct, draw, depth - 1)
    return draw.choice(({}, [], {"a": [{"b": TEXTS[4]}]}, 2**63 - 1, "x", None))


def document(cls: Any, draw: random.Random, depth: int = 3) -> dict[str, Any]:
    """An object of a class with a few of its fields, all odd."""
    from pybernetes.api.schema import fields

    if depth < 0:
        return {}
    known = [info for info in fields(cls) if info.wire not in ("kind", "apiVersion")]
    chosen = [info for info in known if info.required or draw.random() < 2 / (len(known) + 1)]
    return {info.wire: odd(info, draw, depth) for info in chosen}
