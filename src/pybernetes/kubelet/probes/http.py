"""A probe by HTTP GET: success is a status from 200 to 399; a redirect to another host is a warning, not followed."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Container, HTTPGetAction

from .exchange import BodyFailed, ExchangeFailed, exchange
from .outcome import Outcome, ProbeError, Verdict
from .request import request_for

MAX_BODY: Final = 10 * 1024  # upstream's


async def http_probe(action: HTTPGetAction, container: Container, pod_ip: str, within: float) -> Outcome:
    """Ask. Raises ProbeError if the port is none, or if the answer breaks off."""
    request = request_for(action, container, pod_ip, "probe")
    try:
        answer = await exchange(request, within, MAX_BODY)
    except ExchangeFailed as error:
        return Outcome(Verdict.FAILURE, str(error))
    except BodyFailed as error:
        raise ProbeError(str(error), Verdict.FAILURE) from None
    if not 200 <= answer.status < 400:
        # Without the body: a user who may read events may not be allowed to read the pod's data.
        return Outcome(Verdict.FAILURE, f"HTTP probe failed with statuscode: {answer.status}")
    body = answer.body.decode(errors="replace")
    if answer.status >= 300:
        return Outcome(Verdict.WARNING, f"Probe terminated redirects, Response body: {body}")
    return Outcome(Verdict.SUCCESS, body)
