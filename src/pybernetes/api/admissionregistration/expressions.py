"""Expressions of webhooks and policies: what they may see, and whether they make sense.

`variables` of a policy are compiled in their order, each with those before it in sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

from ..cel import types as t
from ..cel.ast import CompileError
from ..cel.environment import Environment, Program
from ..cel.functions import Library, function
from ..cel.libraries.authorizer import AUTHORIZER, RESOURCE_CHECK
from ..cel.literals import Uninstantiable
from ..cel.schemas import type_from_schema
from ..cel.types import Field, Type

_GROUP_VERSION = {"group": t.STRING, "version": t.STRING}
_STRINGS = t.list_of(t.STRING)
_KIND = t.object_type("kubernetes.GroupVersionKind", {**_GROUP_VERSION, "kind": t.STRING})
_RESOURCE = t.object_type("kubernetes.GroupVersionResource", {**_GROUP_VERSION, "resource": t.STRING})
_USER = t.object_type(
    "kubernetes.UserInfo",
    {"username": t.STRING, "uid": t.STRING, "groups": _STRINGS, "extra": t.map_of(t.STRING, _STRINGS)},
)
REQUEST = t.object_type(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": t.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": t.STRING,
        "name": t.STRING,
        "namespace": t.STRING,
        "operation": t.STRING,
        "userInfo": _USER,
        "dryRun": t.BOOL,
        "options": t.DYN,
    },
)
ANYTHING: tuple[Type, ...] = ()


@cache
def namespace_type() -> Type:
    """The type of `namespaceObject`."""
    text, moment, number = {"type": "string"}, {"type": "string", "format": "date-time"}, {"type": "integer"}
    texts = {"type": "array", "items": text}
    pairs = {"type": "object", "additionalProperties": text}
    metadata: dict[str, Any] = dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), text)
    metadata |= {
        "labels": pairs,
        "annotations": pairs,
        "creationTimestamp": moment,
        "deletionTimestamp": moment,
        "deletionGracePeriodSeconds": number,
        "generation": number,
        "finalizers": texts,
    }
    condition = {"status": text, "type": text, "lastTransitionTime": moment, "message": text, "reason": text}
    conditions = {"type": "array", "items": {"type": "object", "properties": condition}}
    found = type_from_schema(
        {
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": metadata},
                "spec": {"type": "object", "properties": {"finalizers": texts}},
                "status": {"type": "object", "properties": {"conditions": conditions, "phase": text}},
            },
        }
    )
    assert found is not None
    found.convert = None  # its times are the texts they were; upstream does not convert them either
    return found


@cache
def environment(params: bool = False, authorizer: bool = True, patch: bool = False) -> Environment:
    """The environment of expressions about requests; `patch` adds `Object{}`, `JSONPatch{}` and
    `jsonpatch.escapeKey`."""
    variables = {"object": t.DYN, "oldObject": t.DYN, "namespaceObject": namespace_type(), "request": REQUEST}
    if params:
        variables["params"] = t.DYN
    if authorizer:
        variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    if not patch:
        return Environment(variables)
    made = Environment(variables, functions=_PATCH_FUNCTIONS)
    made.types = _PatchTypes(made.types)
    return made


class ObjectValue(dict[str, Any]):
    """`Object.spec{...}`: fields, and the name it was written with."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.type_name = type_name


class _AnyFields(dict[str, Field]):
    """An object of an unknown type: every field exists, of any type."""

    def get(self, name: str, default: Any = None) -> Field:
        return Field(t.DYN, name)


class _PatchTypes(dict[str, Type]):
    """The types that patches are written with; `Object.spec.anything` is made when it is asked for."""

    def get(self, name: str, default: Any = None) -> Any:
        if name == "Object" or name.startswith("Object."):
            return object_type(name)
        return JSON_PATCH if name == "JSONPatch" else super().get(name, default)


@lru_cache(4096)  # expressions name any path
def object_type(name: str) -> Type:
    """The type of `Object{}` or of one of its parts."""
    made = Type("object", name, fields=_AnyFields())
    made.convert = lambda fields: ObjectValue(name, fields)
    return made


JSON_PATCH = t.object_type("JSONPatch", {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN})


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_PATCH_FUNCTIONS: Library = {
    "jsonpatch.escapeKey": [function("string_jsonpatch_escapeKey_string", (t.STRING,), t.STRING, _escape_key)]
}


class Expression:
    """A compiled expression, or what is wrong with it (`error`)."""

    __slots__ = ("error", "internal", "program", "source")

    def __init__(self, source: str, env: Environment, returns: Sequence[Type] = (t.BOOL,)) -> None:
        self.source = source
        self.error = ""
        self.internal = False
        self.program: Program | None = None
        try:
            self.program = env.compile(source)
            self.error = _mismatch(self.program.result_type, returns)
        except Uninstantiable as error:
            self.error = _mismatch(error.result_type, returns)
            if not self.error:
                self.error, self.internal = f"program instantiation failed: {error}", True
        except CompileError as error:
            self.error = f"compilation failed: {error}"
        if self.error:
            self.program = None


def _mismatch(found: Type, returns: Sequence[Type]) -> str:
    """The error for a result of the wrong type; empty if the type is right."""
    if not returns or any(found.exact(each) for each in returns):
        return ""
    listed = " ".join(each.go for each in returns)
    return f"must evaluate to {listed if len(returns) == 1 else f'one of [{listed}]'} but got {found.go}"


_SCALARS = frozenset(
    each.kind for each in (t.BOOL, t.BYTES, t.DOUBLE, t.DURATION, t.INT, t.NULL, t.STRING, t.TIMESTAMP, t.UINT)
)


def _variable_type(type: Type) -> Type:
    """The type of a variable as other expressions see it; `dyn` for objects, optional values and the like."""
    if type.kind == "list":
        return t.list_of(_variable_type(type.params[0]))
    if type.kind == "map":
        key, value = type.params
        return t.map_of(_variable_type(key), _variable_type(value))
    return type if type.kind in _SCALARS else t.DYN


class Composition:
    """The expressions of one policy, which share its variables."""

    def __init__(self, variables: Iterable[tuple[str, str]], params: bool) -> None:
        self._params = params
        self._type = Type("object", "kubernetes.variables", fields={})
        self.variables: dict[str, Expression] = {}
        for name, source in variables:
            self.add(name, source)

    def add(self, name: str, source: str) -> Expression:
        """One more variable, for all that is compiled after it."""
        made = self.compile(source, ANYTHING)
        found = _variable_type(made.program.result_type) if made.program is not None else t.DYN
        assert self._type.fields is not None
        self._type.fields[name] = Field(found, name)
        self.variables[name] = made
        return made

    def environment(self, authorizer: bool = True, patch: bool = False) -> Environment:
        """The environment of the policy's expressions."""
        return environment(self._params, authorizer, patch).extend({"variables": self._type})

    def compile(
        self, source: str, returns: Sequence[Type], *, authorizer: bool = True, patch: bool = False
    ) -> Expression:
        """One of the policy's expressions."""
        return Expression(source, self.environment(authorizer, patch), returns)
