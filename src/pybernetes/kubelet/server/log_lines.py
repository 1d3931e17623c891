"""Lines of a container's log as runtimes write them: the CRI's format, and the JSON that Docker wrote. Pure.

2026-01-02T03:04:05.123456789Z stdout F the text
2026-01-02T03:04:05.2Z stderr P a part of a long line, to be continued
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

_CRI = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) (stdout|stderr) ([^ \n]*) ([^\n]*\n?)"
)
_WHOLE = re.compile(
    rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) F ([^\n]*\n)", re.MULTILINE
)
Moment = tuple[str, str]
"""A time to the nanosecond, as two texts that compare as times do: in UTC, to the second, and the rest."""


class Line(msgspec.Struct):
    """A line, or a part of one."""

    second: str
    fraction: str
    """Nine digits."""
    zone: str
    stream: str
    text: bytes
    """With its end, unless there is more to come."""

    @property
    def stamp(self) -> bytes:
        """The time, always to the nanosecond."""
        return f"{self.second}.{self.fraction}{self.zone} ".encode()

    def before(self, moment: Moment) -> bool:
        """Whether it was written before."""
        second = self.second if self.zone == "Z" else _in_utc(self.second + self.zone)
        return (second, self.fraction) < moment


class _DockerLine(msgspec.Struct):
    log: str = ""
    stream: str = ""
    time: str = ""


def parse(raw: bytes) -> Line | None:
    """Parse a log line in the CRI's or Docker's format; None if it is in neither."""
    found = _CRI.fullmatch(raw)
    if found is None:
        return _docker(raw) if raw[:1] == b"{" else None
    second, fraction, zone, stream, tags, text = found.groups()
    if tags.split(b":")[0] == b"P":
        text = text.removesuffix(b"\n")
    digits = (fraction or b"").decode().ljust(9, "0")
    return Line(second.decode(), digits, zone.decode(), stream.decode(), text)


def _docker(raw: bytes) -> Line | None:
    try:
        line = msgspec.json.decode(raw, type=_DockerLine)
    except msgspec.MsgspecError:
        return None
    found = _CRI.fullmatch(f"{line.time} stdout F \n".encode())
    if found is None or line.stream not in ("stdout", "stderr"):
        return None
    digits = (found[2] or b"").decode().ljust(9, "0")
    return Line(found[1].decode(), digits, found[3].decode(), line.stream, line.log.encode())


def moment(seconds: float) -> Moment:
    """A time since 1970."""
    nanos = int(seconds % 1 * 1e9)
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S"), f"{nanos:09}"


def _in_utc(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return text


class Selection(msgspec.Struct):
    """Which lines are wanted, and in which form; keeps count of what was given."""

    since: Moment | None = None
    timestamps: bool = False
    left: int | None = None
    """Bytes that may still be given; None = any number."""
    _fresh: bool = True

    def take(self, raw: bytes) -> bytes:
        """The output for one line; empty if it is filtered out."""
        line = parse(raw)
        if line is None:
            return b""
        fresh, self._fresh = self._fresh, not line.text or line.text.endswith(b"\n")
        if self.since is not None and line.before(self.since):
            return b""
        text = line.stamp + line.text if self.timestamps and fresh else line.text
        if self.left is not None:
            text = text[: self.left]
            self.left -= len(text)
        return text

    def take_all(self, lines: list[bytes]) -> bytes | None:
        """The output for many lines on the fast path: all complete and none filtered; None if that does not hold."""
        if self.since is not None or self.timestamps or self.left is not None or not self._fresh:
            return None
        found = _WHOLE.findall(b"".join(lines))
        return b"".join(found) if len(found) == len(lines) else None

    @property
    def full(self) -> bool:
        """Whether no more may be given."""
        return self.left is not None and self.left <= 0
