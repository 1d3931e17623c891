"""A checked tree to a function: every node becomes a closure that takes the frame and answers its value.

The frame counts what is spent. Limits are looked at where work can grow (loops, calls with long arguments) and at the
end; everything between is bounded by the length of the expression. Loops of macros run as Python loops and charge what
upstream's written-out form would have cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ast import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from .functions import Overload, choose, is_certain
from .runtimecosts import LIST_CREATE, MAP_CREATE, STRUCT_CREATE, RuntimeCost, runtime_cost
from .types import Type
from .values import NONE, CostLimitExceeded, EvaluationError, Optional, UInt, show


class Frame:
    """One evaluation: the variables' values, what was spent, what may be."""

    __slots__ = ("cost", "limit", "values")

    def __init__(self, values: list[Any], limit: int) -> None:
        self.values = values
        self.limit = limit
        self.cost = 0


Step = Callable[[Frame], Any]


class Unset:
    """A variable without a value."""


UNSET = Unset()


class Plan:
    """A closure and the slots of the variables it reads."""

    def __init__(self, root: Node) -> None:
        self.slots: dict[str, int] = {}
        self.size = 0
        self.scopes: list[dict[str, int]] = []
        self.run = self.step(root)

    def slot(self, name: str) -> int:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name not in self.slots:
            self.slots[name] = self.size
            self.size += 1
        return self.slots[name]

    def local(self, *names: str) -> dict[str, int]:
        scope = {}
        for name in names:
            scope[name] = self.size
            self.size += 1
        return scope

    def step(self, node: Node) -> Step:
        """The closure of a node."""
        match node:
            case Literal():
                return _constant(node.value, 0)
            case Ident():
                return self.ident(node)
            case Select():
                if node.variable is not None:
                    return self.ident(node.variable)
                operand = self.step(node.operand)
                return _test(operand, node.key) if node.test else _select(operand, node.key)
            case Call():
                return self.call(node)
            case ListNode():
                return self.list(node)
            case MapNode():
                return self.map(node)
            case StructNode():
                return self.struct(node)
            case Comprehension():
                return self.comprehension(node)
        raise AssertionError(node)

    def ident(self, node: Ident) -> Step:
        if node.constant is not None:
            return _constant(_type_value(node.constant), 1)
        slot, name = self.slot(node.name), node.name

        def read(frame: Frame) -> Any:
            frame.cost += 1
            value = frame.values[slot]
            if value is UNSET:
                raise EvaluationError(f"no such attribute(s): {name}")
            return value

        return read

    def list(self, node: ListNode) -> Step:
        if all(isinstance(item, Literal) for item in node.items) and not node.optional:
            return _constant([item.value for item in node.items], LIST_CREATE)  # type: ignore[attr-defined]
        steps = [self.step(item) for item in node.items]
        optional = node.optional

        def make(frame: Frame) -> Any:
            frame.cost += LIST_CREATE
            if not optional:
                return [step(frame) for step in steps]
            found = []
            for index, step in enumerate(steps):
                value = step(frame)
                if index not in optional:
                    found.append(value)
                elif not isinstance(value, Optional):
                    raise EvaluationError(
                        f"cannot initialize optional list element from non-optional value {show(value)}"
                    )
                elif value.present:
                    found.append(value.value)
            return found

        return make

    def map(self, node: MapNode) -> Step:
        entries = [
            (self.step(entry.key), self.step(entry.value), entry.optional) for entry in node.entries if entry.key
        ]

        def make(frame: Frame) -> Any:
            frame.cost += MAP_CREATE
            found: dict[Any, Any] = {}
            for key_step, value_step, optional in entries:
                key, value = key_step(frame), value_step(frame)
                if isinstance(key, float) and key.is_integer():
                    key = int(key)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional entry '{show(key)}' from non-optional value {show(value)}"
                        )
                    if not value.present:
                        found.pop(key, None)
                        continue
                    value = value.value
                if isinstance(key, (list, dict, type(None), bytes, Optional)):
                    raise EvaluationError(f"unsupported key type: {type(key).__name__}")
                found[key] = value
            return found

        return make

    def struct(self, node: StructNode) -> Step:
        entries = [(entry.json, self.step(entry.value), entry.optional) for entry in node.entries]
        make_value: Callable[[dict[str, Any]], Any] | None = getattr(node.type, "convert", None)

        def make(frame: Frame) -> Any:
            frame.cost += STRUCT_CREATE
            found = {}
            for key, step, optional in entries:
                value = step(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional entry '{key}' from non-optional value {show(value)}"
                        )
                    if not value.present:
                        continue
                    value = value.value
                found[key] = value
            return found if make_value is None else make_value(found)

        return make

    def call(self, node: Call) -> Step:
        special = _SPECIAL.get(node.name)
        if special is not None:
            steps = [self.step(each) for each in node.args]
            return special(steps, node)
        arguments = node.args if node.target is None else [node.target, *node.args]
        steps = [self.step(each) for each in arguments]
        overloads: list[Overload] = node.overloads
        if node.target is not None and node.name in ("or", "orValue") and overloads[0].id.startswith("optional"):
            return _optional_or(steps, node.name)
        if len(overloads) == 1 and is_certain(overloads[0], [each.type for each in arguments]):
            return _direct(steps, overloads[0])
        return _dispatched(steps, node.name, overloads)

    def comprehension(self, node: Comprehension) -> Step:
        ranged = self.step(node.range)
        if node.macro == "bind":
            init = self.step(node.init)
            scope = self.local(node.accu)
            self.scopes.append(scope)
            body = self.step(node.result)
            self.scopes.pop()
            return _bind(init, scope[node.accu], body)
        if node.macro == "fold":
            return self.fold(node, ranged)
        scope = self.local(node.variable, *((node.variable2,) if node.variable2 else ()))
        self.scopes.append(scope)
        body = self.step(node.body)
        filter = self.step(node.filter) if node.filter is not None else None
        self.scopes.pop()
        slots = (scope[node.variable], scope[node.variable2] if node.variable2 else -1)
        if node.macro == "all":
            return _quantified(ranged, slots, body, decisive=False, each=3, again=2)
        if node.macro == "exists":
            return _quantified(ranged, slots, body, decisive=True, each=4, again=3)
        if node.macro == "exists_one":
            return _exists_one(ranged, slots, body)
        return _mapped(ranged, slots, body, filter)

    def fold(self, node: Comprehension, ranged: Step) -> Step:
        init = self.step(node.init)
        accu = self.local(node.accu)
        self.scopes.append(accu)
        scope = self.local(node.variable, *((node.variable2,) if node.variable2 else ()))
        self.scopes.append(scope)
        step = self.step(node.step)
        self.scopes.pop()
        result = self.step(node.result)
        self.scopes.pop()
        slots = (scope[node.variable], scope[node.variable2] if node.variable2 else -1)
        accu_slot = accu[node.accu]

        def run(frame: Frame) -> Any:
            items = ranged(frame)
            values = frame.values
            values[accu_slot] = init(frame)
            for _ in _iterate(items, values, slots):
                values[accu_slot] = step(frame)
                if frame.cost > frame.limit:
                    raise CostLimitExceeded
            return result(frame)

        return run


