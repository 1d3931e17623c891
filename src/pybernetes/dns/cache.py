"""Packed answers by question.

An answer of the cluster zone is valid while the zone's generation is the same; an answer of another server until its
TTL ends, and its TTL is shown as what is left of it. Of several addresses a different one comes first each time.
The number of answers is bounded: the oldest one makes room.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .message import AAAA, A, Body, Record, pack_records

CAPACITY = 10_000
ROTATIONS = 8
PREFETCH_SHARE = 0.1
"""An answer that is asked for in the last tenth of its time is fetched anew."""
PREFETCH_HITS = 2


@dataclass(slots=True)
class Answer:
    """A response that can be given again."""

    rcode: int
    authoritative: bool
    name: str
    answers: Sequence[Record]
    authorities: Sequence[Record] = ()
    until: float = 0.0
    """The monotonic time at which the TTL ends; 0 for answers of the cluster zone."""
    since: float = 0.0
    of_zone: bool = False
    """Another server's answer behind an alias of the cluster zone (ExternalName): it goes when the zone changes."""
    hits: int = 0
    renewing: bool = False
    """It is being fetched anew; set when `is_due` said so, and for good if that failed."""
    bodies: list[Body] = field(default_factory=list)
    packed_at: int = -1
    turn: int = 0
    additionals: Sequence[Record] = ()
    """Of answers of the cluster zone alone: their TTL stays as it is."""

    def body(self, now: float) -> Body:
        """The records in wire format; call it once for each response."""
        age = int(now - self.since) if self.until else 0
        if age != self.packed_at:
            self._pack(age)
        self.hits += 1
        bodies = self.bodies
        if len(bodies) == 1:
            return bodies[0]
        self.turn = (self.turn + 1) % len(bodies)
        return bodies[self.turn]

    def _pack(self, age: int) -> None:
        answers, authorities = self.answers, self.authorities
        if age:
            answers = [each._replace(ttl=max(0, each.ttl - age)) for each in answers]
            authorities = [each._replace(ttl=max(0, each.ttl - age)) for each in authorities]
        first = next((i for i, each in enumerate(answers) if each.type in (A, AAAA)), len(answers))
        fixed, turning = answers[:first], answers[first:]
        turns = range(max(1, min(ROTATIONS, len(turning))))
        self.bodies = [
            pack_records(self.name, [*fixed, *turning[turn:], *turning[:turn]], authorities, self.additionals)
            for turn in turns
        ]
        self.packed_at = age

    def is_due(self, now: float) -> bool:
        """Whether it is asked for often and ends soon: fetch it anew before it does."""
        return (
            bool(self.until)
            and not self.renewing
            and self.hits >= PREFETCH_HITS
            and (self.until - now < PREFETCH_SHARE * (self.until - self.since))
        )


class Packets:
    """Whole responses by the query's bytes behind its id: what most datagrams are answered with.

    Only answers with records, which do not depend on the sender, and only while neither the zone nor a TTL changes.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._packets: dict[bytes, tuple[float, list[bytes]]] = {}
        self._generation = -1
        self._turn = 0

    def get(self, query: bytes, generation: int, now: float) -> bytes | None:
        """The response to a query, both without their id."""
        if generation != self._generation:
            self._packets.clear()
            self._generation = generation
            return None
        found = self._packets.get(query)
        if found is None or found[0] <= now:
            return None
        responses = found[1]
        if len(responses) == 1:
            return responses[0]
        self._turn += 1
        return responses[self._turn % len(responses)]

    def put(self, query: bytes, answer: Answer, responses: list[bytes], now: float) -> None:
        """Keep the responses (one for each order of the addresses) until the answer's TTL is another."""
        if len(self._packets) >= self._capacity:
            del self._packets[next(iter(self._packets))]
        until = min(answer.until, answer.since + int(now - answer.since) + 1) if answer.until else float("inf")
        self._packets[query] = until, responses


class Cache:
    """Answers by key; `local` ones go when the zone changes."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._local: dict[Hashable, Answer] = {}
        self._foreign: dict[Hashable, Answer] = {}
        self._generation = -1
        self.hits = self.misses = 0

    def get(self, key: Hashable, generation: int, now: float) -> Answer | None:
        """The answer, if it is still valid."""
        if generation != self._generation:
            self._local.clear()
            self._generation = generation
        kept = self._local if key in self._local else self._foreign
        found = kept.get(key)
        if found is not None and found.until and found.until <= now:
            del kept[key]
            found = None
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, key: Hashable, answer: Answer, generation: int) -> None:
        """Keep an answer that was made at this generation of the zone."""
        if answer.until and not answer.of_zone:
            kept = self._foreign
        elif generation == self._generation:
            kept = self._local
        else:
            return
        kept.pop(key, None)
        if len(kept) >= self._capacity:
            del kept[next(iter(kept))]
        kept[key] = answer

    def __len__(self) -> int:
        return len(self._local) + len(self._foreign)
