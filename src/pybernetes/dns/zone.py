"""The names of the cluster as one table, changed Service by Service.

Each name has its records by their owner (a Service), because two Services may share an address and so the name of a
PTR record. `_below` counts the names under each ancestor: a name without records and with names below it exists
(NOERROR without answers), any other does not (NXDOMAIN).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from .message import (
    AAAA,
    ANY,
    CNAME,
    NOERROR,
    NS,
    NXDOMAIN,
    SOA,
    SRV,
    A,
    Record,
    name_record,
    read_name,
    soa_record,
    text_record,
)
from .records import VERSION

REVERSE = ("in-addr.arpa", "ip6.arpa")
_LONGEST_CHAIN = 8
"""CNAMEs that are followed inside the zone."""


class Found(NamedTuple):
    """The zone's result for a question."""

    rcode: int
    answers: tuple[Record, ...]
    authorities: tuple[Record, ...] = ()
    outside: str = ""
    """The name outside of the zone that the last CNAME leads to."""
    additionals: tuple[Record, ...] = ()
    """The addresses of the targets of SRV records, so that a client need not ask for them."""


class Zone:
    """The cluster zone, and the reverse names of its addresses.

    `generation` grows with every change: an answer that was made from an older one is stale.
    """

    def __init__(self, name: str, ttl: int) -> None:
        self.name, self.ttl = name, ttl
        self.generation = 0
        self._names: dict[str, dict[str, tuple[Record, ...]]] = {}
        self._below: Counter[str] = Counter()
        self._owned: dict[str, list[str]] = {}
        root = [
            text_record(f"dns-version.{name}", ttl, VERSION),
            name_record(name, NS, ttl, f"ns.dns.{name}"),
        ]
        self.replace("", root)
        for always in (name, f"svc.{name}", f"pod.{name}"):
            self._below[always] += 1

    def replace(self, owner: str, records: Iterable[Record]) -> None:
        """Put these records in place of all that the owner had."""
        by_name: dict[str, list[Record]] = {}
        for record in records:
            by_name.setdefault(record.name, []).append(record)
        new = {name: tuple(each) for name, each in by_name.items()}
        old = self._owned.get(owner, [])
        if len(old) == len(new) and all(self._names[name].get(owner) == new.get(name) for name in old):
            return
        for name in old:
            if name not in new:
                self._drop(name, owner)
        for name, each in new.items():
            held = self._names.get(name)
            if held is None:
                held = self._names[name] = {}
                self._count(name, 1)
            held[owner] = each
        if new:
            self._owned[owner] = list(new)
        else:
            self._owned.pop(owner, None)
        self.generation += 1

    def covers(self, name: str) -> bool:
        """Whether the zone answers for this name and no other server does."""
        return name == self.name or name.endswith(f".{self.name}")

    def find(self, name: str, kind: int) -> Found | None:
        """The result for a question; None if other servers may know it (reverse names that are not ours)."""
        if not self.covers(name):
            if name.endswith(REVERSE) and (held := self._names.get(name)):
                answers = _of_type(held, kind)
                return Found(NOERROR, answers, () if answers else (self.soa(),))
            return None
        chain: list[Record] = []
        for _ in range(_LONGEST_CHAIN):
            held = self._names.get(name)
            if held is None and name != self.name:
                exists = self._below[name] > 0 or self._is_pod_namespace(name)
                return Found(NOERROR if exists or chain else NXDOMAIN, tuple(chain), (self.soa(),))
            found = _of_type(held or {}, kind)
            if name == self.name and kind in (SOA, ANY):
                found = (*found, self.soa())
            alias = _of_type(held or {}, CNAME)
            if found or not alias or kind == CNAME:
                answers = (*chain, *found)
                return Found(NOERROR, answers, () if found else (self.soa(),), "", self._addresses_of_targets(found))
            if alias[0] in chain:  # an ExternalName that leads back to itself
                return Found(NOERROR, tuple(chain), (self.soa(),))
            chain.append(alias[0])
            name = _target(alias[0])
            if not self.covers(name):
                return Found(NOERROR, tuple(chain), (), name)
        return Found(NOERROR, tuple(chain), (self.soa(),))

    def soa(self) -> Record:
        """The zone's SOA; its serial is the generation."""
        return soa_record(self.name, self.ttl, self.generation)

    def _addresses_of_targets(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        targets = dict.fromkeys(read_name(each.data, 6)[0] for each in records if each.type == SRV)
        held = [self._names.get(target, {}) for target in targets]
        return tuple(dict.fromkeys(each for one in held for kind in (A, AAAA) for each in _of_type(one, kind)))

    def _is_pod_namespace(self, name: str) -> bool:
        """Pods' names are computed, not kept: `NAMESPACE.pod.ZONE` exists if a Service's namespace does."""
        namespace, dot, rest = name.partition(".")
        return bool(dot) and rest == f"pod.{self.name}" and self._below[f"{namespace}.svc.{self.name}"] > 0

    def _drop(self, name: str, owner: str) -> None:
        held = self._names[name]
        held.pop(owner, None)
        if not held:
            del self._names[name]
            self._count(name, -1)

    def _count(self, name: str, by: int) -> None:
        """Count a name below each of its ancestors that belong to the zone."""
        while name != self.name and (dot := name.find(".")) >= 0:
            name = name[dot + 1 :]
            self._below[name] += by
            if not self._below[name]:
                del self._below[name]
            if name in REVERSE:
                break


def _of_type(held: dict[str, tuple[Record, ...]], kind: int) -> tuple[Record, ...]:
    if len(held) == 1:
        (only,) = held.values()
        return tuple(each for each in only if kind in (each.type, ANY))
    return tuple(dict.fromkeys(each for records in held.values() for each in records if kind in (each.type, ANY)))


def _target(alias: Record) -> str:
    return read_name(alias.data, 0)[0]
