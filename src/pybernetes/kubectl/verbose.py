"""The log lines of `-v`: requests with their time (6), headers (7), bodies (8), curl commands and connections (9).

The lines, their places in upstream's source and what each level leaves out are those of kubectl v1.36.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.transport import Response, Transport

_LIMITS = {8: 1024, 9: 10240}
"""Bytes of a body that a level shows; level 10 shows all of it."""
_KNOWN_AUTHENTICATION = ("bearer", "basic", "negotiate")


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
                self.line("loader.go:407", f"Config loaded from file:  {path}")

    def undecodable(self, problem: str) -> None:
        """A watch that ended in the middle of an event, or before one."""
        if self.level >= 5:
            text = f'"Unable to decode an event from the watch stream" err="{problem}"'
            self.line("streamwatcher.go:123", text)

    def no_body(self, method: str, path: str) -> None:
        """The empty body of a request that is about to be sent."""
        if self.level >= 8:
            self._body("Request", b"", _place(method, path))

    def request(self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """A request that is about to be sent."""
        if self.level >= 8 and body:
            self._body("Request", body, _place(method, url))
        if self.level >= 9:
            from pybernetes.kubectl.data import go_quote

            shown = "".join(f" -H {go_quote(f'{_canonical(name)}: {_mask(name, value)}')}" for name, value in headers)
            self.line("round_trippers.go:527", f"\"Request\" curlCommand=<\n\tcurl -v -X{method} {shown} '{url}'\n >")
        elif self.level >= 7:
            self.line("round_trippers.go:527", f'"Request" verb="{method}" url="{url}" headers={_headers(headers)}')

    def resolved(self, host: str, addresses: list[str]) -> None:
        """The addresses that a name has; an address has none."""
        if self.level >= 9 and host not in addresses:
            shown = ",".join(f'{{"IP":"{address}","Zone":""}}' for address in addresses)
            self.line("round_trippers.go:547", f'"HTTP Trace: DNS Lookup resolved" host="{host}" address=[{shown}]')

    def dialed(self, host: str, port: int, error: OSError | None = None) -> None:
        """A connection that was made, or not."""
        if self.level < 9:
            return
        shown = f'network="tcp" address="{f"[{host}]" if ":" in host else host}:{port}"'
        if error is None:
            self.line("round_trippers.go:562", f'"HTTP Trace: Dial succeed" {shown}')
        else:
            reason = (error.strerror or str(error)).lower()
            problem = f'err="dial tcp {host}:{port}: connect: {reason}"'
            self.line("round_trippers.go:560", f'"HTTP Trace: Dial failed" {shown} {problem}')

    def response(self, method: str, url: str, response: Response | None, seconds: float, transport: Transport) -> None:
        """A response whose head has arrived, or a request that has none."""
        if self.level < 6:
            return
        shown = f'status="{f"{response.status} {response.reason}" if response is not None else ""}"'
        if self.level < 7 or self.level >= 9:
            shown = f'verb="{method}" url="{url}" {shown}'
        if self.level >= 8:
            shown += f" headers={_headers(response.headers if response is not None else [])}"
        shown += f" milliseconds={int(seconds * 1000)}"
        if self.level >= 9:
            timing = transport.timing
            if timing.reused:
                shown += f" getConnectionMilliseconds={int(timing.connection * 1000)}"
            else:
                for name, part in (("dnsLookup", timing.lookup), ("dial", timing.dial), ("tlsHandshake", timing.tls)):
                    shown += f" {name}Milliseconds={int(part * 1000)}"
            if timing.server:
                shown += f" serverProcessingMilliseconds={int(timing.server * 1000)}"
        self.line("round_trippers.go:632", f'"Response" {shown}')

    def retry(self, url: str, seconds: int, attempt: int) -> None:
        """A request that is sent again because the server was too busy."""
        if self.level >= 4:
            text = f'"Got a Retry-After response" delay="{seconds}s" attempt={attempt} url="{url}"'
            self.line("with_retry.go:234", text)

    def body(self, method: str, url: str, content: bytes) -> None:
        """The body of a response."""
        if self.level >= 8:
            self._body("Response", content, _place(method, url))

    def _body(self, which: str, content: bytes, place: str) -> None:
        from pybernetes.kubectl.data import go_quote

        text = content.decode("utf-8", "replace")
        limit = _LIMITS.get(self.level, len(text))
        if len(text) > limit:
            text = f"{text[:limit]} [truncated {len(text) - limit} chars]"
        shown = _lines(text) if "\n" in text else go_quote(text)
        self.line(place, f'"{which} Body" body={shown}')


_PLACES = {"DELETE": "helper.go:202", "POST": "helper.go:246", "PATCH": "helper.go:269", "PUT": "helper.go:319"}
_ROOTS = {"/api": "discovery_client.go:255", "/apis": "discovery_client.go:318", "/version": "discovery_client.go:667"}


def _place(method: str, url: str) -> str:
    """Where in upstream's source a request is made."""
    path = "/" + url.partition("://")[2].partition("/")[2] if "://" in url else url
    path = path.partition("?")[0]
    if path in _ROOTS:
        return _ROOTS[path]
    words = path.strip("/").split("/")
    words = words[3:] if words[0] == "apis" else words[2:]
    words = words[2:] if words[:1] == ["namespaces"] and len(words) > 2 else words
    return _PLACES.get(method) or ("helper.go:105" if len(words) > 1 else "helper.go:113")


def _mask(name: str, value: str) -> str:
    """A header's value without the credentials of Authorization."""
    if name.lower() != "authorization" or not value:
        return value
    kind, _, rest = value.partition(" ")
    if kind.lower() not in _KNOWN_AUTHENTICATION:
        return "<masked>"
    return f"{kind} <masked>" if rest else kind


def _canonical(name: str) -> str:
    """A header's name as Go writes it: each word with one capital."""
    return "-".join(word[:1].upper() + word[1:].lower() for word in name.split("-"))


def _headers(headers: list[tuple[str, str]]) -> str:
    shown = sorted((_canonical(name), _mask(name, value)) for name, value in headers)
    return _lines("".join(f"{name}: {value}\n" for name, value in shown)) if shown else '""'


def _lines(text: str) -> str:
    """Text of several lines as klog shows it."""
    body = "".join(f"\t{line}\n" for line in text.removesuffix("\n").split("\n"))
    return f"<\n{body} >"
