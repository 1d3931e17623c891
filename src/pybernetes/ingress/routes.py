"""Which rule a request belongs to: the rules of all Ingresses, by host and path (pure).

Hosts: the very one, then a wildcard for one label, then rules without a host. Paths: an exact one first, then the
longest, where a pattern's length is that of its text; of equal ones the oldest Ingress's. A path that no rule of its
host fits goes to the host's default backend, then to the oldest default backend of an Ingress without rules.
A change of an Ingress makes only the hosts anew that it names.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from pybernetes.client.keys import Key

from .rules import EXACT, REGEX, Certificate, Compiled, Rule

_UNUSUAL = re.compile(r"%|//|/\.")
_GROUP = re.compile(r"\$(\d)")
_SAFE = re.compile(rb"[^!$&'()*+,\-./0-9:;=@A-Z_a-z~%?#\[\]]")


class BadPath(ValueError):
    """A path that leads out of the root, or cannot be read."""


class HostRules:
    """The rules of one host."""

    def __init__(self, rules: list[Rule], default: Rule | None) -> None:
        """Of rules for the same path the first counts."""
        self.default = default
        self._exact: dict[str, Rule] = {}
        self._prefixes: dict[str, Rule] = {}
        patterns: dict[str, Rule] = {}
        for rule in rules:
            where = self._exact if rule.kind == EXACT else patterns if rule.kind == REGEX else self._prefixes
            where.setdefault(rule.path, rule)
        self._patterns = sorted(patterns.values(), key=lambda rule: -len(rule.path))
        self._lengths = sorted({len(path) for path in self._prefixes}, reverse=True)

    def find(self, path: str) -> Rule | None:
        """The rule for a path in its normal form."""
        rule = self._exact.get(path)
        if rule is not None:
            return rule
        rule = self._prefix(path)
        for each in self._patterns:
            if rule is not None and len(each.path) <= len(rule.path):
                break
            if each.pattern.match(path):
                return each
        return rule or self.default

    def _prefix(self, path: str) -> Rule | None:
        size = len(path)
        for length in self._lengths:
            if size == length or (size > length and path[length] == "/"):
                rule = self._prefixes.get(path[:length])
                if rule is not None:
                    return rule
        return None


class Routes:
    """The rules of all Ingresses."""

    def __init__(self) -> None:
        self._ingresses: dict[Key, Compiled] = {}
        self._by_host: dict[str, set[Key]] = {}
        self._hosts: dict[str, HostRules] = {}
        self.default: Rule | None = None

    def __len__(self) -> int:
        return len(self._ingresses)

    def put(self, compiled: Compiled) -> None:
        """An Ingress is so now."""
        touched = self._forget(compiled.key) | compiled.hosts.keys()
        self._ingresses[compiled.key] = compiled
        for host in compiled.hosts:
            self._by_host.setdefault(host, set()).add(compiled.key)
        self._make(touched)

    def remove(self, key: Key) -> None:
        """An Ingress is gone."""
        self._make(self._forget(key))

    def get(self, key: Key) -> Compiled | None:
        """The compiled Ingress."""
        return self._ingresses.get(key)

    def find(self, host: str, path: str) -> Rule | None:
        """The rule for a request; the host without port, in lower case."""
        rules = self._hosts.get(host)
        if rules is None:
            rules = self._hosts.get(f"*{host[dot:]}") if (dot := host.find(".")) > 0 else None
            if rules is None:
                rules = self._hosts.get("")
        return (rules.find(path) if rules is not None else None) or self.default

    def certificates(self) -> dict[str, tuple[Key, Certificate]]:
        """By host the certificate of the oldest Ingress that has one for it, with that Ingress."""
        found: dict[str, tuple[Key, Certificate]] = {}
        for each in sorted(self._ingresses.values(), key=lambda one: one.age):
            for certificate in each.certificates:
                for host in certificate.hosts:
                    found.setdefault(host, (each.key, certificate))
        return found

    def _forget(self, key: Key) -> set[str]:
        before = self._ingresses.pop(key, None)
        for host in before.hosts if before else ():
            self._by_host[host].discard(key)
        return set(before.hosts) if before else set()

    def _make(self, hosts: set[str]) -> None:
        for host in hosts:
            if not self._by_host.get(host):
                self._by_host.pop(host, None)
                self._hosts.pop(host, None)
                continue
            ingresses = sorted((self._ingresses[key] for key in self._by_host[host]), key=lambda one: one.age)
            rules = [rule for each in ingresses for rule in each.hosts[host]]
            self._hosts[host] = HostRules(rules, next((each.default for each in ingresses if each.default), None))
        lone = [each for each in self._ingresses.values() if each.default and not each.hosts]
        self.default = min(lone, key=lambda one: one.age).default if lone else None


def normal(path: str) -> str:
    """The path that rules are compared with: escapes read, empty and dot segments removed. Raises BadPath."""
    if not _UNUSUAL.search(path):
        return path
    raw = unquote_to_bytes(path)
    if b"\0" in raw:
        raise BadPath("a null character in the path")
    parts: list[str] = []
    text = raw.decode("utf-8", "replace")
    for part in text.split("/")[1:]:
        if part == "..":
            if not parts:
                raise BadPath("the path leads out of the root")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    end = "/" if parts and text.endswith(("/", "/.", "/..")) else ""
    return "/" + "/".join(parts) + end


def rewritten(rule: Rule, path: str) -> str:
    """The path that the endpoint sees, escaped; `path` is in its normal form."""
    target = rule.options.rewrite_target
    groups: tuple[str, ...] = ()
    if rule.pattern is not None:
        found = rule.pattern.match(path)
        groups = tuple(each or "" for each in found.groups()) if found else ()

    def group(which: re.Match[str]) -> str:
        number = int(which[1])
        return escaped(path if number == 0 else groups[number - 1] if number <= len(groups) else "")

    made = _GROUP.sub(group, target)
    return made if made.startswith("/") else f"/{made}"


def escaped(path: str) -> str:
    """A path as it may stand in the first line of a request."""
    raw = path.encode("utf-8", "replace").replace(b"%", b"%25").replace(b"?", b"%3F").replace(b"#", b"%23")
    return _SAFE.sub(lambda found: b"%%%02X" % found[0][0], raw).decode("ascii")