def _type_value(type: Type) -> Type:
    return Type(type.kind, type.name) if type.params else type


def _constant(value: Any, cost: int) -> Step:
    def constant(frame: Frame) -> Any:
        frame.cost += cost
        return value

    return constant


def _missing_key(key: Any) -> EvaluationError:
    return EvaluationError(f"no such key: {show(key)}")


def field_of(value: Any, key: str) -> Any:
    """`value.key`. Raises EvaluationError."""
    if isinstance(value, dict):
        try:
            return value[key]
        except KeyError:
            raise _missing_key(key) from None
    if isinstance(value, Optional):
        if not value.present or not has_field(value.value, key):
            return NONE
        return Optional(True, field_of(value.value, key))
    get = getattr(value, "cel_field", None)
    if get is not None:
        return get(key)
    raise _missing_key(key)


def has_field(value: Any, key: str) -> bool:
    """Whether `value.key` would have a value."""
    if isinstance(value, dict):
        return key in value
    if isinstance(value, Optional):
        return value.present and has_field(value.value, key)
    has = getattr(value, "cel_has", None)
    return bool(has(key)) if has is not None else False


def _select(operand: Step, key: str) -> Step:
    def select(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if type(value) is dict:
            try:
                return value[key]
            except KeyError:
                raise _missing_key(key) from None
        return field_of(value, key)

    return select


def _test(operand: Step, key: str) -> Step:
    def test(frame: Frame) -> bool:
        value = operand(frame)
        return key in value if type(value) is dict else has_field(value, key)

    return test


def _optional_select(steps: list[Step], node: Call) -> Step:
    operand, key = steps[0], node.key

    def select(frame: Frame) -> Optional:
        value = operand(frame)
        frame.cost += 1
        if isinstance(value, Optional):
            if not value.present:
                return NONE
            value = value.value
        return Optional(True, field_of(value, key)) if has_field(value, key) else NONE

    return select


def _at(container: Any, index: Any) -> Any:
    if isinstance(container, dict):
        try:
            return container[index]
        except (KeyError, TypeError):
            raise _missing_key(index) from None
    if isinstance(container, list):
        if type(index) is float and index.is_integer():
            index = int(index)
        if type(index) is not int and type(index) is not UInt:
            from .values import type_of

            raise EvaluationError(f"unsupported index type '{type_of(index).name}' in list")
        if 0 <= index < len(container):
            return container[index]
        raise EvaluationError(f"index out of bounds: {index}")
    get = getattr(container, "cel_field", None)
    if get is not None and isinstance(index, str):
        return get(index)
    raise _missing_key(index)


def _holds(container: Any, index: Any) -> bool:
    if isinstance(container, dict):
        return isinstance(index, (str, int, float, bool)) and index in container
    if isinstance(container, list):
        return isinstance(index, (int, float)) and 0 <= index < len(container)
    return isinstance(index, str) and has_field(container, index)


def _index(steps: list[Step], node: Call) -> Step:
    container_step, index_step = steps

    def index(frame: Frame) -> Any:
        container, position = container_step(frame), index_step(frame)
        frame.cost += 1
        if isinstance(container, Optional):
            if not container.present or not _holds(container.value, position):
                return NONE
            return Optional(True, _at(container.value, position))
        return _at(container, position)

    return index


def _optional_index(steps: list[Step], node: Call) -> Step:
    container_step, index_step = steps

    def index(frame: Frame) -> Optional:
        container, position = container_step(frame), index_step(frame)
        frame.cost += 1
        if isinstance(container, Optional):
            if not container.present:
                return NONE
            container = container.value
        return Optional(True, _at(container, position)) if _holds(container, position) else NONE

    return index


def _logical(steps: list[Step], node: Call) -> Step:
    decisive = node.name == "_||_"
    if len(steps) == 2:
        first, second = steps

        def both(frame: Frame) -> Any:
            error: EvaluationError | None = None
            try:
                value = first(frame)
                if value is decisive:
                    return decisive
                if value is not (not decisive):
                    error = EvaluationError("no such overload")
            except EvaluationError as failed:
                error = failed
            value = second(frame) if error is None else _absorbing(second, frame, error)
            if value is decisive:
                return decisive
            if error is not None:
                raise error
            if value is not (not decisive):
                raise EvaluationError("no such overload")
            return not decisive

        return both

    def several(frame: Frame) -> Any:
        error: EvaluationError | None = None
        for step in steps:
            try:
                value = step(frame)
            except EvaluationError as failed:
                error = error or failed
                continue
            if value is decisive:
                return decisive
            if value is not (not decisive):
                error = error or EvaluationError("no such overload")
        if error is not None:
            raise error
        return not decisive

    return several


def _absorbing(step: Step, frame: Frame, error: EvaluationError) -> Any:
    try:
        return step(frame)
    except EvaluationError:
        raise error from None


def _conditional(steps: list[Step], node: Call) -> Step:
    condition, then, otherwise = steps

    def choose_branch(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise EvaluationError("no such overload")

    return choose_branch


def _optional_or(steps: list[Step], name: str) -> Step:
    first, second = steps

    def either(frame: Frame) -> Any:
        value = first(frame)
        frame.cost += 1
        if not isinstance(value, Optional):
            raise EvaluationError("no such overload")
        if value.present:
            return value.value if name == "orValue" else value
        return second(frame)

    return either


_SPECIAL: dict[str, Callable[[list[Step], Call], Step]] = {
    "_&&_": _logical,
    "_||_": _logical,
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_select,
}


_PLAIN = frozenset((bool, int, UInt, float, str, bytes, list, dict, type(None)))
_WRONG = (TypeError, AttributeError, ValueError)
"""What implementations raise for values that are not of the type that was declared for them."""


def _direct(steps: list[Step], overload: Overload) -> Step:
    impl, cost = overload.impl, runtime_cost(overload)
    if isinstance(cost, int):
        charge = cost
        if len(steps) == 1:
            only = steps[0]

            def unary(frame: Frame) -> Any:
                value = only(frame)
                frame.cost += charge
                try:
                    return impl(value)
                except _WRONG:
                    raise EvaluationError("no such overload") from None

            return unary
        if len(steps) == 2:
            left, right = steps

            def binary(frame: Frame) -> Any:
                one, other = left(frame), right(frame)
                frame.cost += charge
                try:
                    return impl(one, other)
                except _WRONG:
                    raise EvaluationError("no such overload") from None

            return binary
    return _charged(steps, impl, cost)


def _charged(steps: list[Step], impl: Callable[..., Any], cost: RuntimeCost) -> Step:
    def call(frame: Frame) -> Any:
        values = tuple([step(frame) for step in steps])
        try:
            result = impl(*values)
        except _WRONG:
            raise EvaluationError("no such overload") from None
        frame.cost += cost if isinstance(cost, int) else cost(values, result)
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        return result

    return call


def _dispatched(steps: list[Step], name: str, overloads: list[Overload]) -> Step:
    costs = {overload.id: runtime_cost(overload) for overload in overloads}
    known: dict[tuple[type, ...], tuple[Callable[..., Any], RuntimeCost]] = {}  # what fits values of these types

    def call(frame: Frame) -> Any:
        values = tuple([step(frame) for step in steps])
        types = tuple(map(type, values))
        found = known.get(types)
        if found is None:
            overload = choose(name, overloads, values)
            found = overload.impl, costs[overload.id]
            if _PLAIN.issuperset(types):
                known[types] = found
        impl, cost = found
        try:
            result = impl(*values)
        except _WRONG:
            raise EvaluationError("no such overload") from None
        frame.cost += cost if isinstance(cost, int) else cost(values, result)
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        return result

    return call


def _iterate(items: Any, values: list[Any], slots: tuple[int, int]) -> Any:
    """Go through a range, setting the loop's variables; yields how many are left."""
    first, second = slots
    left = len(items) if isinstance(items, (list, dict)) else 0
    if isinstance(items, list):
        if second < 0:
            for item in items:
                values[first] = item
                left -= 1
                yield left
        else:
            for index, item in enumerate(items):
                values[first], values[second] = index, item
                left -= 1
                yield left
    elif isinstance(items, dict):
        for key in items:
            values[first] = key
            if second >= 0:
                values[second] = items[key]
            left -= 1
            yield left
    else:
        raise EvaluationError("no such overload")


def _quantified(ranged: Step, slots: tuple[int, int], body: Step, *, decisive: bool, each: int, again: int) -> Step:
    def run(frame: Frame) -> Any:
        items = ranged(frame)
        error: EvaluationError | None = None
        frame.cost += 1
        for left in _iterate(items, frame.values, slots):
            frame.cost += each
            try:
                value = body(frame)
            except EvaluationError as failed:
                error = error or failed
                continue
            if value is decisive:
                if left:
                    frame.cost += again
                return decisive
            if value is not (not decisive):
                error = error or EvaluationError("no such overload")
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        if error is not None:
            raise error
        return not decisive

    return run


def _exists_one(ranged: Step, slots: tuple[int, int], body: Step) -> Step:
    def run(frame: Frame) -> bool:
        items = ranged(frame)
        found = 0
        for _ in _iterate(items, frame.values, slots):
            value = body(frame)
            if value is True:
                found += 1
                frame.cost += 2
            elif value is False:
                frame.cost += 1
            else:
                raise EvaluationError("no such overload")
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        frame.cost += 2
        return found == 1

    return run


def _mapped(ranged: Step, slots: tuple[int, int], body: Step, filter: Step | None) -> Step:
    def run(frame: Frame) -> list[Any]:
        items = ranged(frame)
        frame.cost += LIST_CREATE + 1
        found: list[Any] = []
        for _ in _iterate(items, frame.values, slots):
            if filter is not None:
                wanted = filter(frame)
                if wanted is False:
                    frame.cost += 1
                    continue
                if wanted is not True:
                    raise EvaluationError("no such overload")
            found.append(body(frame))
            frame.cost += LIST_CREATE + 2
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        return found

    return run


def _bind(init: Step, slot: int, body: Step) -> Step:
    def run(frame: Frame) -> Any:
        frame.cost += LIST_CREATE
        frame.values[slot] = init(frame)
        return body(frame)

    return run
