"""Serves `/healthz`, `/livez` and `/readyz` from small checks by name; with `?verbose` and `?exclude=`.

How the checks went when all of a path were asked for is counted, for `/metrics/slis`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from .metrics import Registry

log = logging.getLogger(__name__)

Check = Callable[[], bool | str]
"""False, or words for the log, if something is wrong: True or no words are well."""


class Checks:
    """The checks of a component: by path (`healthz`), then by name."""

    def __init__(self, paths: Mapping[str, Mapping[str, Check]]) -> None:
        self.paths = paths
        self._latest: dict[tuple[str, str], bool] = {}
        self._counts: dict[tuple[str, str, bool], int] = {}

    def answer(self, path: str, query: str = "") -> tuple[int, str] | None:
        """Status and text for `/healthz`, or `/healthz/NAME`; None for what is neither."""
        root, _, single = path.strip("/").partition("/")
        checks = self.paths.get(root)
        if checks is None or (single and single not in checks):
            return None
        if single:
            found = _problem(single, checks[single])
            return (200, "ok") if found is None else (500, f"internal server error: {found}\n")
        options = parse_qs(query, keep_blank_values=True, errors="replace")
        excluded = {name for value in options.get("exclude", ()) for name in value.split(",") if name}
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            well = _problem(name, check) is None
            failed |= not well
            lines.append(f"[+]{name} ok" if well else f"[-]{name} failed: reason withheld")
            self._latest[root, name] = well
            self._counts[root, name, well] = self._counts.get((root, name, well), 0) + 1
        if unknown := ", ".join(f'"{name}"' for name in sorted(excluded - set(checks))):
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
        if failed:
            return 500, "\n".join([*lines, f"{root} check failed", ""])
        return 200, "\n".join([*lines, f"{root} check passed", ""]) if "verbose" in options else "ok"

    def slis(self) -> bytes:
        """`/metrics/slis`."""
        registry = Registry()
        latest = registry.gauge(
            "kubernetes_healthcheck", "[STABLE] Whether a check was well the last time.", ("name", "type")
        )
        for (path, name), well in self._latest.items():
            latest.set(float(well), name, path)
        counts = registry.counter(
            "kubernetes_healthchecks_total",
            "[STABLE] How often checks were and were not well.",
            ("name", "status", "type"),
        )
        for (path, name, well), count in self._counts.items():
            counts.inc(name, "success" if well else "error", path, by=float(count))
        return registry.render()


def _problem(name: str, check: Check) -> str | None:
    """The error of a check, None if it passes."""
    found = check()
    if found is True or found == "":
        return None
    log.warning("health check %s failed: %s", name, found or "not well")
    return str(found or "not well")
