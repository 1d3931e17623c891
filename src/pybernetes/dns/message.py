"""DNS messages in wire format (RFC 1035, EDNS of RFC 6891).

`parse` reads a query and rejects what is not one with `FormatError`; `respond` writes a response. A name is a str of
lower-case labels without the last dot, in ASCII; a dot or backslash inside a label is escaped with a backslash.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple

A, NS, CNAME, SOA, PTR, HINFO, MX, TXT, AAAA, SRV, OPT, ANY = 1, 2, 5, 6, 12, 13, 15, 16, 28, 33, 41, 255
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
QR, AA, TC, RD, RA, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020, 0x0010
IN = 1
MINIMUM_SIZE = 512
"""Bytes that every client takes over UDP."""
MAXIMUM_SIZE = 1232
"""Bytes that we send over UDP at most: larger datagrams may be fragmented."""
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")
_TEXT_LIMIT = 255


class FormatError(ValueError):
    """Not a DNS message that can be answered."""


class Record(NamedTuple):
    """One resource record; `data` is RDATA in wire format without compression."""

    name: str
    type: int
    ttl: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """A question that was asked."""

    id: int
    flags: int
    name: str
    type: int
    cls: int
    question: bytes
    """The question section as received: its letters' case is echoed."""
    edns: int = -1
    """The EDNS version, -1 without EDNS."""
    size: int = MINIMUM_SIZE
    """How large a response over UDP may be."""
    do: bool = False

    @property
    def opcode(self) -> int:
        """0 is a standard query."""
        return self.flags >> 11 & 0xF


def parse(data: bytes) -> Query:
    """The query in a datagram. `FormatError` if there is none, or if it is a response."""
    if len(data) < 12:
        raise FormatError("shorter than a header")
    id_, flags, questions, answers, authorities, additionals = _HEADER.unpack_from(data)
    if flags & QR:
        raise FormatError("a response")
    if questions != 1:
        raise FormatError(f"{questions} questions")
    name, place = read_name(data, 12)
    if place + 4 > len(data):
        raise FormatError("the question is cut off")
    kind, cls = struct.unpack_from("!HH", data, place)
    place += 4
    question = data[12:place]
    if answers or authorities or additionals > 2:
        if answers or authorities:
            raise FormatError("a query with answers")
        raise FormatError("too many additional records")
    edns, size, do = -1, MINIMUM_SIZE, False
    for _ in range(additionals):
        owner, place = read_name(data, place)
        if place + 10 > len(data):
            raise FormatError("a record is cut off")
        record_type, record_class, ttl, length = _RECORD.unpack_from(data, place)
        place += 10 + length
        if place > len(data):
            raise FormatError("a record is cut off")
        if record_type == OPT:
            if edns >= 0 or owner:
                raise FormatError("more than one OPT record, or one with a name")
            edns, size, do = ttl >> 16 & 0xFF, max(MINIMUM_SIZE, min(record_class, MAXIMUM_SIZE)), bool(ttl & 0x8000)
    return Query(id_, flags, name, kind, cls, question, edns, size, do)


def read_name(data: bytes, place: int) -> tuple[str, int]:
    """The name at a place, in lower case, and the place behind it. Pointers may only lead backwards."""
    labels: list[str] = []
    after, limit, length = -1, place, 0
    while True:
        if place >= len(data):
            raise FormatError("a name is cut off")
        size = data[place]
        if size >= 0xC0:
            if place + 1 >= len(data):
                raise FormatError("a pointer is cut off")
            target = (size & 0x3F) << 8 | data[place + 1]
            if after < 0:
                after = place + 2
            if target >= limit:
                raise FormatError("a pointer that does not lead backwards")
            place = limit = target
            continue
        if size >= 0x40:
            raise FormatError("an unknown kind of label")
        place += 1
        if size == 0:
            return ".".join(labels), place if after < 0 else after
        length += size + 1
        if length > _TEXT_LIMIT - 1 or place + size > len(data):
            raise FormatError("a name is too long or cut off")
        labels.append(_text(data[place : place + size]))
        place += size


