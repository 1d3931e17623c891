"""Everything the API can refuse with, one class for each reason.

    APIError
     ├── BadRequest               400  BadRequest
     ├── Unauthorized             401  Unauthorized
     ├── Forbidden                403  Forbidden
     ├── NotFound                 404  NotFound
     │    └── PathNotFound                                  nothing is served under this path
     ├── MethodNotSupported       405  MethodNotAllowed     the resource has no such verb
     │    └── MethodNotAllowed                              the path has no such method
     ├── NotAcceptable            406  NotAcceptable
     ├── AlreadyExists            409  AlreadyExists
     │    └── GenerateNameConflict                          every generated name was taken
     ├── Conflict                 409  Conflict
     │    └── ApplyConflict                                 other field managers own fields
     ├── Gone                     410  Gone
     ├── ResourceExpired          410  Expired              a resourceVersion or continue token too old
     ├── RequestEntityTooLarge    413  RequestEntityTooLarge
     ├── UnsupportedMediaType     415  UnsupportedMediaType
     ├── Invalid                  422  Invalid
     │    └── PatchNotApplicable                            a well-formed patch that does not fit the object
     ├── TooManyRequests          429  TooManyRequests
     ├── InternalError            500  InternalError
     ├── ServerTimeout            500  ServerTimeout
     ├── ServiceUnavailable       503  ServiceUnavailable
     └── Timeout                  504  Timeout
          └── TooLargeResourceVersion                       a resourceVersion from the future

Raise the class that says what happened; the server answers with its `status()`, whose words and shape are the ones
clients of Kubernetes match on. `from_status` is the way back, for clients that receive a Status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from .field import FieldError, aggregate, bounded
from .gocompat.quote import quote

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""Why an update with an old resourceVersion conflicts."""


MAX_CAUSES_LENGTH = 1 << 20
"""Characters of what is wrong with an object. Several errors may each print a value of megabytes."""


class APIError(Exception):
    """A request that failed; `status()` is what the client sees."""

    code: int = 500
    reason: str = ""
    headers: Sequence[tuple[str, str]] = ()
    """More headers of the response."""

    def __init__(
        self,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        code: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.metadata: dict[str, str] = {}
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    def status(self) -> dict[str, Any]:
        """The complete Status object, its keys in the order of the wire."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata}
        status["status"] = "Failure"
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after(self) -> int:
        """Seconds for the `Retry-After` header; 0 = no header."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    @property
    def causes(self) -> list[dict[str, Any]]:
        """`details.causes`, empty if there are none."""
        return list((self.details or {}).get("causes") or ())

    def __str__(self) -> str:
        return self.message


class BadRequest(APIError):
    """The request cannot be understood."""

    code, reason = 400, "BadRequest"


class Unauthorized(APIError):
    """The request has no valid credentials."""

    code, reason = 401, "Unauthorized"

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(APIError):
    """The user may not do this, or an admission plugin refused it; `why` ends the message."""

    code, reason = 403, "Forbidden"

    def __init__(self, group: str, resource: str, name: str, why: object) -> None:
        qualified = _qualified(group, resource)
        subject = f"{qualified} {quote(name)} is " if qualified and name else f"{qualified} is " if qualified else ""
        super().__init__(f"{subject}forbidden: {why}", _details(name, group, resource))

    @classmethod
    def request(
        cls,
        user: str,
        verb: str,
        group: str,
        resource: str,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
        why: str = "",
    ) -> Forbidden:
        """The authorizer's refusal of a request for a resource."""
        what = f"{resource}/{subresource}" if subresource else resource
        where = f"in the namespace {quote(namespace)}" if namespace else "at the cluster scope"
        text = f"User {quote(user)} cannot {verb} resource {quote(what)} in API group {quote(group)} {where}"
        return cls(group, resource, name, _with_reason(text, why))

    @classmethod
    def path(cls, user: str, verb: str, path: str, why: str = "") -> Forbidden:
        """The authorizer's refusal of a request for a path that is no resource."""
        return cls("", "", "", _with_reason(f"User {quote(user)} cannot {verb} path {quote(path)}", why))


class NotFound(APIError):
    """The named object does not exist."""

    code, reason = 404, "NotFound"

    def __init__(self, group: str, resource: str, name: str) -> None:
        super().__init__(f"{_qualified(group, resource)} {quote(name)} not found", _details(name, group, resource))


class PathNotFound(NotFound):
    """Nothing is served under this path."""

    def __init__(self) -> None:
        APIError.__init__(self, "the server could not find the requested resource", {})


class MethodNotSupported(APIError):
    """The resource exists but has no such verb."""

    code, reason = 405, "MethodNotAllowed"

    def __init__(self, group: str, resource: str, action: str) -> None:
        qualified = _qualified(group, resource)
        message = f"{action} is not supported on resources of kind {quote(qualified)}"
        super().__init__(message, _details("", group, resource))


class MethodNotAllowed(MethodNotSupported):
    """The path is served, but not with this HTTP method."""

    def __init__(self) -> None:
        APIError.__init__(self, "the server does not allow this method on the requested resource", {})


class NotAcceptable(APIError):
    """No media type the client accepts can be produced; `target` names a conversion that was asked for."""

    code, reason = 406, "NotAcceptable"

    def __init__(self, accepted: Iterable[str], target: str = "") -> None:
        when = f" when converting to {target}" if target else ""
        super().__init__(f"only the following media types are accepted{when}: {', '.join(accepted)}")


class AlreadyExists(APIError):
    """The name is taken."""

    code, reason = 409, "AlreadyExists"

    def __init__(self, group: str, resource: str, name: str) -> None:
        message = f"{_qualified(group, resource)} {quote(name)} already exists"
        super().__init__(message, _details(name, group, resource))


class GenerateNameConflict(AlreadyExists):
    """Every name made from `generateName` was taken; trying again makes new ones."""

    def __init__(self, group: str, resource: str, name: str, retry_after_seconds: int = 1) -> None:
        super().__init__(group, resource, name)
        self.message += ", the server was not able to generate a unique name for the object"
        self.args = (self.message,)
        self.details = _details(name, group, resource, retry_after_seconds=retry_after_seconds)


class Conflict(APIError):
    """The object is not in the state the request was made for."""

    code, reason = 409, "Conflict"

    def __init__(self, group: str, resource: str, name: str, why: object = MODIFIED) -> None:
        message = f"Operation cannot be fulfilled on {_qualified(group, resource)} {quote(name)}: {why}"
        super().__init__(message, _details(name, group, resource))


class ApplyConflict(Conflict):
    """Server-side apply would take fields from other managers; a cause names each of them."""

    def __init__(self, causes: Sequence[dict[str, str]], message: str) -> None:
        APIError.__init__(self, message, _details(causes=causes))


class Gone(APIError):
    """The requested resource or version is not served any more."""

    code, reason = 410, "Gone"


class ResourceExpired(APIError):
    """The revision asked for has been compacted; list again."""

    code, reason = 410, "Expired"


class RequestEntityTooLarge(APIError):
    """The body is larger than the limit."""

    code, reason = 413, "RequestEntityTooLarge"

    def __init__(self, message: str) -> None:
        super().__init__(f"Request entity too large: {message}")


class UnsupportedMediaType(APIError):
    """The body is in a format that is not understood here."""

    code, reason = 415, "UnsupportedMediaType"

    def __init__(self, accepted: Iterable[str]) -> None:
        known = ", ".join(accepted)
        super().__init__(f"the body of the request was in an unknown format - accepted media types include: {known}")


class Invalid(APIError):
    """The object breaks the rules of its kind; a cause for each field."""

    code, reason = 422, "Invalid"

    def __init__(self, group: str, kind: str, name: str, errors: Sequence[FieldError] = ()) -> None:
        message = f"{_qualified(group, kind)} {quote(name)} is invalid"
        shown = bounded(errors, MAX_CAUSES_LENGTH) if len(errors) > 1 else errors
        if shown:
            message = f"{message}: {aggregate(shown)}"
        if len(shown) < len(errors):
            message = f"{message}; {len(errors) - len(shown)} more errors are not shown"
        super().__init__(message, _details(name, group, kind, causes=[error.cause() for error in shown]))
        self.errors = list(errors)


class PatchNotApplicable(Invalid):
    """The patch is well formed but does not fit this object; `why` is for the log, upstream sends none."""

    def __init__(self, why: str) -> None:
        APIError.__init__(self, "the server rejected our request due to an error in our request", {})
        self.errors = []
        self.why = why


class TooManyRequests(APIError):
    """Come back later."""

    code, reason = 429, "TooManyRequests"

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message, _details(retry_after_seconds=retry_after_seconds))


