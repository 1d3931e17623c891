"""Decides who answers a question: hosts, the cluster zone, pods, autopath, or an upstream server.

`now` answers what needs no other server; `later` asks upstream servers. Both return an `Answer` that `cache` keeps.
Autopath (as in CoreDNS): a pod with `ndots:5` asks for `example.com.NAMESPACE.svc.cluster.local` first; when that
does not exist the rest of its search path is tried here, and the first name that exists is the answer, behind a
CNAME: one query instead of five.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import pods
from .cache import Answer
from .corefile import DENIAL_TTL, LONGEST_TTL
from .forward import Forwarder, Unanswered
from .message import AAAA, ANY, CNAME, HINFO, NOERROR, NXDOMAIN, REFUSED, SERVFAIL, A, Query, Record, name_record
from .pods import PodNames
from .zone import Zone

FAILURE_TTL = 5
"""Seconds for which the failure of upstream servers is kept."""


@dataclass(frozen=True)
class Chain:
    """The plugins of one server block of the configuration."""

    zone: Zone | None = None
    pods: str = pods.INSECURE
    hosts: Mapping[tuple[str, int], tuple[Record, ...]] = field(default_factory=dict)
    forwarder: Forwarder | None = None
    autopath: bool = False
    search: Sequence[str] = ()
    """The node's own search domains: the end of every pod's search path."""
    longest_ttl: int = LONGEST_TTL
    denial_ttl: int = DENIAL_TTL
    """Seconds for which answers of upstream servers are kept, at most."""


class Resolver:
    """Answers questions; `chains` is by zone, the longest zone that a name ends with is asked."""

    def __init__(self, chains: Mapping[str, Chain], pod_names: PodNames) -> None:
        self.chains = dict(sorted(chains.items(), key=lambda each: -len(each[0])))
        self.pod_names = pod_names
        self._zones = list({id(chain.zone): chain.zone for chain in chains.values() if chain.zone}.values())

    @property
    def generation(self) -> int:
        """Grows whenever an answer of a zone may have changed."""
        zones = self._zones
        return zones[0].generation if len(zones) == 1 else sum(zone.generation for zone in zones)

    def chain(self, name: str) -> Chain | None:
        """The server block for a name."""
        for zone, chain in self.chains.items():
            if not zone or name == zone or name.endswith(f".{zone}"):
                return chain
        return None

    def autopath_base(self, query: Query, source: str) -> tuple[Chain, str, str] | None:
        """The chain, the namespace and the name without its search domain, if autopath applies to this question."""
        chain = self.chain(query.name)
        if chain is None or not chain.autopath or chain.zone is None or query.type not in (A, AAAA):
            return None
        namespace = self.pod_names.namespace(source)
        first = f".{namespace}.svc.{chain.zone.name}"
        if not namespace or not query.name.endswith(first):
            return None
        return chain, namespace, query.name[: -len(first)]

    def now(self, name: str, kind: int) -> Answer | None:
        """The answer, if no other server has to be asked."""
        chain = self.chain(name)
        if chain is None:
            return Answer(REFUSED, False, name, ())
        if kind == HINFO and any(forwarder.loops_back(name, kind) for forwarder in self._forwarders()):
            return Answer(NXDOMAIN, False, name, ())
        if hosts := chain.hosts.get((name, kind)):
            return Answer(NOERROR, True, name, hosts)
        if chain.zone and (found := self._in_zone(chain, chain.zone, name, kind)):
            return found
        return None if chain.forwarder else Answer(REFUSED, False, name, ())

    async def later(self, name: str, kind: int) -> Answer:
        """The answer, by asking the upstream servers."""
        chain = self.chain(name)
        if chain is None:
            return Answer(REFUSED, False, name, ())
        prefix: tuple[Record, ...] = ()
        target = name
        if chain.zone and (found := chain.zone.find(name, kind)) and found.outside:
            prefix, target = found.answers, found.outside
        outside = self.chain(target)
        if outside is None or outside.forwarder is None:
            return Answer(NOERROR if prefix else REFUSED, bool(prefix), name, prefix)
        now = time.monotonic()
        try:
            reply = await outside.forwarder.ask(target, kind)
        except Unanswered:
            if prefix:
                return Answer(NOERROR, True, name, prefix, until=now + FAILURE_TTL, since=now, of_zone=True)
            return Answer(SERVFAIL, False, name, (), until=now + FAILURE_TTL, since=now)
        records = (*prefix, *reply.answers)
        ttl = min((each.ttl for each in (*records, *reply.authorities)), default=FAILURE_TTL)
        ttl = min(ttl, outside.longest_ttl if reply.answers else outside.denial_ttl)
        denied = () if reply.answers else reply.authorities
        return Answer(reply.rcode, False, name, records, denied, now + max(1, ttl), now, of_zone=bool(prefix))

    async def find(self, name: str, kind: int) -> Answer:
        """The answer, from wherever it is."""
        return self.now(name, kind) or await self.later(name, kind)

    async def along_search_path(self, query: Query, source: str) -> Answer | None:
        """The answer under the first name of the pod's search path that exists; None if autopath does not apply."""
        applies = self.autopath_base(query, source)
        if applies is None:
            return None
        chain, namespace, base = applies
        assert chain.zone
        zone = chain.zone.name
        first: Answer | None = None
        for domain in (f"{namespace}.svc.{zone}", f"svc.{zone}", zone, *chain.search, ""):
            name = f"{base}.{domain}" if domain else base
            found = await self.find(name, query.type)
            first = first or found
            if found.rcode == NXDOMAIN or found.rcode == REFUSED:
                continue
            if name == query.name:
                return found
            if found.rcode == SERVFAIL:
                break
            ttl = found.answers[0].ttl if found.answers else chain.zone.ttl
            alias = name_record(query.name, CNAME, ttl, name)
            return Answer(
                found.rcode,
                True,
                query.name,
                (alias, *found.answers),
                found.authorities,
                found.until,
                found.since,
                found.of_zone,
            )
        return first

    def _in_zone(self, chain: Chain, zone: Zone, name: str, kind: int) -> Answer | None:
        found = zone.find(name, kind)
        if found is None:
            return None
        if found.outside:
            return None if chain.forwarder else Answer(found.rcode, True, name, found.answers)
        if (
            found.rcode == NXDOMAIN
            and chain.pods != pods.DISABLED
            and (pod := pods.pod_record(name, zone.name, zone.ttl))
        ):
            record, namespace, address = pod
            if chain.pods == pods.INSECURE or self.pod_names.namespace(address) == namespace:
                answers = (record,) if kind in (record.type, ANY) else ()
                return Answer(NOERROR, True, name, answers, () if answers else (zone.soa(),))
        return Answer(found.rcode, True, name, found.answers, found.authorities, additionals=found.additionals)

    def _forwarders(self) -> list[Forwarder]:
        return [chain.forwarder for chain in self.chains.values() if chain.forwarder]
