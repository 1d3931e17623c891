"""/logs: files below a folder of the node (/var/log), and lists of its folders. Nothing outside of it is served.

With `?query=` (where enableSystemLogQuery is on) the logs of services (`log_query`).
"""

from __future__ import annotations

import html
import mimetypes
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pybernetes.component import offload
from pybernetes.net.http import Response

from .answers import Refused, text
from .log_query import LogQuery, check_query, parse_query, read_query

if TYPE_CHECKING:
    from .server import Call

_PIECE = 1 << 16
OWNER, WITHIN = "system logs", 10.0


class SystemLogs:
    """Serves a folder."""

    def __init__(self, folder: str, *, query: bool = False) -> None:
        """`query`: whether logs of services are served."""
        self._folder, self._query = Path(folder), query

    async def __call__(self, call: Call) -> Response | None:
        """A file, or what is in a folder."""
        if self._query and (query := parse_query(call.query)) is not None:
            if any(call.parts):
                raise Refused(406, "path not allowed in query mode\n")
            try:
                await offload.run(OWNER, WITHIN, check_query, query, self._folder)
            except (OSError, ValueError):
                raise Refused(500, "500 Internal Server Error\n") from None
            if query.services:
                await self._send_query(call, query)
                return None
            call.parts = query.files[0].replace("\\", "/").lstrip("/").split("/")
        if ".." in call.parts:
            raise Refused(400, "invalid URL path\n")
        path = self._folder.joinpath(*(part for part in call.parts if part))
        try:
            # In a thread: a link may lead to a file system that does not answer.
            found = await offload.run(OWNER, WITHIN, self._find, path, call.parts[-1])
            if isinstance(found, Response):
                return found
            await _send(call, found)
            return None
        except FileNotFoundError:
            raise Refused(404, "404 page not found\n") from None
        except PermissionError:
            raise Refused(403, "403 Forbidden\n") from None
        except (OSError, ValueError):
            raise Refused(500, "500 Internal Server Error\n") from None

    async def _send_query(self, call: Call, query: LogQuery) -> None:
        stream = call.request.connection.stream(call.request, 200, "text/plain;charset=UTF-8")
        async with aclosing(read_query(query, self._folder)) as pieces:
            async for piece in pieces:
                stream.write(piece)
                await stream.drain()
        stream.end()

    def _find(self, path: Path, name: str) -> Response | Path:
        """A list of a folder, or the file to send."""
        resolved = path.resolve(strict=True)
        if not resolved.is_relative_to(self._folder.resolve()):
            raise Refused(404, "404 page not found\n")
        if resolved.is_dir():
            return _listing(resolved) if not name else _redirect(name)
        if not resolved.is_file():
            raise Refused(404, "404 page not found\n")
        return resolved


def _redirect(name: str) -> Response:
    return text("", 301, [("Location", f"{quote(name)}/")])


def _listing(folder: Path) -> Response:
    lines = []
    for path in sorted(folder.iterdir()):
        name = path.name + ("/" if path.is_dir() else "")
        lines.append(f'<a href="{quote(name)}">{html.escape(name)}</a>\n')
    body = f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{"".join(lines)}</pre>\n'
    return Response(body.encode(), 200, "text/html; charset=utf-8", [])


async def _send(call: Call, path: Path) -> None:
    """In pieces: logs of systems are long."""
    kind = mimetypes.guess_type(path.name)[0] or "text/plain; charset=utf-8"
    with await offload.run(OWNER, WITHIN, path.open, "rb") as file:
        stream = call.request.connection.stream(call.request, 200, kind)
        while piece := await offload.run(OWNER, WITHIN, file.read, _PIECE):
            stream.write(piece)
            await stream.drain()
        stream.end()
