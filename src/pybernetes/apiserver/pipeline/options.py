"""Query parameters and option bodies, checked and in the types the verbs want."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from pybernetes.api import fields, labels, strict
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.field import FieldError, forbidden, invalid, not_supported
from pybernetes.api.gocompat import gojson
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.managedfields import manager_name
from pybernetes.api.meta.v1 import DeleteOptions, Preconditions
from pybernetes.net.http import Request

from ..bodies import as_json
from ..registry.resource_store import ResourceStore
from ..registry.selectable import Attributes, not_selectable

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


class ListOptions(msgspec.Struct, gc=False):
    """The options of a list or watch. `resource_version` None = not given."""

    label_selector: labels.Selector | None = None
    field_selector: fields.Selector | None = None
    resource_version: int | None = None
    match: str = ""
    limit: int = 0
    continue_: str = ""
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None
    initialized_only: bool = False

    @property
    def selects(self) -> bool:
        """Whether a selector leaves some objects out."""
        return self.label_selector is not None or self.field_selector is not None or self.initialized_only

    def matches(self, attributes: Attributes) -> bool:
        """Whether an object is selected."""
        if self.initialized_only and attributes.uninitialized:
            return False
        return (self.label_selector is None or self.label_selector.matches(attributes.labels)) and (
            self.field_selector is None or self.field_selector.matches(attributes.fields)
        )


def list_options(store: ResourceStore, query: dict[str, str], *, watch: bool = False) -> ListOptions:
    """The options of a list or watch. Raises BadRequest or Invalid."""
    options = ListOptions()
    if store.initializes:
        options.initialized_only = not _flag(query, "includeUninitialized")
    if not query:
        return options
    # Errors are reported in this order: numbers, the form of selectors, contradicting options, fields.
    options.timeout_seconds = _integer(query, "timeoutSeconds")
    options.limit = max(_integer(query, "limit") or 0, 0)
    if text := query.get("labelSelector"):
        options.label_selector = _labels(text)
    selector = _fields(text) if (text := query.get("fieldSelector")) else None
    version = query.get("resourceVersion", "")
    options.match = query.get("resourceVersionMatch", "")
    options.continue_ = query.get("continue", "")
    options.allow_bookmarks = _flag(query, "allowWatchBookmarks")
    if "sendInitialEvents" in query:
        options.send_initial_events = _flag(query, "sendInitialEvents")
    errors = _watch_errors(options) if watch else _list_errors(options, version)
    if errors:
        raise Invalid("meta.k8s.io", "ListOptions", "", errors)
    if selector is not None:
        options.field_selector = _selectable(store, selector)
    if version:
        options.resource_version = parse_resource_version(version, "" if watch else "invalid resource version: ")
    return options


def parse_resource_version(text: str, prefix: str = "") -> int:
    """A resourceVersion as a number. Raises BadRequest."""
    digits = text.isascii() and text.isdigit()
    number = int(text.lstrip("0")[:32] or "0") if digits else 0
    if not digits or number >= 1 << 64:
        detail = f"strconv.ParseUint: parsing {quote(text)}: "
        detail += "value out of range" if digits else "invalid syntax"
        raise BadRequest(f"{prefix}{invalid('resourceVersion', text, detail)}")
    return number


@lru_cache(maxsize=1024)
def _labels(text: str) -> labels.Selector | None:
    try:
        selector = labels.parse(text)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    return None if selector.empty() else selector


def _fields(text: str) -> fields.Selector:
    try:
        return fields.parse(text)
    except ValueError as error:
        raise BadRequest(str(error)) from error


def _selectable(store: ResourceStore, selector: fields.Selector) -> fields.Selector | None:
    """The selector of fields that objects can be selected by. Raises BadRequest."""
    for requirement in selector.requirements:
        if requirement.field not in store.selectable:
            raise BadRequest(not_selectable(store.resource, requirement.field))
    if store.aliases:
        selector = selector.transform(lambda field, value: (store.aliases.get(field, field), value))
    return None if selector.empty() else selector


def _integer(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text[:32])
    if not -(1 << 63) <= number < 1 << 63:
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def _flag(query: dict[str, str], name: str) -> bool:
    value = query.get(name)
    return value is not None and value != "0" and value.lower() != "false"


def _list_errors(options: ListOptions, version: str) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if options.match:
        if not version:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in (_EXACT, _NOT_OLDER):
            errors.append(not_supported(field, options.match, (_EXACT, _NOT_OLDER, "")))
        if options.match == _EXACT and version == "0":
            errors.append(forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if options.send_initial_events is not None and options.match != _NOT_OLDER:
        errors.append(forbidden(field, f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}"))
    if options.match:
        if options.send_initial_events is None:
            errors.append(
                forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if options.match != _NOT_OLDER:
            errors.append(not_supported(field, options.match, (_NOT_OLDER,)))
    if options.continue_:
        errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


# -- continue tokens --------------------------------------------------------------------------------------------


_TOKEN_VERSION = "meta.k8s.io/v1"


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def encode_continue(key: str, prefix: str, revision: int) -> str:
    """A token that says: go on after this key, at this revision (-1: whatever is now)."""
    token = msgspec.json.encode(_Token(_TOKEN_VERSION, revision, key[len(prefix) :] + "\0"))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def decode_continue(text: str, prefix: str) -> tuple[str, int]:
    """The key to go on after, and the revision. Raises BadRequest."""

    def refused(why: object) -> BadRequest:
        return BadRequest(f"invalid continue token: continue key is not valid: {why}")

    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        bad = next((at for at, char in enumerate(text) if not re.match("[A-Za-z0-9_-]", char)), len(text) - 1)
        raise refused(f"illegal base64 data at input byte {bad}") from None
    try:
        token = msgspec.json.decode(data, type=_Token | None) or _Token()
    except msgspec.DecodeError as error:
        raise refused(gojson.syntax_problem(data) or error) from None
    if token.v != _TOKEN_VERSION:
        raise refused(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise refused(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not token.start:
        raise refused(f"encoded start key empty (version {_TOKEN_VERSION})")
    if any(part in ("", ".", "..") for part in token.start.removeprefix("/").split("/")):
        raise refused(token.start)
    return prefix + token.start.removeprefix("/").removesuffix("\0"), token.rv


# -- options of writes ------------------------------------------------------------------------------------------


class WriteOptions(msgspec.Struct, gc=False):
    """The options of a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


