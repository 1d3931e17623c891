"""AdmissionReview: the question that a webhook is sent, and what may be believed of its answer."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.api.gocompat.quote import quote


class Unusable(Exception):
    """An answer that cannot be used; the text says why, in upstream's words."""


class Undecodable(Exception):
    """A body that is no AdmissionReview at all."""


class Answer(msgspec.Struct):
    """A webhook's response."""

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
    """The answer in a body. Raises Undecodable or Unusable."""
    review = _decode(body)
    response = review.get("response")
    if response is None:
        raise Unusable("webhook response was absent")
    if not isinstance(response, dict):
        raise Undecodable("json: cannot unmarshal response into Go struct field AdmissionReview.response")
    patch = _patch_bytes(response)
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
        _patch(patch, response.get("patchType"), version, mutating),
        _status(response),
        _warnings(response),
        _annotations(response),
    )


def _decode(body: bytes) -> dict[str, Any]:
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Undecodable(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise Undecodable("couldn't get version/kind; json parse error: the answer is not an object")
    kind, version = review.get("kind") or "", review.get("apiVersion") or ""
    known = version in ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
    if (kind or version) and not (kind == "AdmissionReview" and known):
        scheme = '"k8s.io/apiserver/pkg/util/webhook/client.go:71"'
        raise Undecodable(
            f"no kind {quote(str(kind))} is registered for version {quote(str(version))} in scheme {scheme}"
        )
    return review


def _patch_bytes(response: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Undecodable("illegal base64 data at input byte 0") from None


def _patch(patch: bytes, kind: Any, version: str, mutating: bool) -> bytes:
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
        raise Undecodable("response.status is not an object")
    return status


def _warnings(response: dict[str, Any]) -> list[str]:
    warnings = response.get("warnings") or []
    if not isinstance(warnings, list) or not all(isinstance(each, str) for each in warnings):
        raise Undecodable("response.warnings is not a list of strings")
    return warnings


def _annotations(response: dict[str, Any]) -> dict[str, str]:
    found = response.get("auditAnnotations") or {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise Undecodable("response.auditAnnotations is not a map of strings")
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
