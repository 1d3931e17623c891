"""`/healthz`, `/livez`, `/readyz`: small checks by name, all of them or one, with `?verbose` and `?exclude=`.

How the checks went when all were asked for is counted, for `/metrics/slis`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pybernetes.api.errors import PathNotFound
from pybernetes.net.http import Request, Response
from pybernetes.net.messages import NOSNIFF

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[None]]
"""Raises when something is wrong; the reason goes to the log, not to the caller."""

_TEXT = "text/plain; charset=utf-8"


class Health:
    """The checks behind the three paths.

    `latest` tells for a path and a check whether it was well, `counts` how often it was and was not.
    """

    def __init__(self) -> None:
        self.checks: dict[str, dict[str, Check]] = {"healthz": {}, "livez": {}, "readyz": {}}
        self.counts: dict[tuple[str, str, bool], int] = {}
        self.latest: dict[tuple[str, str], bool] = {}

    def add(self, name: str, check: Check, paths: tuple[str, ...] = ("healthz", "livez", "readyz")) -> None:
        """Add a check to some of the paths."""
        for path in paths:
            self.checks[path][name] = check

    @property
    def paths(self) -> list[str]:
        """Every path that can be asked for."""
        return [
            f"/{path}{check}"
            for path, checks in self.checks.items()
            for check in ("", *(f"/{each}" for each in checks))
        ]

    def collect(self) -> Iterator[Metric]:
        """The metric families of `/metrics/slis`."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        labels = ("name", "type")
        latest = GaugeMetricFamily("kubernetes_healthcheck", "Whether a check was well the last time.", labels=labels)
        for (path, name), well in sorted(self.latest.items()):
            latest.add_metric((name, path), well)
        yield latest
        counts = CounterMetricFamily(
            "kubernetes_healthchecks", "How often checks were and were not well.", labels=(*labels, "status")
        )
        for (path, name, well), count in sorted(self.counts.items()):
            counts.add_metric((name, path, "success" if well else "error"), count)
        yield counts

    async def __call__(self, request: Request) -> Response:
        path, slash, single = request.info.path[1:].partition("/")
        checks = self.checks[path]
        if slash:
            if single not in checks:
                raise PathNotFound
            checks = {single: checks[single]}
        query = parse_qs(request.query_string, keep_blank_values=True)
        excluded = {name for value in query.get("exclude", ()) for name in value.split(",") if name}
        lines, failed = [], []
        outcomes: dict[Check, bool] = {}  # one check may have several names, and takes long when it fails
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            if check not in outcomes:
                outcomes[check] = await _is_well(name, check)
            well = outcomes[check]
            if well:
                lines.append(f"[+]{name} ok")
            else:
                lines.append(f"[-]{name} failed: reason withheld")
                failed.append(name)
            if not slash:
                self.latest[path, name] = well
                self.counts[path, name, well] = self.counts.get((path, name, well), 0) + 1
        unknown = excluded - set(self.checks[path])
        if unknown:
            names = ", ".join(f'"{name}"' for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            return Response("\n".join([*lines, f"{path} check failed", ""]).encode(), 500, _TEXT, [NOSNIFF])
        if "verbose" in query and not single:
            return Response("\n".join([*lines, f"{path} check passed", ""]).encode(), 200, _TEXT, [NOSNIFF])
        return Response(b"ok", 200, _TEXT, None if slash else [NOSNIFF])


async def _is_well(name: str, check: Check) -> bool:
    try:
        await check()
    except Exception as error:  # whatever it is, it is what the check has found
        log.info("health check %s failed: %s", name, str(error) or type(error).__name__)
        return False
    return True
