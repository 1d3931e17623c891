"""The Accept header, read: what a client would take, the most wanted first."""

from __future__ import annotations

JSON, YAML = "application/json", "application/yaml"


def clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, the most wanted first; none means any."""
    found = [_clause(part) for part in accept.split(",")] if accept.strip() else [("*/*", {}, 1.0)]
    return [(media, parameters) for media, parameters, _ in sorted(found, key=lambda clause: -clause[2])]


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    media, *rest = text.split(";")
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return media.strip(), parameters, quality
