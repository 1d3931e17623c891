"""Compiles one Ingress: its rules by host, its default backend, its certificates (pure)."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.networking.v1 import Ingress, IngressBackend
from pybernetes.client.keys import Key, key_of

from .annotations import Options, parse

EXACT, PREFIX, REGEX = "Exact", "Prefix", "Regex"
MOST_PATTERN = 4096
_REGEX_MEMORY = 1 << 20
"""Bytes that one pattern may take when it is compiled: RE2 is linear in the path, this bounds the factor."""


class Backend(msgspec.Struct, frozen=True):
    """A port of a Service, by number or name."""

    namespace: str
    service: str
    port: int | str


class Rule(msgspec.Struct, frozen=True, eq=False):
    """Where requests for a path go."""

    ingress: Key
    kind: str
    path: str
    """Of a prefix without the slash at its end; a pattern as it was written."""
    backend: Backend | None
    """None: it cannot be served, as for a backend that is not a Service."""
    options: Options
    pattern: Any = None

    @property
    def label(self) -> str:
        """The metrics label of requests that match this rule."""
        return f"{self.ingress.namespace}/{self.ingress.name}"


class Certificate(msgspec.Struct, frozen=True):
    """A Secret, and the hosts that it is for; an empty one: all that no other certificate is for."""

    secret: Key
    hosts: tuple[str, ...]


class Compiled(msgspec.Struct, frozen=True, eq=False):
    """All that one Ingress says."""

    key: Key
    created: str
    hosts: dict[str, tuple[Rule, ...]]
    """By host, in lower case; empty: any host."""
    default: Rule | None
    certificates: tuple[Certificate, ...]
    problems: tuple[str, ...]

    @property
    def age(self) -> tuple[str, str, str]:
        """The sort key of Ingresses: the oldest first, whose rules win."""
        return self.created, self.key.namespace, self.key.name


def compile_ingress(ingress: Ingress) -> Compiled:
    """Compile an Ingress. An invalid part of it is reported as a problem and left out."""
    key, spec, metadata = key_of(ingress), ingress.spec, ingress.metadata
    options, problems = parse((metadata.annotations if metadata else None) or {})
    hosts: dict[str, list[Rule]] = {}
    for rule in (spec.rules if spec else None) or ():
        rules = hosts.setdefault((rule.host or "").lower(), [])
        for path in (rule.http.paths if rule.http else None) or ():
            backend = _backend(key, path.backend, problems)
            try:
                rules.append(_rule(key, path.path or "/", path.path_type or "", backend, options))
            except ValueError as error:
                problems.append(f"path {path.path!r} is left out: {error}")
    default = None
    if spec is not None and spec.default_backend is not None:
        default = Rule(key, PREFIX, "", _backend(key, spec.default_backend, problems), options)
    certificates = []
    for tls in (spec.tls if spec else None) or ():
        named = tuple(host.lower() for host in tls.hosts or ()) or tuple(hosts) or ("",)
        certificates.append(Certificate(Key(key.namespace, tls.secret_name or ""), named))
    created = (metadata.creation_timestamp if metadata else None) or ""
    made = {host: tuple(rules) for host, rules in hosts.items()}
    return Compiled(key, str(created), made, default, tuple(certificates), tuple(dict.fromkeys(problems)))


def _backend(key: Key, backend: IngressBackend | None, problems: list[str]) -> Backend | None:
    service = backend.service if backend else None
    if service is None or service.port is None or not (service.port.number or service.port.name):
        problems.append("a backend that is not a port of a Service cannot be served")
        return None
    return Backend(key.namespace, service.name or "", service.port.number or service.port.name or "")


def _rule(key: Key, path: str, kind: str, backend: Backend | None, options: Options) -> Rule:
    if kind == "ImplementationSpecific" and (options.use_regex or options.rewrite_target):
        return Rule(key, REGEX, path, backend, options, compile_pattern(path))
    if kind == EXACT:
        return Rule(key, EXACT, path, backend, options)
    return Rule(key, PREFIX, path.rstrip("/"), backend, options)


def compile_pattern(text: str) -> Any:
    """A pattern for the beginning of a path, without regard to case. ValueError if it is none, or a huge one."""
    import re2  # type: ignore[import-untyped]

    if len(text) > MOST_PATTERN:
        raise ValueError(f"a pattern has {MOST_PATTERN} characters at most")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _REGEX_MEMORY
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        raise ValueError(f"not a pattern of RE2: {why.decode() if isinstance(why, bytes) else why}") from None
