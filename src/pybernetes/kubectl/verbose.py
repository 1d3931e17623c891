"""The log lines of `-v`: what kubectl asks of the server (6), with headers (7), bodies (8, 9) and curl commands (9)."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.transport import Response

_LIMIT = 1024
"""Bytes of a body shown at level 8."""


class Log:
    """Writes klog's format to stderr."""

    def __init__(self, level: int) -> None:
        self.level = level

    def line(self, where: str, text: str) -> None:
        """One line, with the head that klog gives it."""
        now = time.time()
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(now))
        micro = int(now % 1 * 1e6)
        sys.stderr.write(f"I{stamp}.{micro:06d} {os.getpid():7d} {where}] {text}\n")

    def loaded(self, files: list[str]) -> None:
        """Which kubeconfig files were read."""
        if self.level >= 6:
            for path in files:
                self.line("loader.go:405", f"Config loaded from file:  {path}")

    def undecodable(self, problem: str) -> None:
        """A watch that ended in the middle of an event, or before one."""
        if self.level >= 5:
            text = f'"Unable to decode an event from the watch stream" err="{problem}"'
            self.line("streamwatcher.go:123", text)

    def request(self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """A request that is about to be sent."""
        if self.level >= 8 and body:
            self.line("helper.go:113", f'"Request Body" body={_body(body, self.level)}')
        if self.level >= 9:
            shown = "".join(f' -H "{name}: {_mask(name, value)}"' for name, value in headers)
            self.line("round_trippers.go:527", f"\"Request\" curlCommand=<\n\tcurl -v -X{method} {shown} '{url}'\n >")
        elif self.level >= 7:
            self.line("round_trippers.go:527", f'"Request" verb="{method}" url="{url}" headers={_headers(headers)}')

    def response(self, method: str, url: str, response: Response, seconds: float) -> None:
        """A response whose head has arrived."""
        if self.level < 6:
            return
        shown = f'status="{response.status} {response.reason}"'
        if self.level < 7 or self.level >= 9:
            shown = f'verb="{method}" url="{url}" {shown}'
        if self.level >= 8:
            shown += f" headers={_headers(response.headers)}"
        self.line("round_trippers.go:632", f'"Response" {shown} milliseconds={int(seconds * 1000)}')

    def body(self, content: bytes) -> None:
        """The body of a response."""
        if self.level >= 8:
            self.line("helper.go:113", f'"Response Body" body={_body(content, self.level)}')


def _mask(name: str, value: str) -> str:
    if name.lower() in ("authorization", "proxy-authorization"):
        kind, _, rest = value.partition(" ")
        return f"{kind} <masked>" if rest else "<masked>"
    return value


def _headers(headers: list[tuple[str, str]]) -> str:
    return "<\n" + "".join(f"\t{name}: {_mask(name, value)}\n" for name, value in sorted(headers)) + " >"


def _body(content: bytes, level: int) -> str:
    from pybernetes.kubectl.data import go_quote

    text = content.decode("utf-8", "replace")
    if level < 9 and len(text) > _LIMIT:
        text = f"{text[:_LIMIT]} [truncated {len(text) - _LIMIT} chars]"
    if "\n" in text.rstrip("\n"):
        lines = "".join(f"\t{line}\n" for line in text.rstrip("\n").split("\n"))
        return f"<\n{lines} >"
    return go_quote(text)
