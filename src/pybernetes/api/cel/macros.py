"""Macros: `has`, `all`, `exists`, `map` and their like, written out as loops.

The loops are exactly upstream's, because type errors and costs are those of the written-out form; the node also keeps
which macro it was, so that evaluation need not walk the long form.
"""

from __future__ import annotations

from collections.abc import Callable

from .ast import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Problem, Select

Expander = Callable[[int, Node | None, list[Node]], "Node | Problem | None"]
MacroSet = dict[tuple[str, int, bool], Expander]

ACCU = "@result"


def _name(node: Node, words: str) -> str | Problem:
    if not isinstance(node, Ident):
        return Problem(node.at, words)
    if node.name in (ACCU, "__result__"):
        return Problem(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(args: list[Node], two: bool, words: str = "argument must be a simple name") -> tuple[str, str] | Problem:
    first = _name(args[0], words)
    if isinstance(first, Problem):
        return first
    if not two:
        return first, ""
    second = _name(args[1], words)
    if isinstance(second, Problem):
        return second
    if first == second:
        return Problem(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _has(at: int, _target: Node | None, args: list[Node]) -> Node | Problem:
    argument = args[0]
    if isinstance(argument, Select) and not argument.test:
        return Select(at, argument.operand, argument.field, test=True)
    return Problem(argument.at, "invalid argument to has() macro")


def _quantifier(macro: str, two: bool) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
        variables = _variables(args, two)
        if isinstance(variables, Problem):
            return variables
        assert target is not None
        body = args[-1]
        accu = Ident(at, ACCU)
        if macro == "all":
            init: Node = Literal(at, True)
            condition: Node = Call(at, "@not_strictly_false", [Ident(at, ACCU)])
            step: Node = Call(at, "_&&_", [Ident(at, ACCU), body])
            result: Node = accu
        elif macro == "exists":
            init = Literal(at, False)
            condition = Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, ACCU)])])
            step = Call(at, "_||_", [Ident(at, ACCU), body])
            result = accu
        else:
            init, condition = Literal(at, 0), Literal(at, True)
            step = Call(at, "_?_:_", [body, Call(at, "_+_", [Ident(at, ACCU), Literal(at, 1)]), Ident(at, ACCU)])
            result = Call(at, "_==_", [accu, Literal(at, 1)])
        return Comprehension(at, macro, target, variables, ACCU, init, condition, step, result, body)

    return expand


def _map(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
    return _listing(at, target, args, False, "argument is not an identifier")


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
    return _listing(at, target, args, True, "argument must be a simple name")


def _listing(at: int, target: Node | None, args: list[Node], two: bool, words: str) -> Node | Problem:
    variables = _variables(args, two, words)
    if isinstance(variables, Problem):
        return variables
    assert target is not None
    rest = args[2:] if two else args[1:]
    body = rest[-1]
    filter = rest[0] if len(rest) == 2 else None
    step: Node = Call(at, "_+_", [Ident(at, ACCU), ListNode(at, [body])])
    if filter is not None:
        step = Call(at, "_?_:_", [filter, step, Ident(at, ACCU)])
    return Comprehension(
        at, "map", target, variables, ACCU, ListNode(at, []), Literal(at, True), step, Ident(at, ACCU), body, filter
    )


def _filter(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
    variables = _variables(args, False, "argument is not an identifier")
    if isinstance(variables, Problem):
        return variables
    assert target is not None
    body = Ident(args[0].at, variables[0])
    step = Call(at, "_+_", [Ident(at, ACCU), ListNode(at, [body])])
    step = Call(at, "_?_:_", [args[1], step, Ident(at, ACCU)])
    return Comprehension(
        at, "map", target, variables, ACCU, ListNode(at, []), Literal(at, True), step, Ident(at, ACCU), body, args[1]
    )


def _transform_map(entries: bool) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
        variables = _variables(args, True)
        if isinstance(variables, Problem):
            return variables
        assert target is not None
        rest = args[2:]
        body = rest[-1]
        filter = rest[0] if len(rest) == 2 else None
        inserted = [body] if entries else [Ident(at, variables[0]), body]
        step: Node = Call(at, "cel.@mapInsert", [Ident(at, ACCU), *inserted])
        if filter is not None:
            step = Call(at, "_?_:_", [filter, step, Ident(at, ACCU)])
        return Comprehension(
            at, "fold", target, variables, ACCU, MapNode(at, []), Literal(at, True), step, Ident(at, ACCU), body, filter
        )

    return expand


def _optional_map(flat: bool) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
        name = _name(
            args[0],
            "optMap() variable name must be a simple identifier"
            if not flat
            else "optFlatMap() variable name must be a simple identifier",
        )
        if isinstance(name, Problem):
            return name
        assert target is not None
        bound = _bind_node(at, name, Call(at, "value", [], target), args[1])
        then: Node = bound if flat else Call(at, "optional.of", [bound])
        return Call(at, "_?_:_", [Call(at, "hasValue", [], target), then, Call(at, "optional.none", [])])

    return expand


def _bind_node(at: int, name: str, init: Node, body: Node) -> Comprehension:
    return Comprehension(
        at, "bind", ListNode(at, []), ("#unused", ""), name, init, Literal(at, False), Ident(at, name), body, body
    )


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | Problem | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        return Problem(args[0].at, "cel.bind() variable names must be simple identifiers")
    return _bind_node(at, args[0].name, args[1], args[2])


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node | Problem:
    assert target is not None
    if isinstance(target, (Literal, MapNode)):
        words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        return Problem(target.at, words)
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    if isinstance(keys, Problem):
        return keys
    return _bind_node(at, name, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name)))


STANDARD: MacroSet = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all", False),
    ("exists", 2, True): _quantifier("exists", False),
    ("exists_one", 2, True): _quantifier("exists_one", False),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _quantifier("all", True),
    ("exists", 3, True): _quantifier("exists", True),
    ("exists_one", 3, True): _quantifier("exists_one", True),
    ("existsOne", 3, True): _quantifier("exists_one", True),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(False),
    ("transformMap", 4, True): _transform_map(False),
    ("transformMapEntry", 3, True): _transform_map(True),
    ("transformMapEntry", 4, True): _transform_map(True),
    ("sortBy", 2, True): _sort_by,
    ("optMap", 2, True): _optional_map(False),
    ("optFlatMap", 2, True): _optional_map(True),
}

BINDINGS: MacroSet = {("bind", 3, True): _bind}
"""`cel.bind`, which upstream offers for device selectors only."""
