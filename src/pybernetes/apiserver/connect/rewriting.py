"""Answers of proxied servers, as if they had been given where the proxy is: redirects, and links in pages. Pure.

A server behind a proxy does not know that its `/` is the proxy's `/api/v1/namespaces/.../proxy/`. Links that begin
with a slash, or that name the server itself, get that in front; all others lead elsewhere and stay.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

_ATTRIBUTES = {
    "a": ("href",),
    "applet": ("codebase",),
    "area": ("href",),
    "audio": ("src",),
    "base": ("href",),
    "blockquote": ("cite",),
    "body": ("background",),
    "button": ("formaction",),
    "command": ("icon",),
    "del": ("cite",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("longdesc", "src"),
    "head": ("profile",),
    "html": ("manifest",),
    "iframe": ("longdesc", "src"),
    "img": ("longdesc", "src", "usemap"),
    "input": ("src", "usemap", "formaction"),
    "ins": ("cite",),
    "link": ("href",),
    "object": ("classid", "codebase", "data", "usemap"),
    "q": ("cite",),
    "script": ("src",),
    "source": ("src",),
    "video": ("poster", "src"),
}
"""Which attributes of which elements are links; upstream's list."""

_TEXT_ONLY = ("iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|$)|<(?P<name>[a-zA-Z][^\s/>]*)(?P<rest>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>", re.DOTALL
)
_ATTRIBUTE = re.compile(r"([^\s=/\"'>][^\s=/>]*)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>]+))?")
_SAFE = "/:@!$&'()*+,;=-._~%"


def clean(path: str) -> str:
    """A path without `.`, `..` and repeated slashes, as Go's path.Clean makes it."""
    if not path:
        return ""
    made = posixpath.normpath(path)
    return "/" + made.lstrip("/") if made.startswith("/") else made


def joined(*parts: str) -> str:
    """Paths one behind the other, as Go's path.Join; a slash at the end stays."""
    given = [part for part in parts if part]
    made = clean("/".join(given)) if given else ""
    return made + "/" if given and given[-1].endswith("/") and not made.endswith("/") else made


class Rewriter:
    """Links of one answer."""

    def __init__(self, prepended: str, authority: str, host: str) -> None:
        """`prepended`: where the server's `/` is; `authority`: the server's own; `host`: what the client asked for."""
        self._prepended = prepended
        self._authority = authority
        self._host = host

    def url(self, text: str) -> str:
        """A link."""
        try:
            parts = urlsplit(text)
        except ValueError:
            return text
        if parts.netloc and parts.netloc not in (self._authority, self._host):
            return text
        if not parts.path.startswith("/"):
            return text
        scheme, netloc = parts.scheme, parts.netloc
        if parts.netloc != self._host:
            scheme = netloc = ""
        path = parts.path
        if not path.startswith(self._prepended):
            path = joined(self._prepended, path)
            if parts.path.endswith("/") and not path.endswith("/"):
                path += "/"
        return urlunsplit(SplitResult(scheme, netloc, quote(path, safe=_SAFE), parts.query, parts.fragment))

    def page(self, text: str) -> str:
        """A page of HTML; its start tags are written anew."""
        made: list[str] = []
        place = 0
        while (found := _TOKEN.search(text, place)) is not None:
            made.append(text[place : found.start()])
            place = found.end()
            if found["name"] is None:
                made.append(found[0])
                continue
            name = found["name"].lower()
            made.append(_tag(name, found["rest"], self.url))
            if name in _TEXT_ONLY and not found["rest"].rstrip().endswith("/"):
                end = re.compile(rf"</{name}", re.IGNORECASE).search(text, place)
                stop = end.start() if end else len(text)
                made.append(text[place:stop])
                place = stop
        made.append(text[place:])
        return "".join(made)


def _tag(name: str, rest: str, rewritten: Callable[[str], str]) -> str:
    links = _ATTRIBUTES.get(name, ())
    closing = rest.rstrip().endswith("/")
    parts = [f"<{name}"]
    for found in _ATTRIBUTE.finditer(rest.rstrip().removesuffix("/") if closing else rest):
        key, value = found[1].lower(), found[2] or ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        value = html.unescape(value)
        if key in links:
            value = rewritten(value)
        parts.append(f' {key}="{_escaped(value)}"')
    return "".join(parts) + ("/>" if closing else ">")


def _escaped(text: str) -> str:
    pairs = (("&", "&amp;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"))
    for char, entity in pairs:
        text = text.replace(char, entity)
    return text
