"""Types: every part of an expression gets one, every call its overloads, or the expression is refused.

The algorithm is CEL's: overloads are tried in order and all that fit are kept, because values of type `dyn` decide only
at run time; type parameters are unified as the tree is walked.
"""

from __future__ import annotations

from . import types as t
from .ast import (
    Call,
    CompileError,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Problem,
    Select,
    StructNode,
)
from .functions import Library, Overload
from .types import Type
from .values import UInt

_LITERALS = {
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
}
TYPE_NAMES = {
    "bool": t.BOOL,
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "bytes": t.BYTES,
    "null_type": t.NULL,
    "list": t.LIST_DYN,
    "map": t.map_of(t.DYN, t.DYN),
    "type": t.TYPE,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "google.protobuf.Duration": t.DURATION,
    "optional_type": t.optional_of(t.DYN),
}


def check(source: str, root: Node, variables: dict[str, Type], functions: Library, types: dict[str, Type]) -> None:
    """Give every node its type. Raises CompileError."""
    checker = _Checker(variables, functions, types)
    checker.check(root)
    if checker.problems:
        raise CompileError(source, checker.problems)
    for node in checker.seen:
        node.type = t.substitute(checker.mapping, node.type, free_to_dyn=True)


def qualified_name(node: Node) -> str | None:
    """`a.b.c` if the node is nothing but names."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


class _Checker:
    def __init__(self, variables: dict[str, Type], functions: Library, types: dict[str, Type]) -> None:
        self.scopes = [variables]
        self.functions = functions
        self.types = types
        self.mapping: t.Mapping = {}
        self.fresh = 0
        self.problems: list[Problem] = []
        self.seen: list[Node] = []

    def report(self, at: int, message: str) -> None:
        self.problems.append(Problem(at, message))

    def assign(self, one: Type, other: Type) -> bool:
        found = t.assignable(self.mapping, one, other)
        if found is None:
            return False
        self.mapping = found
        return True

    def free(self) -> Type:
        self.fresh += 1
        return t.param(f"_var{self.fresh - 1}")

    def lookup(self, name: str) -> tuple[Type, Type | None] | None:
        """A variable's type, or the type of a type's name and that type."""
        name = name.lstrip(".")
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name], None
        named = TYPE_NAMES.get(name) or self.types.get(name)
        return None if named is None else (t.type_of_type(named), named)

    def undeclared(self, at: int, name: str) -> None:
        self.report(at, f"undeclared reference to '{name}' (in container '')")

    def check(self, node: Node) -> Type:
        match node:
            case Literal():
                node.type = _LITERALS[type(node.value)]
            case Ident():
                self.check_ident(node)
            case Select():
                node.type = self.check_select(node)
            case Call():
                node.type = self.check_call(node)
            case ListNode():
                node.type = self.check_list(node)
            case MapNode():
                node.type = self.check_map(node)
            case StructNode():
                node.type = self.check_struct(node)
            case Comprehension():
                node.type = self.check_comprehension(node)
        self.seen.append(node)
        return node.type

    def check_ident(self, node: Ident) -> None:
        found = self.lookup(node.name)
        if found is None:
            node.type = t.ERROR
            self.undeclared(node.at, node.name)
            return
        node.name = node.name.lstrip(".")
        node.type, node.constant = found

    def check_select(self, node: Select) -> Type:
        if not node.test and (name := qualified_name(node)) is not None and (found := self.lookup(name)) is not None:
            node.variable = Ident(node.at, name.lstrip("."))
            node.variable.type, node.variable.constant = found
            return found[0]
        result, node.key = self.select_field(node.at, node.operand, node.field, False)
        return t.BOOL if node.test else t.substitute(self.mapping, result)

    def select_field(self, at: int, operand: Node, field: str, optional: bool) -> tuple[Type, str]:
        target = t.substitute(self.mapping, self.check(operand))
        unwrap = t.is_optional(target)
        if unwrap:
            target = target.params[0]
        result, key = t.ERROR, field
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "object":
            known = target.fields.get(field) if target.fields is not None else None
            if known is None:
                self.report(at, f"undefined field '{field}'")
            else:
                result, key = known.type, known.key
        elif target.kind == "param":
            self.assign(t.DYN, target)
            result = t.DYN
        else:
            if not t.is_dyn(target) and target.kind != "error":
                self.report(at, f"type '{target}' does not support field selection")
            result = t.DYN
        return (t.optional_of(result) if unwrap or optional else result), key

    def check_call(self, node: Call) -> Type:
        if node.name == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            result, node.key = self.select_field(node.at, node.args[0], field.value, True)
            self.check(field)
            node.overloads = []
            return t.substitute(self.mapping, result)
        for argument in node.args:
            self.check(argument)
        if node.target is None:
            name = node.name.lstrip(".")
            overloads = self.functions.get(name)
            if overloads is None:
                self.undeclared(node.at, node.name)
                return t.ERROR
            node.name = name
            return self.resolve(node, overloads)
        prefix = qualified_name(node.target)
        if prefix is not None:
            name = f"{prefix.lstrip('.')}.{node.name}"
            overloads = self.functions.get(name)
            if overloads is not None:
                node.name, node.target = name, None
                return self.resolve(node, overloads)
        self.check(node.target)
        overloads = self.functions.get(node.name)
        if overloads is None:
            self.undeclared(node.at, node.name)
            return t.ERROR
        return self.resolve(node, overloads)

    def resolve(self, node: Call, overloads: list[Overload]) -> Type:
        arguments = node.args if node.target is None else [node.target, *node.args]
        types = [argument.type for argument in arguments]
        if node.name in ("_&&_", "_||_"):
            node.overloads = overloads
            wrong = [argument for argument in arguments if not self.assign(argument.type, t.BOOL)]
            for argument in wrong:
                self.report(argument.at, f"expected type 'bool' but found '{argument.type}'")
            return t.ERROR if wrong else t.BOOL
        result: Type | None = None
        node.overloads = []
        for overload in overloads:
            if overload.member != (node.target is not None) or len(overload.args) != len(types):
                continue
            declared, returned = overload.args, overload.result
            if overload.generic:
                renamed: t.Mapping = {}
                declared = tuple(self.rename(renamed, each) for each in declared)
                returned = self.rename(renamed, returned)
            found = t.assignable_all(self.mapping, types, declared)
            if found is None:
                continue
            self.mapping = found
            node.overloads.append(overload)
            returned = t.substitute(self.mapping, returned)
            if result is None:
                result = returned
            elif not t.is_dyn(result) and not returned.exact(result):
                result = t.DYN
        if result is None:
            shown = [str(t.substitute(self.mapping, each, free_to_dyn=True)) for each in types]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if node.target is not None else f"({', '.join(shown)})"
            self.report(node.at, f"found no matching overload for '{node.name}' applied to '{signature}'")
            return t.ERROR
        return result

    def rename(self, renamed: t.Mapping, type: Type) -> Type:
        if type.kind == "param":
            if type.name not in renamed:
                renamed[type.name] = self.free()
            return renamed[type.name]
        if not type.params:
            return type
        return Type(type.kind, type.name, tuple(self.rename(renamed, each) for each in type.params))

    def join(self, previous: Type | None, current: Type) -> Type:
        """The type of parts that stand together; that they must be of one type is for `literals` to say."""
        if previous is None:
            return current
        return t.most_general(previous, current) if self.assign(previous, current) else t.DYN

    def unwrap_optional(self, node: Node) -> Type:
        if t.is_optional(node.type):
            return node.type.params[0]
        if not t.is_dyn(node.type):
            self.report(node.at, f"expected type '{t.optional_of(node.type)}' but found '{node.type}'")
        return node.type

    def check_list(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, item in enumerate(node.items):
            found = self.check(item)
            if index in node.optional:
                found = self.unwrap_optional(item)
            element = self.join(element, found)
        return t.list_of(element or self.free())

    def check_map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            assert entry.key is not None
            self.check(entry.key)
            key = self.join(key, entry.key.type)
            found = self.check(entry.value)
            if entry.optional:
                found = self.unwrap_optional(entry.value)
            value = self.join(value, found)
        return t.map_of(key or self.free(), value or self.free())

    def check_struct(self, node: StructNode) -> Type:
        found = self.lookup(node.name)
        if found is None:
            self.undeclared(node.at, node.name)
            return t.ERROR
        node.name = node.name.lstrip(".")
        result = found[1]
        if result is None:
            self.report(node.at, f"'{found[0]}' is not a type")
            return t.ERROR
        if result.kind != "object":
            self.report(node.at, f"'{result}' is not a message type")
            return t.ERROR
        for entry in node.entries:
            self.check_entry(result, entry)
        return result

    def check_entry(self, owner: Type, entry: Entry) -> None:
        found = self.check(entry.value)
        known = owner.fields.get(entry.field) if owner.fields is not None else None
        if known is None:
            self.report(entry.at, f"undefined field '{entry.field}'")
            return
        entry.json = known.key
        if entry.optional:
            found = self.unwrap_optional(entry.value)
        if not self.assign(known.type, found):
            message = f"expected type of field '{entry.field}' is '{known.type}' but provided type is '{found}'"
            self.report(entry.at, message)

    def check_comprehension(self, node: Comprehension) -> Type:
        self.check(node.range)
        self.check(node.init)
        ranged = t.substitute(self.mapping, node.range.type)
        accu = node.init.type
        self.scopes.append({node.accu: accu})
        first, second = self.iteration_types(node, ranged)
        scope = {node.variable: first}
        if node.variable2:
            scope[node.variable2] = second
        self.scopes.append(scope)
        self.check(node.condition)
        self.demand(node.condition, t.BOOL)
        self.check(node.step)
        self.demand(node.step, accu)
        self.scopes.pop()
        if node.result is not node.body or node.macro == "bind":
            self.check(node.result)
        self.scopes.pop()
        return t.substitute(self.mapping, node.result.type)

    def iteration_types(self, node: Comprehension, ranged: Type) -> tuple[Type, Type]:
        two = bool(node.variable2)
        if ranged.kind == "list":
            return (t.INT, ranged.params[0]) if two else (ranged.params[0], t.DYN)
        if ranged.kind == "map":
            return ranged.params[0], ranged.params[1]
        if ranged.kind in ("dyn", "error", "param"):
            self.assign(t.DYN, ranged)
            return t.DYN, t.DYN
        message = f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self.report(node.range.at, message)
        return t.ERROR, t.ERROR

    def demand(self, node: Node, wanted: Type) -> None:
        if not self.assign(wanted, node.type):
            self.report(node.at, f"expected type '{wanted}' but found '{node.type}'")
