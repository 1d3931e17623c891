"""Sets of CPUs as the kernel writes them: `0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable

CPUs = frozenset[int]


def parse_cpus(text: str) -> CPUs:
    """The CPUs of a list; `ValueError` (upstream's words) if it is none."""
    result: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        start, end = _number(first, part), _number(last, part) if dash else _number(first, part)
        if start > end:
            raise ValueError(f"invalid range {part!r} ({start} > {end})")
        result.update(range(start, end + 1))
    return frozenset(result)


def format_cpus(cpus: Iterable[int]) -> str:
    """The list of some CPUs, with ranges for neighbours."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _number(text: str, part: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'strconv.Atoi: parsing "{text or part}": invalid syntax')
    return int(text)
