"""`/healthz`, `/livez`, `/readyz`: small checks by name, all of them or one, with `?verbose` and `?exclude=`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from pybernetes.api.errors import PathNotFound
from pybernetes.net.http import Request, Response

Check = Callable[[], Awaitable[None]]
"""Raises when something is wrong; the reason goes to the log, not to the caller."""

_TEXT = "text/plain; charset=utf-8"


class Health:
    """The checks behind the three paths."""

    def __init__(self) -> None:
        self.checks: dict[str, dict[str, Check]] = {"healthz": {}, "livez": {}, "readyz": {}}

    def add(self, name: str, check: Check, paths: tuple[str, ...] = ("healthz", "livez", "readyz")) -> None:
        """Add a check to some of the paths."""
        for path in paths:
            self.checks[path][name] = check

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
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            try:
                await check()
                lines.append(f"[+]{name} ok")
            except Exception:
                lines.append(f"[-]{name} failed: reason withheld")
                failed.append(name)
        unknown = excluded - set(self.checks[path])
        if unknown:
            names = ", ".join(f'"{name}"' for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            return Response("\n".join([*lines, f"{path} check failed", ""]).encode(), 500, _TEXT, _HEADERS)
        if "verbose" in query and not single:
            return Response("\n".join([*lines, f"{path} check passed", ""]).encode(), 200, _TEXT, _HEADERS)
        return Response(b"ok", 200, _TEXT, None if slash else _HEADERS)


_HEADERS = [("X-Content-Type-Options", "nosniff")]