def _text(label: bytes) -> str:
    text = label.decode("latin-1").lower() if label.isascii() else label.decode("latin-1")
    if "." in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace(".", "\\.")
    return text


def labels_of(name: str) -> list[str]:
    """The labels of a name, still escaped."""
    if not name:
        return []
    if "\\" not in name:
        return name.split(".")
    labels, current, escaped = [], "", False
    for letter in name:
        if letter == "." and not escaped:
            labels.append(current)
            current = ""
            continue
        current += letter
        escaped = letter == "\\" and not escaped
    return [*labels, current]


def pack_name(name: str) -> bytes:
    """A name in wire format, without compression. `FormatError` if a label or the name is too long."""
    wire = bytearray()
    for label in labels_of(name):
        raw = (
            re.sub(r"\\(.)", r"\1", label).encode("latin-1", "replace")
            if "\\" in label
            else label.encode("latin-1", "replace")
        )
        if not 0 < len(raw) < 64:
            raise FormatError(f"the label {label!r} of {name!r} is empty or too long")
        wire.append(len(raw))
        wire += raw
    if len(wire) >= _TEXT_LIMIT:
        raise FormatError(f"the name {name!r} is too long")
    wire.append(0)
    return bytes(wire)


def address_record(name: str, ttl: int, address: str) -> Record:
    """An A or AAAA record. ValueError if it is no address."""
    found = ip_address(address)
    return Record(name, A if found.version == 4 else AAAA, ttl, found.packed)


def name_record(name: str, kind: int, ttl: int, target: str) -> Record:
    """A record whose data is a name: CNAME, NS or PTR."""
    return Record(name, kind, ttl, pack_name(target))


def srv_record(name: str, ttl: int, port: int, target: str, *, priority: int = 0, weight: int = 100) -> Record:
    """An SRV record."""
    return Record(name, SRV, ttl, struct.pack("!HHH", priority, weight, port & 0xFFFF) + pack_name(target))


def text_record(name: str, ttl: int, text: str) -> Record:
    """A TXT record with one string."""
    raw = text.encode()[:_TEXT_LIMIT]
    return Record(name, TXT, ttl, bytes([len(raw)]) + raw)


def soa_record(zone: str, ttl: int, serial: int) -> Record:
    """The SOA of a zone; its minimum says how long the absence of a name is kept."""
    numbers = struct.pack("!5I", serial & 0xFFFFFFFF, 7200, 1800, 86400, ttl)
    below = f".{zone}" if zone else ""
    return Record(zone, SOA, ttl, pack_name(f"ns.dns{below}") + pack_name(f"hostmaster{below}") + numbers)


class Body(NamedTuple):
    """The body of a response after the question: the numbers of records, and the records."""

    answers: int
    authorities: int
    additionals: int
    wire: bytes
    """Answers and authorities."""
    additional: bytes = b""
    """The section that is left out first where a response would be too long."""


EMPTY = Body(0, 0, 0, b"")


def pack_records(
    question_name: str, answers: Sequence[Record], authorities: Sequence[Record], additionals: Sequence[Record] = ()
) -> Body:
    """The records of a response. An owner that is the name in question is a pointer to it."""
    wire = _wire(question_name, (*answers, *authorities))
    return Body(len(answers), len(authorities), len(additionals), wire, _wire(question_name, additionals))


def _wire(question_name: str, records: Sequence[Record]) -> bytes:
    wire = bytearray()
    for record in records:
        wire += b"\xc0\x0c" if record.name == question_name else pack_name(record.name)
        wire += _RECORD.pack(record.type, IN, record.ttl, len(record.data))
        wire += record.data
    return bytes(wire)