_DEFAULT_WRITE = WriteOptions()
_VALIDATIONS = ("Ignore", "Strict", "Warn")


def write_options(
    query: dict[str, str], kind: str, check: Callable[[WriteOptions], list[FieldError]] | None = None
) -> WriteOptions:
    """The options of a create, update or patch. Raises Invalid, naming `kind`; `check` has the first word."""
    if not query and check is None:
        return _DEFAULT_WRITE
    options = WriteOptions(
        dry_run="dryRun" in query,
        field_manager=query.get("fieldManager", ""),
        field_validation=query.get("fieldValidation", "") or "Warn",
    )
    if "force" in query:
        options.force = _flag(query, "force")
    errors = check(options) if check is not None else []
    if len(options.field_manager) > 128:
        from pybernetes.api.field import too_long

        errors.append(too_long("fieldManager", options.field_manager, 128))
    if not options.field_manager.isprintable():
        bad = next(index for index, c in enumerate(options.field_manager) if not c.isprintable())
        errors.append(
            invalid(
                "fieldManager",
                options.field_manager,
                f"invalid character U+{ord(options.field_manager[bad]):04X} (at position {bad})",
            )
        )
    if options.dry_run and query["dryRun"] != "All":
        errors.append(not_supported("dryRun", [query["dryRun"]], ("All",)))
    if options.field_validation not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", options.field_validation, ("", *_VALIDATIONS)))
    if errors:
        raise Invalid("meta.k8s.io", kind, "", errors)
    return options


_delete_options = msgspec.json.Decoder(DeleteOptions)


def delete_options(request: Request) -> DeleteOptions:
    """The options of a delete: the body, or the query where there is none. Raises BadRequest or Invalid."""
    query = request.info.query
    if request.body:
        options = _delete_body(request)
    else:
        options = DeleteOptions()
        if "gracePeriodSeconds" in query:
            options.grace_period_seconds = _integer(query, "gracePeriodSeconds")
        if "propagationPolicy" in query:
            options.propagation_policy = query["propagationPolicy"]
        if "orphanDependents" in query:
            options.orphan_dependents = _flag(query, "orphanDependents")
        if "dryRun" in query:
            options.dry_run = [query["dryRun"]]
        if "uid" in query or "resourceVersion" in query:
            options.preconditions = Preconditions(query.get("uid"), query.get("resourceVersion"))
    check_delete_options(options)
    return options


def check_delete_options(options: DeleteOptions) -> None:
    """Refuse options that contradict each other or mean nothing. Raises Invalid."""
    errors: list[FieldError] = []
    if options.orphan_dependents is not None and options.propagation_policy is not None:
        errors.append(
            invalid(
                "propagationPolicy",
                options.propagation_policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    policies = ("Foreground", "Background", "Orphan")
    if options.propagation_policy is not None and options.propagation_policy not in policies:
        errors.append(not_supported("propagationPolicy", options.propagation_policy, (*policies, "nil")))
    if options.dry_run and set(options.dry_run) != {"All"}:
        errors.append(not_supported("dryRun", options.dry_run, ("All",)))
    if errors:
        raise Invalid("meta.k8s.io", "DeleteOptions", "", errors)


def _delete_body(request: Request) -> DeleteOptions:
    body, _ = as_json(request, "DeleteOptions", "v1")
    try:
        options = _delete_options.decode(body)
    except (ValueError, RecursionError):
        options = _delete_slowly(body)
    if options.kind and options.kind != "DeleteOptions":
        scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
        where = f'for version {quote(options.api_version or "v1")} in scheme "{scheme}"'
        raise BadRequest(f"no kind {quote(options.kind)} is registered {where}")
    return options


def _delete_slowly(body: bytes) -> DeleteOptions:
    """The options in a body that the fast decoder refused; unknown fields do not matter."""
    try:
        value = gojson.loads(body)
        if value is None:
            return DeleteOptions()
        if type(value) is not gojson.Pairs:
            raise BadRequest(f"couldn't get version/kind; json parse error: {strict.not_an_object(value)}")
        return strict.convert(DeleteOptions, value)[0]
    except gojson.SyntaxProblem as problem:
        raise BadRequest(f"couldn't get version/kind; json parse error: {problem}") from None
    except strict.DecodeError as error:
        raise BadRequest(str(error)) from None


def manager_of(request: Request, options: WriteOptions) -> str:
    """The manager a request acts as."""
    return manager_name(options.field_manager, request.headers.get("user-agent", ""))
