"""A probe that opens a TCP connection: success is that it opens."""

from __future__ import annotations

from .dialing import DialFailed, dial
from .outcome import Outcome, Verdict


async def tcp_probe(host: str, port: int, within: float) -> Outcome:
    """Connect, and close at once."""
    try:
        connection = await dial(host, port, within)
    except DialFailed as error:
        return Outcome(Verdict.FAILURE, str(error))
    connection.close()
    return Outcome(Verdict.SUCCESS)
