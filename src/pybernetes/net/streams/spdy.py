"""SPDY/3.1 frames as bytes: pure. What Kubernetes uses of it, which is streams with headers, data, and their ends.

Flow control is part of the protocol and not of this dialect: no implementation of it sends or heeds windows
(moby/spdystream does not), so a sender that counted them would wait for ever. A slow reader holds up the whole
connection.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 1
UNIDIRECTIONAL = 2
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, UNSUPPORTED_VERSION, CANCEL = 1, 2, 3, 4, 5
MOST_DATA = (1 << 24) - 1  # bytes in a frame
MOST_CONTROL = 1 << 20  # bytes of a control frame that we read; headers of streams have some hundred
MOST_HEADERS = 1 << 20  # and unpacked

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_CODES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """The dictionary for the compression of headers: words with their lengths, then text (SPDY/3, section 2.6.10.1)."""
    words = [word.replace("_", " ").encode() for word in _WORDS.split()]
    return b"".join(struct.pack("!I", len(word)) + word for word in words) + _CODES.encode()


DICTIONARY = _dictionary()


class SPDYError(Exception):
    """The bytes are not SPDY; the connection cannot go on."""


class Frame(NamedTuple):
    """A control frame (`kind` > 0) or data (`kind` = 0)."""

    kind: int
    flags: int
    payload: bytes
    stream: int = 0
    """The stream of data; control frames have it in their payload."""


class Headers:
    """Headers of frames, packed and unpacked: each direction of a connection is one stream of zlib."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(zdict=DICTIONARY)
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)

    def pack(self, headers: dict[str, str]) -> bytes:
        """Names become lower case, as the protocol wants."""
        parts = [struct.pack("!I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                parts += (struct.pack("!I", len(text)), text)
        return self._pack.compress(b"".join(parts)) + self._pack.flush(zlib.Z_SYNC_FLUSH)

    def unpack(self, block: bytes) -> dict[str, str]:
        """Names in lower case. Raises SPDYError."""
        try:
            raw = self._unpack.decompress(block, MOST_HEADERS)
            if self._unpack.unconsumed_tail:
                raise SPDYError("the headers are too large")
            return _pairs(raw)
        except (zlib.error, struct.error, UnicodeDecodeError) as error:
            raise SPDYError(f"bad headers: {error}") from None


def _pairs(raw: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    (count,) = struct.unpack_from("!I", raw)
    place = 4
    for _ in range(count):
        texts = []
        for _ in range(2):
            (length,) = struct.unpack_from("!I", raw, place)
            texts.append(raw[place + 4 : place + 4 + length])
            place += 4 + length
            if place > len(raw):
                raise SPDYError("the headers end too early")
        found[texts[0].decode("latin-1").lower()] = texts[1].decode("utf-8", "replace")
    return found


def data(stream: int, content: bytes, *, fin: bool = False) -> bytes:
    """A frame with data."""
    return struct.pack("!II", stream, (FIN << 24 if fin else 0) | len(content)) + content


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    """A control frame of version 3."""
    return struct.pack("!HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def syn_stream(stream: int, block: bytes, *, fin: bool = False) -> bytes:
    """A new stream."""
    return control(SYN_STREAM, struct.pack("!IIBB", stream, 0, 0, 0) + block, FIN if fin else 0)


def syn_reply(stream: int, block: bytes) -> bytes:
    """Yes to a new stream."""
    return control(SYN_REPLY, struct.pack("!I", stream) + block)


def rst_stream(stream: int, status: int) -> bytes:
    """The end of a stream, both ways and at once."""
    return control(RST_STREAM, struct.pack("!II", stream, status))


def ping(number: int) -> bytes:
    """A question whether the other side is there, or its answer."""
    return control(PING, struct.pack("!I", number))


def goaway(last: int, status: int = 0) -> bytes:
    """No new streams."""
    return control(GOAWAY, struct.pack("!II", last, status))


class Decoder:
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, received: bytes) -> list[Frame]:
        """The frames that are complete now. Raises SPDYError."""
        buffer = self._buffer
        buffer += received
        found = []
        start = 0
        while len(buffer) - start >= 8:
            first, second = struct.unpack_from("!II", buffer, start)
            flags, length = second >> 24, second & 0xFFFFFF
            if first >> 31:
                if first >> 16 != 0x8003:
                    raise SPDYError(f"unsupported version {(first >> 16) & 0x7FFF}")
                if length > MOST_CONTROL:
                    raise SPDYError("the control frame is too large")
            if len(buffer) - start < 8 + length:
                break
            payload = bytes(buffer[start + 8 : start + 8 + length])
            start += 8 + length
            found.append(Frame(first & 0xFFFF, flags, payload) if first >> 31 else Frame(0, flags, payload, first))
        del buffer[:start]
        return found


def number(frame: Frame, place: int = 0) -> int:
    """A number in a control frame: of a stream, a ping, a status. Raises SPDYError."""
    try:
        return int(struct.unpack_from("!I", frame.payload, place)[0]) & 0x7FFFFFFF
    except struct.error:
        raise SPDYError("the frame is too short") from None
