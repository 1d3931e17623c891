"""The HTTP handler of `kubectl proxy`: which requests it takes, static files; the rest it passes on to the server."""

from __future__ import annotations

import os
import re

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.forwarding_handler import ForwardingHandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flags


class Filter:
    """Which requests are served."""

    def __init__(self, flags: Flags) -> None:
        self._off = flags.on("disable-filter")
        self._accept = _patterns(flags, "accept-paths")
        self._reject = _patterns(flags, "reject-paths")
        self._hosts = _patterns(flags, "accept-hosts")
        self._methods = _patterns(flags, "reject-methods")

    def allows(self, method: str, path: str, host: str) -> bool:
        """Whether a request is served; the host may have a port."""
        if self._off:
            return True
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return (
            any(each.search(name) for each in self._hosts)
            and any(each.search(path) for each in self._accept)
            and not any(each.search(path) for each in self._reject)
            and not any(each.search(method) for each in self._methods)
        )


def _patterns(flags: Flags, name: str) -> list[re.Pattern[str]]:
    try:
        return [re.compile(each) for each in flags.text(name).split(",") if each]
    except re.error as error:
        raise CLIError(f"error parsing regexp of --{name}: {error}") from None


def handler(context: Context) -> type[ForwardingHandler]:
    """The handler for the flags of the command. Raises CLIError."""
    flags = context.flags
    allowed = Filter(flags)
    prefix = f"/{flags.text('api-prefix').strip('/')}".rstrip("/")
    www, www_prefix = flags.text("www"), f"/{flags.text('www-prefix').strip('/')}/".replace("//", "/")

    class Handler(ForwardingHandler):
        """One connection of a local client."""

        client = context.client
        keepalive = float(flags["keepalive"] or 0)
        append_server_path = flags.on("append-server-path")

        def serve(self) -> None:
            path = self.path.partition("?")[0]
            if not allowed.allows(self.command, path, self.headers.get("Host", "")):
                self.answer(403, b"<h3>Unauthorized</h3>")
            elif www and path.startswith(www_prefix):
                self.static(www, path[len(www_prefix) :])
            elif prefix and path != prefix and not path.startswith(f"{prefix}/"):
                self.answer(404, b"404 page not found\n")
            else:
                self.forward(self.path[len(prefix) :] or "/")

        def static(self, root: str, name: str) -> None:
            from urllib.parse import unquote

            path = os.path.realpath(os.path.join(root, unquote(name)))
            top = os.path.realpath(root)
            if path != top and not path.startswith(top.rstrip(os.sep) + os.sep):
                self.answer(404, b"404 page not found\n")
                return
            try:
                if os.path.isdir(path):
                    if name and not name.endswith("/"):
                        self.answer(301, b"", location=f"{os.path.basename(path)}/")
                        return
                    index = os.path.join(path, "index.html")
                    if not os.path.isfile(index):
                        self.answer(200, _listing(path), "text/html; charset=utf-8")
                        return
                    path = index
                with open(path, "rb") as file:
                    from mimetypes import guess_type

                    self.answer(200, file.read(), guess_type(path)[0] or "application/octet-stream")
            except OSError:
                self.answer(404, b"404 page not found\n")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = serve

    return Handler


def _listing(path: str) -> bytes:
    from html import escape
    from urllib.parse import quote

    names = sorted(f"{name}/" if os.path.isdir(os.path.join(path, name)) else name for name in os.listdir(path))
    lines = "".join(f'<a href="{quote(name)}">{escape(name)}</a>\n' for name in names)
    return f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{lines}</pre>\n'.encode()
