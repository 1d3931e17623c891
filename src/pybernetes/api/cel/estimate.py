"""Estimates the cost of an expression before it runs: a range, from the sizes that the types of its variables allow.

Rules that could become too expensive are refused when they are written, so the figures have to be upstream's: the walk
follows where a value comes from (`self.items[0].name` is the path self, items, @items, name) to find its bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .ast import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from .callestimates import CallEstimate, Sized, estimate_call
from .ranges import MAX, ONE, UNKNOWN, ZERO, Range, fixed
from .runtimecosts import LIST_CREATE, MAP_CREATE, STRING_FACTOR, STRUCT_CREATE
from .types import Type, is_optional

Path = tuple[str, ...]


class Estimate(NamedTuple):
    """The least and the most that an evaluation may cost."""

    min: int
    max: int


class _Entries(NamedTuple):
    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: _Entries | None


def estimate_cost(root: Node, variables: Mapping[str, Type]) -> Estimate:
    """The range of what evaluating the tree costs."""
    found = _Estimator(variables).cost(root)
    return Estimate(found.min, found.max)


def size_at(variables: Mapping[str, Type], path: Path) -> Range | None:
    """The bound of what lies at a path, if its type has one."""
    if not path:
        return None
    type = variables.get(path[0])
    if type is None:  # the name of a type; upstream takes it for `self`, where there is one
        type = variables.get("self") if not path[0].startswith("@") else None
    if type is None:
        return None
    for name in path[1:]:
        if name in ("@items", "@values"):
            if type.kind not in ("list", "map"):
                return None
            type = type.params[-1]
        elif name == "@keys":
            if type.kind != "map":
                return None
            type = type.params[0]
        elif type.kind == "object":
            field = (type.fields or {}).get(name)
            if field is None:
                return None
            type = field.type
        elif type.kind == "map" and type.params[1].kind == "any":  # the bound is the same whatever the key
            type = type.params[1]
        else:
            return None
    return Range(0, max(type.max_elements, 0))


class _Estimator:
    def __init__(self, variables: Mapping[str, Type]) -> None:
        self.variables = variables
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        match node:
            case Literal():
                return ZERO
            case Ident():
                return self.ident(node)
            case Select():
                return self.select(node)
            case Call():
                return self.call(node)
            case ListNode():
                return self.list(node)
            case MapNode():
                return self.map(node)
            case StructNode():
                total = ZERO
                for entry in node.entries:
                    total = total.add(self.cost(entry.value))
                return total.add(fixed(STRUCT_CREATE))
            case Comprehension():
                return self.bind(node) if node.macro == "bind" else self.comprehension(node)
        return ZERO

    def ident(self, node: Ident) -> Range:
        local = self.locals.get(node.name)
        self.paths[id(node)] = local[-1].path if local else (node.name,)
        return ONE

    def select(self, node: Select) -> Range:
        if node.variable is not None:
            self.paths[id(node)] = (node.variable.name,)
            return ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in ("map", "object", "param"):
            total = total.add(ONE)
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return total

    def path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self.locals.get(node.name)
            if local:
                return local[-1].path
        return self.paths.get(id(node), ())

    def call(self, node: Call) -> Range:
        if node.name == "dyn" and node.target is None:
            cost = self.cost(node.args[0])
            self.copy(node, node.args[0])
            return cost.add(ONE)
        costs = [self.cost(each) for each in node.args]
        arguments = [self.sized(each) for each in node.args]
        if node.name == "_?._":
            self.paths[id(node)] = ()
            return _sum(costs).add(ONE)
        if not node.overloads:
            return ZERO
        total, target = ZERO, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.sized(node.target)
        spent, result = Range(MAX, 0), None
        for overload in node.overloads:
            found = self.function(node, overload.id, target, arguments, costs)
            spent = spent.union(found.cost)
            if found.size is not None:
                result = found.size if result is None else result.union(found.size)
            if overload.id == "index_list":
                result = self.entry_value(node.args[0])
                self.paths[id(node)] = (*self.path(node.args[0]), "@items")
            elif overload.id == "index_map":
                result = self.entry_value(node.args[0])
                self.paths[id(node)] = (*self.path(node.args[0]), "@values")
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[id(node)] = result
        return total.add(spent)

    def function(
        self, node: Call, overload: str, target: Sized | None, args: Sequence[Sized], costs: Sequence[Range]
    ) -> CallEstimate:
        spent = _sum(costs)
        found = estimate_call(node.name, overload, target, args, self.element)
        if found is not None:
            return CallEstimate(found.cost.add(spent), found.size)
        if overload in ("logical_and", "logical_or"):
            return CallEstimate(Range(costs[0].min, spent.max), None)
        if overload == "conditional":
            size = args[1].known.union(args[2].known)
            entries = _union(self.entry_sizes(node.args[1]), self.entry_sizes(node.args[2]))
            if entries is not None:
                self.entries[id(node)] = entries
            return CallEstimate(costs[0].add(costs[1].union(costs[2])), size)
        if overload in ("add_string", "add_bytes", "add_list"):
            size = args[0].known.add(args[1].known)
            entries = _union(self.entry_sizes(node.args[0]), self.entry_sizes(node.args[1]))
            if entries is not None:
                self.entries[id(node)] = entries
            own = ONE if overload == "add_list" else size.factor(STRING_FACTOR)
            return CallEstimate(own.add(spent), size)
        return CallEstimate(ONE.add(spent), None)

    def list(self, node: ListNode) -> Range:
        total, size = ZERO, Range(MAX if node.items else 0, 0)
        for item in node.items:
            total = total.add(self.cost(item))
            size = size.union(self.known(item))
        self.entries[id(node)] = _Entries("list", ONE, size)
        return total.add(fixed(LIST_CREATE))

    def map(self, node: MapNode) -> Range:
        total = ZERO
        keys = values = Range(MAX if node.entries else 0, 0)
        for entry in node.entries:
            assert entry.key is not None
            total = total.add(self.cost(entry.key)).add(self.cost(entry.value))
            keys = keys.union(self.known(entry.key))
            values = values.union(self.known(entry.value))
        self.entries[id(node)] = _Entries("map", keys, values)
        return total.add(fixed(MAP_CREATE))

    def comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).add(self.cost(node.init))
        self.push(node.accu, _Local(self.path(node.init), self.size(node.init), self.entry_sizes(node.init)))
        entries = self.entry_sizes(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind
        path = self.path(node.range)
        keys = entries.key if entries is not None else None
        values = entries.value if entries is not None else None
        if node.variable2:
            self.push(node.variable, _Local((*path, "@indices" if kind == "list" else "@keys"), keys, None))
            self.push(node.variable2, _Local((*path, "@items" if kind == "list" else "@values"), values, None))
        elif kind == "list":
            self.push(node.variable, _Local((*path, "@items"), values, None))
        else:
            self.push(node.variable, _Local((*path, "@keys"), keys, None))
        loop = self.cost(node.condition).add(self.cost(node.step))
        self.locals[node.variable].pop()
        if node.variable2:
            self.locals[node.variable2].pop()
        total = total.add(self.cost(node.result))
        self.locals[node.accu].pop()
        count = self.known(node.range)
        total = total.add(count.multiply(loop))
        if isinstance(node.init, Literal):
            size = self.size(node.init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.init, (ListNode, MapNode)):
            self.sizes[id(node)] = count
            stepped = self.entry_sizes(node.step)
            if stepped is not None:
                self.entries[id(node)] = stepped
        return total

    def bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).add(self.cost(node.init))
        self.push(node.accu, _Local(self.path(node.init), self.size(node.init), self.entry_sizes(node.init)))
        total = total.add(self.cost(node.result))
        self.locals[node.accu].pop()
        self.copy(node, node.result)
        return total

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def copy(self, target: Node, source: Node) -> None:
        size, entries = self.size(source), self.entry_sizes(source)
        if size is not None:
            self.sizes[id(target)] = size
        if entries is not None:
            self.entries[id(target)] = entries

    def entry_sizes(self, node: Node) -> _Entries | None:
        found = self.entries.get(id(node))
        if found is None and isinstance(node, Ident):
            local = self.locals.get(node.name)
            return local[-1].entries if local else None
        return found

    def entry_value(self, node: Node) -> Range | None:
        entries = self.entry_sizes(node)
        return None if entries is None else entries.value

    def size(self, node: Node) -> Range | None:
        found = self.sizes.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Literal):
            return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, ListNode):
            return fixed(len(node.items))
        if isinstance(node, MapNode):
            return fixed(len(node.entries))
        path = self.path(node)
        found = size_at(self.variables, path) if path else None
        if found is not None:
            self.sizes[id(node)] = found
            return found
        if _scalar(node.type):
            return ONE
        if isinstance(node, Ident):
            local = self.locals.get(node.name)
            if local:
                return local[-1].size
        return None

    def known(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def sized(self, node: Node) -> Sized:
        path = self.path(node)
        if path and path[0] == "@result":
            path = ()
        return Sized(path, node.type, self.known(node), node)

    def element(self, list: Sized) -> Sized | None:
        if not list.type.params:
            return None
        path = (*list.path, "@items") if list.path else ()
        return Sized(path, list.type.params[0], (size_at(self.variables, path) if path else None) or UNKNOWN, None)


def _sum(costs: Sequence[Range]) -> Range:
    total = ZERO
    for cost in costs:
        total = total.add(cost)
    return total


def _union(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.kind, one.key.union(other.key), one.value.union(other.value))


def _scalar(type: Type) -> bool:
    if is_optional(type):
        return _scalar(type.params[0])
    return type.kind in ("bool", "double", "duration", "int", "timestamp", "uint")
