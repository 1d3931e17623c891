"""A checked tree to a function: every node becomes a closure that takes the frame and answers its value.

The frame counts what is spent. Limits are looked at where work can grow (loops, calls with long arguments) and at the
end; everything between is bounded by the length of the expression. Loops of macros run as Python loops and charge what
upstream's written-out form would have cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .accessing import index, optional_index, optional_select, select, test
from .ast import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from .calling import conditional, direct, dispatched, logical, optional_or
from .frames import UNSET, Frame, Step
from .functions import Overload, is_certain
from .loops import bind, exists_one, iterate, mapped, quantified
from .runtimecosts import LIST_CREATE, MAP_CREATE, STRUCT_CREATE
from .types import Type
from .values import CostLimitExceeded, EvaluationError, Optional, show


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
                return test(operand, node.key) if node.test else select(operand, node.key)
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
            for position, step in enumerate(steps):
                value = step(frame)
                if position not in optional:
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
            return optional_or(steps, node.name)
        if len(overloads) == 1 and is_certain(overloads[0], [each.type for each in arguments]):
            return direct(steps, overloads[0])
        return dispatched(steps, node.name, overloads)

    def comprehension(self, node: Comprehension) -> Step:
        ranged = self.step(node.range)
        if node.macro == "bind":
            init = self.step(node.init)
            scope = self.local(node.accu)
            self.scopes.append(scope)
            body = self.step(node.result)
            self.scopes.pop()
            return bind(init, scope[node.accu], body)
        if node.macro == "fold":
            return self.fold(node, ranged)
        scope = self.local(node.variable, *((node.variable2,) if node.variable2 else ()))
        self.scopes.append(scope)
        body = self.step(node.body)
        filter = self.step(node.filter) if node.filter is not None else None
        self.scopes.pop()
        slots = (scope[node.variable], scope[node.variable2] if node.variable2 else -1)
        if node.macro == "all":
            return quantified(ranged, slots, body, decisive=False, each=3, again=2)
        if node.macro == "exists":
            return quantified(ranged, slots, body, decisive=True, each=4, again=3)
        if node.macro == "exists_one":
            return exists_one(ranged, slots, body)
        return mapped(ranged, slots, body, filter)

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
            for _ in iterate(items, values, slots):
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


_SPECIAL: dict[str, Callable[[list[Step], Call], Step]] = {
    "_&&_": logical,
    "_||_": logical,
    "_?_:_": conditional,
    "_[_]": index,
    "_[?_]": optional_index,
    "_?._": optional_select,
}