def respond(query: Query, rcode: int, body: Body = EMPTY, *, authoritative: bool = False, limit: int = 0) -> bytes:
    """A response. One that is longer than a `limit` loses its additional records; if it still is, all of its records,
    and says that it is truncated."""
    flags = QR | RA | (query.flags & (RD | CD | 0x7800)) | (AA if authoritative else 0) | rcode & 0xF
    opt = b""
    if query.edns >= 0:
        opt = b"\0" + _RECORD.pack(OPT, MAXIMUM_SIZE, (rcode >> 4) << 24 | (0x8000 if query.do else 0), 0)
    size = 12 + len(query.question) + len(body.wire) + len(opt)
    if limit and size > limit:
        flags, body = flags | TC, EMPTY
    elif limit and size + len(body.additional) > limit:
        body = body._replace(additionals=0, additional=b"")
    header = _HEADER.pack(query.id, flags, 1, body.answers, body.authorities, body.additionals + (1 if opt else 0))
    return header + query.question + body.wire + body.additional + opt


def reject(data: bytes) -> bytes | None:
    """A FORMERR for a message that could not be read; None if it is not even a query."""
    if len(data) < 12 or data[2] & 0x80:
        return None
    return data[:2] + struct.pack("!5H", QR | (data[2] & 0x78) << 8 | FORMERR, 0, 0, 0, 0)


def ask(id_: int, name: str, kind: int, *, size: int = MAXIMUM_SIZE) -> bytes:
    """A query of our own, with recursion desired and EDNS."""
    question = pack_name(name) + struct.pack("!HH", kind, IN)
    return _HEADER.pack(id_, RD, 1, 0, 0, 1) + question + b"\0" + _RECORD.pack(OPT, size, 0, 0)


class Reply(NamedTuple):
    """A response from another server."""

    rcode: int
    truncated: bool
    answers: tuple[Record, ...]
    authorities: tuple[Record, ...]


def read_reply(data: bytes, id_: int, name: str, kind: int) -> Reply:
    """The response to a query of ours. `FormatError` if it is not one, or answers another question."""
    if len(data) < 12:
        raise FormatError("shorter than a header")
    found, flags, questions, answers, authorities, _ = _HEADER.unpack_from(data)
    if found != id_ or not flags & QR or questions != 1:
        raise FormatError("not a response to this query")
    asked, place = read_name(data, 12)
    if place + 4 > len(data) or asked != name or struct.unpack_from("!HH", data, place) != (kind, IN):
        raise FormatError("a response to another question")
    place += 4
    sections: list[tuple[Record, ...]] = []
    for count in (answers, authorities):
        records = []
        for _ in range(count):
            owner, place = read_name(data, place)
            if place + 10 > len(data):
                raise FormatError("a record is cut off")
            record_type, _, ttl, length = _RECORD.unpack_from(data, place)
            place += 10
            if place + length > len(data):
                raise FormatError("a record is cut off")
            records.append(
                Record(owner, record_type, min(ttl, 0x7FFFFFFF), _expanded(data, place, length, record_type))
            )
            place += length
        sections.append(tuple(records))
    return Reply(flags & 0xF, bool(flags & TC), sections[0], sections[1])


def _expanded(data: bytes, place: int, length: int, kind: int) -> bytes:
    """RDATA without pointers into the message it came in."""
    end = place + length
    if kind in (CNAME, NS, PTR):
        return pack_name(read_name(data, place)[0])
    if kind == MX and length > 2:
        return data[place : place + 2] + pack_name(read_name(data, place + 2)[0])
    if kind == SRV and length > 6:
        return data[place : place + 6] + pack_name(read_name(data, place + 6)[0])
    if kind == SOA:
        server, place = read_name(data, place)
        mailbox, place = read_name(data, place)
        if end - place != 20:
            raise FormatError("a SOA record of the wrong length")
        return pack_name(server) + pack_name(mailbox) + data[place:end]
    return data[place:end]
