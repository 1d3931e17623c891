"""PATCH: a change to an object instead of a new one.

The patch is applied to the object as the client would see it, in the version of the path; the result takes the same way
as a PUT. After a conflict the patch is applied again to the new object, unless it names a resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from pybernetes.api import strict
from pybernetes.api.base import Struct
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.field import FieldError, forbidden, invalid, required
from pybernetes.api.gocompat import goencoder, gojson, goprint
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.normalize import normalizer
from pybernetes.api.patch import json_patch, merge_patch
from pybernetes.api.slow_decoder import Walk
from pybernetes.net.http import Request, Response
from pybernetes.store.watchers import Item

from ..initializers import wait_until_initialized
from ..large_objects import beside_loop, is_large
from ..negotiation import output_format, patch_type
from ..pipeline.change import update_object
from ..pipeline.context import context_for
from ..pipeline.metadata import check_name, check_namespace, check_uid
from ..pipeline.options import WriteOptions, manager_of, write_options
from ..pipeline.persist import write_object
from ..pipeline.respond import TRANSFORMS, answer
from ..registry.managed_fields import tracked
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .apply import apply_object

T = TypeVar("T", bound=Struct)

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

Apply = Callable[[Any], Any]
"""Makes the patched document from the present one, both as plain JSON values."""


class Patch(NamedTuple):
    """A patch that has been read."""

    apply: Apply
    problems: list[str]
    """Duplicate and unknown fields of the patch itself."""
    shown: str = ""
    """How messages show what was patched, if not by the outcome."""
    touched: Any = None
    """A merge patch itself, or where a JSON patch has been.

    What is there is in the order of names for upstream, and so are complaints about it.
    """


async def patch(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 200 with the object as it was stored."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    kind = patch_type(request.headers, store.custom is not None)
    options = patch_options(info.query, kind)
    manager = manager_of(request, options)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager, options=options)
    if kind == APPLY:
        item, created = await apply_object(store, request, options, context)
        if created and store.initializes and not context.dry_run:
            item = await wait_until_initialized(store, item, info)
        return answer(request, store.resource, store.raw(item), form, 201 if created else 200)
    cls = None if store.custom is not None else store.resource.type
    context.large = is_large(request.body)
    if context.large:
        change = await beside_loop(lambda: patcher(kind, request.body, cls))
    else:
        change = patcher(kind, request.body, cls)
    item = await patch_object(store, info.name, change, options, context)
    return answer(request, store.resource, store.raw(item), form)


def patch_options(query: dict[str, str], kind: str) -> WriteOptions:
    """The options of a patch: apply needs a manager, and only apply can be forced. Raises Invalid."""

    def check(options: WriteOptions) -> list[FieldError]:
        if kind != APPLY:
            return [] if options.force is None else [forbidden("force", "may not be specified for non-apply patch")]
        return [] if options.field_manager else [required("fieldManager", "is required for apply patch")]

    return write_options(query, "PatchOptions", check)


async def patch_object(store: ResourceStore, name: str, patch: Patch, options: WriteOptions, context: Context) -> Item:
    """Patch and store an object."""
    resource = store.resource

    def patched(old: Any) -> Any:
        if store.custom is not None:
            outcome = patch.apply(store.custom.document(old))
            return store.custom.read_patched(outcome, patch, options.field_validation, context.warnings)
        visible = store.from_storage(old)
        visible.kind, visible.api_version = resource.kind, resource.api_version
        outcome = patch.apply(msgspec.json.decode(goencoder.encode(visible)))
        new: Any = decode_patched(outcome, patch, resource.type, resource.api_version, options, context.warnings)
        new = store.to_storage(new)
        store.strategy.default(new)
        return new

    async def change(old: Any) -> Any:
        new = await beside_loop(lambda: patched(old)) if context.large else patched(old)
        if new.metadata is not None:
            check_namespace(store, new.metadata, context.namespace)
        check_name(new.metadata, name)
        check_uid(store, new.metadata, old.metadata)
        await tracked(store, new, old, context)
        return await update_object(store, new, old, context)

    return await write_object(store, name, change, context)


def patcher(kind: str, body: bytes, cls: type[Struct] | None) -> Patch:
    """The patch of an object of a class. Raises BadRequest if it cannot be read.

    Custom resources have no class, and no strategic merge.
    """
    if kind == JSON_PATCH:
        change, pairs = _read(body, "error decoding patch: ")
        operations = json_patch.check(change)
        repeated = [f"json patch {problem}" for problem in gojson.duplicates(pairs)]
        problems = [*repeated, *json_patch.unknown_fields(operations)]
        return Patch(lambda document: json_patch.apply(document, operations), problems, touched=_visited(operations))
    if kind == MERGE:
        change, pairs = _read(body, "error decoding patch: ")
        fields = merge_patch.check(change)
        return Patch(lambda document: merge_patch.apply(document, fields), gojson.duplicates(pairs), touched=change)
    from pybernetes.api.patch.strategic_merge import strategic_merge

    assert cls is not None
    change, pairs = _read(body, "")
    change = {} if change is None else _whole(change)
    if not isinstance(change, dict):
        raise BadRequest(
            f"json: cannot unmarshal {gojson.word(change)} into Go value of type map[string]interface {{}}"
        )
    shown = goprint.plain(change)
    return Patch(lambda document: strategic_merge(document, change, cls), gojson.duplicates(pairs), shown)


def _read(body: bytes, prefix: str) -> tuple[Any, Any]:
    """The patch as plain values, and with all its keys if some may be there twice."""
    try:
        value = msgspec.json.decode(body)
        if msgspec.json.encode(value).count(b'"') == body.count(b'"') and b"\\u0022" not in body:
            return value, None
    except (ValueError, RecursionError):
        pass
    try:
        pairs = gojson.loads(body)
        return gojson.plain(pairs), pairs
    except gojson.SyntaxProblem as problem:
        raise BadRequest(f"{prefix}{problem}") from None
    except RecursionError:
        raise BadRequest(f"{prefix}{gojson.TOO_DEEP}") from None


def _whole(value: Any) -> Any:
    """A strategic merge patch may write whole numbers with a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def decode_patched(
    patched: Any, patch: Patch, cls: type[T], api_version: str, options: WriteOptions, warnings: list[str]
) -> T:
    """The result of a patch as an object; errors in it are reported as errors of the patch."""
    if not isinstance(patched, dict):
        raise BadRequest("the patched object is not a JSON object")
    problems = patch.problems

    def refused(why: str) -> Invalid:
        shown = patch.shown or msgspec.json.encode(_ordered(patched, patch.touched or {})).decode()
        return Invalid("", "", "", [invalid("patch", shown, why)])

    obj: Any = cls()
    try:
        if not patch.shown and patched.get("apiVersion") in (None, ""):
            # Without a version nothing of it is read, not even its name.
            unread = sorted(patched.keys() - {"apiVersion", "kind"})
            problems = [*problems, *(f"unknown field {quote(name)}" for name in unread)]
        else:
            obj = _decoder(cls).decode(msgspec.json.encode(patched))
            normalizer(cls)(obj)
    except (ValueError, RecursionError):
        try:
            ordered = _ordered(patched, patch.touched) if patch.touched is not None else patched
            obj, unknown = strict.convert(cls, ordered, _walker(patch))
        except strict.DecodeError as error:
            raise refused(_wrong_type(patched, patch, cls, api_version) or str(error)) from None
        problems = [*problems, *(sorted(unknown) if patch.shown else unknown)]
    if problems and options.field_validation == strict.STRICT:
        raise refused(strict.strict_decoding_error(problems))
    if options.field_validation == strict.WARN:
        warnings.extend(problem for problem in problems if problem not in warnings)
    if patch.shown:
        obj.kind, obj.api_version = cls.__name__, api_version  # a strategic merge patch cannot change them
    elif mismatch := strict.kind_mismatch(obj.kind, obj.api_version, cls, api_version):
        raise refused(mismatch)
    decoded: T = obj
    return decoded


