"""Whether expressions compile. They are compiled only where one has changed: compiling costs half a millisecond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...field import FieldError, Path, internal, invalid
from ..v1 import MutatingAdmissionPolicySpec, ValidatingAdmissionPolicySpec, Variable

if TYPE_CHECKING:
    from ..expressions import Composition


def validate_expression(source: str, path: Path, *, params: bool = False) -> list[FieldError]:
    """A match condition: something about the request that is true or false."""
    from ..expressions import Expression, environment

    made = Expression(source, environment(params))
    return _told(made, path, source)


def _told(made: Any, path: Path, shown: str | None) -> list[FieldError]:
    if not made.error:
        return []
    return [internal(path, made.error) if made.internal else invalid(path, shown, made.error)]


class PolicyExpressions:
    """Compiles a policy's CEL expressions one by one during validation; each variable is visible to the next.

    Unchanged policies are not compiled again.
    """

    def __init__(self, spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec, *, changed: bool) -> None:
        self._changed = changed
        self._params = spec.param_kind is not None
        self._composed = bool(spec.variables) or isinstance(spec, MutatingAdmissionPolicySpec)

    @cached_property
    def _composition(self) -> Composition:
        from ..expressions import Composition

        return Composition((), self._params)

    def variable(self, variable: Variable, path: Path) -> list[FieldError]:
        """One more variable, whatever its type."""
        if not self._changed:
            return []
        made = self._composition.add(variable.name or "", variable.expression or "")
        return _told(made, path, variable.expression or "")

    def condition(self, source: str, path: Path) -> list[FieldError]:
        """Something that is true or false."""
        return self._check(source, lambda types: (types.BOOL,), path)

    def message(self, source: str, path: Path) -> list[FieldError]:
        """A text that does not depend on what the user may do."""
        return self._check(source, lambda types: (types.STRING,), path, authorizer=False)

    def annotation(self, source: str, path: Path) -> list[FieldError]:
        """A text, or nothing."""
        return self._check(source.strip(), lambda types: (types.STRING, types.NULL), path, shown=source)

    def apply_configuration(self, source: str, path: Path) -> list[FieldError]:
        """A part of an object."""
        from ..expressions import object_type

        return self._check(source.strip(), lambda _: (object_type("Object"),), path, patch=True)

    def json_patch(self, source: str, path: Path) -> list[FieldError]:
        """A list of operations."""
        from ..expressions import JSON_PATCH

        return self._check(source.strip(), lambda types: (types.list_of(JSON_PATCH),), path, patch=True)

    def _check(
        self, source: str, returns: Callable[[Any], Sequence[Any]], path: Path, shown: str = "", **options: bool
    ) -> list[FieldError]:
        if not self._changed:
            return []
        from ...cel import types
        from ..expressions import Expression, environment

        if self._composed:
            made = self._composition.compile(source, returns(types), **options)
        else:
            made = Expression(source, environment(self._params, **options), returns(types))
        return _told(made, path, shown or source)
