"""Errors for invalid responses, with the wording of upstream's client."""

from __future__ import annotations

import msgspec

from pybernetes.api.gocompat.quote import quote

_ANSWERS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    413: "the server responded with the status code 413 but did not return more information",
    415: "the server was unable to respond with a content type that the client supports",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def refusal(status: int, body: bytes, nothing: str = "unknown") -> str:
    """The message of a Status in the body, or what the code means; `nothing` stands for a body without a word."""
    try:
        found = msgspec.json.decode(body)
        if isinstance(found, dict) and found.get("kind") == "Status" and found.get("message"):
            return str(found["message"])
    except (msgspec.DecodeError, RecursionError):
        pass
    text = body[:2048].decode("utf-8", "replace").strip()
    if status >= 500 and status not in _ANSWERS:
        return f"an error on the server ({quote(text or nothing)}) has prevented the request from succeeding"
    return _ANSWERS.get(status, f"the server responded with the status code {status}")
