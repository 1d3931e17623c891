"""AdmissionReview: the question that a webhook is sent, and what may be believed of its answer."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.api.quote import quote


class Unusable(Exception):
    """An answer that cannot be used; the text says why, in upstream's words."""


class Answer(msgspec.Struct):
    """What a webhook said."""

    allowed: bool
    patch: bytes
    status: dict[str, Any] | None
    warnings: list[str]
    annotations: dict[str, str]


def question(
    uid: str, version: str, request: dict[str, Any], new: dict[str, Any] | None, old: dict[str, Any] | None
) -> bytes:
    """The review to send."""
    return msgspec.json.encode(
        {
            "kind": "AdmissionReview",
            "apiVersion": f"admission.k8s.io/{version}",
            "request": {"uid": uid, **request, "object": new, "oldObject": old},
        }
    )


def review_version(versions: list[str] | None) -> str:
    """The first version that the webhook takes and we can send. Raises Unusable."""
    for version in versions or ():
        if version in ("v1", "v1beta1"):
            return version
    raise Unusable("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def read(body: bytes, uid: str, version: str, mutating: bool) -> Answer:
    """The answer in a body. Raises Unusable."""
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unusable(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise Unusable("couldn't get version/kind; json parse error: the answer is not an object")
    response = review.get("response")
    if response is None:
        raise Unusable("webhook response was absent")
    if not isinstance(response, dict):
        raise Unusable("response is not an object")
    if version == "v1":
        if response.get("uid") != uid:
            raise Unusable(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
        if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != "admission.k8s.io/v1":
            group, _, found = str(review.get("apiVersion") or "").rpartition("/")
            raise Unusable(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
                f"{group}/{found}, Kind={review.get('kind') or ''}"
            )
    return Answer(
        response.get("allowed") is True,
        _patch(response, version, mutating),
        _status(response),
        _warnings(response),
        _annotations(response),
    )


def _patch(response: dict[str, Any], version: str, mutating: bool) -> bytes:
    text, kind = response.get("patch"), response.get("patchType")
    try:
        patch = base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Unusable("response.patch is not base64") from None
    if version == "v1beta1":
        return patch if mutating else b""
    if not mutating:
        if patch:
            raise Unusable("validating webhook may not return response.patch")
        if kind is not None:
            raise Unusable("validating webhook may not return response.patchType")
        return b""
    if patch and kind is None:
        raise Unusable("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise Unusable("webhook returned response.patchType but not response.patch")
    if kind is not None and kind != "JSONPatch":
        word = "webhook returned invalid response.patchType of" if not kind else "unsupported patch type"
        raise Unusable(f"{word} {quote(str(kind))}")
    return patch


def _status(response: dict[str, Any]) -> dict[str, Any] | None:
    status = response.get("status")
    if status is not None and not isinstance(status, dict):
        raise Unusable("response.status is not an object")
    return status


def _warnings(response: dict[str, Any]) -> list[str]:
    warnings = response.get("warnings") or []
    if not isinstance(warnings, list) or not all(isinstance(each, str) for each in warnings):
        raise Unusable("response.warnings is not a list of strings")
    return warnings


def _annotations(response: dict[str, Any]) -> dict[str, str]:
    found = response.get("auditAnnotations") or {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise Unusable("response.auditAnnotations is not a map of strings")
    return found


def refusal(name: str, status: dict[str, Any] | None) -> APIError:
    """The error that the client of a refused request gets: what the webhook said, and who it was."""
    status = status or {}
    code, message, reason = status.get("code"), status.get("message"), status.get("reason")
    denied = f"admission webhook {quote(name)} denied the request"
    denied = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    details = status.get("details")
    return APIError(
        denied,
        details if isinstance(details, dict) else None,
        code=code if isinstance(code, int) and 400 <= code < 600 else 400,
        reason=str(reason or ""),
    )