class InternalError(APIError):
    """A fault of the server."""

    code, reason = 500, "InternalError"

    def __init__(self, error: object) -> None:
        super().__init__(f"Internal error occurred: {error}", _details(causes=[{"message": str(error)}]))


class ServerTimeout(APIError):
    """The operation could not be completed now, and nothing happened; try again."""

    code, reason = 500, "ServerTimeout"

    def __init__(self, group: str, resource: str, operation: str, retry_after_seconds: int = 0) -> None:
        qualified = _qualified(group, resource)
        super().__init__(
            f"The {operation} operation against {qualified} could not be completed at this time, please try again.",
            _details(operation, group, resource, retry_after_seconds=retry_after_seconds),
        )


class ServiceUnavailable(APIError):
    """The server, or one behind it, is not ready."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(APIError):
    """Time ran out; the operation may still complete."""

    code, reason = 504, "Timeout"

    def __init__(self, message: str, retry_after_seconds: int = 0) -> None:
        super().__init__(f"Timeout: {message}", _details(retry_after_seconds=retry_after_seconds))


class TooLargeResourceVersion(Timeout):
    """The client has seen a newer revision than this server; it will get there."""

    _CAUSE: ClassVar[dict[str, str]] = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}

    def __init__(self, asked: int, current: int, retry_after_seconds: int = 1) -> None:
        super().__init__(f"Too large resource version: {asked}, current: {current}")
        self.details = _details(causes=[dict(self._CAUSE)], retry_after_seconds=retry_after_seconds)


def from_status(status: dict[str, Any]) -> APIError:
    """The exception a Status object stands for, so that `except NotFound` works on the client's side too."""
    reason = str(status.get("reason") or "")
    error = APIError.__new__(_BY_REASON.get(reason, APIError))
    APIError.__init__(
        error,
        str(status.get("message") or ""),
        status.get("details"),
        code=int(status.get("code") or 500),
        reason=reason,
    )
    if isinstance(error, Invalid):
        error.errors = []
    return error


_BY_REASON: dict[str, type[APIError]] = {cls.reason: cls for cls in APIError.__subclasses__()}


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(
    name: str = "",
    group: str = "",
    kind: str = "",
    *,
    causes: Sequence[dict[str, str]] = (),
    retry_after_seconds: int = 0,
) -> dict[str, Any]:
    """Details with the empty ones left out, in the order of the wire; `{}` if all are empty, as upstream has it."""
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if causes:
        details["causes"] = list(causes)
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return details


def _with_reason(text: str, why: str) -> str:
    # The text holds what the user sent; it must not read as HTML in a browser. The authorizer's own words may.
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{safe}: {why}" if why else safe