def _wrong_type(patched: dict[str, Any], patch: Patch, cls: type[Struct], api_version: str) -> str:
    """The error if the result has the wrong kind; it is reported before all others."""
    if patch.shown:
        return ""
    for name in ("apiVersion", "kind"):
        if (wrong := strict.no_text(patched, name)) is not None:
            return f"couldn't get version/kind; json parse error: {wrong}"
    return strict.kind_mismatch(patched.get("kind"), patched.get("apiVersion"), cls, api_version)


def _ordered(value: Any, touched: Any) -> Any:
    """With the names in order wherever a patch has been; the rest is as it was."""
    if isinstance(value, list) and isinstance(touched, list):
        return [_ordered(each, each) for each in value]
    if isinstance(value, list) and isinstance(touched, dict):
        return [_ordered(each, touched.get(str(index))) for index, each in enumerate(value)]
    if not isinstance(value, dict) or not isinstance(touched, dict):
        return value
    return {name: _ordered(value[name], touched.get(name)) for name in sorted(value)}


def _visited(operations: list[dict[str, Any] | None]) -> dict[str, Any]:
    """The objects and lists that a JSON patch goes through, by their names."""
    visited: dict[str, Any] = {}
    for operation in operations:
        for pointer in ((operation or {}).get(end) for end in ("path", "from")):
            at = visited
            for name in (pointer or "").split("/")[1:-1]:
                at = at.setdefault(json_patch.unescape(name), {})
    return visited


def _walker(patch: Patch) -> Walk | None:
    """In whose words a strategic merge patch is refused; the others become JSON again, and the decoder speaks."""
    if not patch.shown:
        return None
    from pybernetes.api.gocompat.unstructured import Converter

    return Converter()


@cache
def _decoder(cls: type[Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cls)
