"""Go's text/template: pipelines, variables, if/range/with/define/template/block/break/continue, and its functions.

`Template` parses once and renders JSON data. kubectl's own functions are `exists` and `base64decode`.
The parser is in `gotemplate_parse.py`, the functions and `printf` are in `gotemplate_functions.py`.
"""

from __future__ import annotations

from pybernetes.kubectl.printers import gotemplate_functions as functions
from pybernetes.kubectl.printers.gotemplate_parse import TemplateError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.printers.gotemplate_parse import Node

__all__ = ["Template", "TemplateError"]

_DEPTH = 1000


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Template:
    """A parsed template. `partial` holds what was written before an error."""

    def __init__(self, text: str, allow_missing: bool = True) -> None:
        self.root, self.named = parse(text)
        self.allow_missing = allow_missing
        self.partial = ""

    def render(self, data: Any) -> str:
        """The output for some data. Raises TemplateError."""
        out: list[str] = []
        try:
            _Run(self, out).nodes(self.root, data, [("$", [data])])
        except TemplateError:
            self.partial = "".join(out)
            raise
        except RecursionError:
            raise TemplateError("exceeded maximum template depth") from None
        return "".join(out)


class _Run:
    """One execution. Variables are pairs of a name and a one-element list, innermost last."""

    def __init__(self, template: Template, out: list[str]) -> None:
        self.template = template
        self.out = out
        self.depth = 0

    def nodes(self, nodes: list[Node], dot: Any, variables: list[tuple[str, list[Any]]]) -> None:
        for node in nodes:
            self._node(node, dot, variables)

    def _node(self, node: Node, dot: Any, variables: list[tuple[str, list[Any]]]) -> None:
        kind = node[0]
        if kind == "text":
            self.out.append(node[1])
        elif kind == "action":
            value = self.pipeline(node[1], dot, variables)
            if not node[1][0]:
                self.out.append(functions.shown(value))
        elif kind in ("if", "with"):
            scope = list(variables)
            value = self.pipeline(node[1], dot, scope)
            if functions.truth(value):
                self.nodes(node[2], value if kind == "with" else dot, scope)
            else:
                self.nodes(node[3], dot, scope)
        elif kind == "range":
            self._range(node, dot, variables)
        elif kind == "template":
            self._call_template(node, dot, variables)
        elif kind == "break":
            raise _Break
        else:
            raise _Continue

    def _call_template(self, node: Node, dot: Any, variables: list[tuple[str, list[Any]]]) -> None:
        named = self.template.named.get(node[1])
        if named is None:
            raise self.failed(node, f'template "{node[1]}" not defined')
        self.depth += 1
        if self.depth > _DEPTH:
            raise TemplateError(f"exceeded maximum template depth ({_DEPTH})")
        value = self.pipeline(node[2], dot, variables) if node[2] else None
        self.nodes(named, value, [("$", [value])])
        self.depth -= 1

    def _range(self, node: Node, dot: Any, variables: list[tuple[str, list[Any]]]) -> None:
        declared, assign, commands = node[1]
        scope = list(variables)
        value = self.pipeline(([], False, commands), dot, scope)
        pairs: list[tuple[Any, Any]]
        if value is None or value is functions.NO_VALUE:
            pairs = []
        elif isinstance(value, dict):
            pairs = [(key, value[key]) for key in sorted(value)]
        elif isinstance(value, list | tuple):
            pairs = [(functions.Int(index), each) for index, each in enumerate(value)]
        elif isinstance(value, int) and not isinstance(value, bool):
            pairs = [(type(value)(index), type(value)(index)) for index in range(value)]
        else:
            raise self.failed(node, f"range can't iterate over {functions.shown(value)}")
        if not pairs:
            self.nodes(node[3], dot, scope)
            return
        for key, each in pairs:
            inner = list(scope)
            values = [each] if len(declared) == 1 else [key, each]
            for name, held in zip(declared, values, strict=False):
                if assign:
                    self._assign(inner, name, held)
                else:
                    inner.append((name, [held]))
            try:
                self.nodes(node[2], each, inner)
            except _Break:
                return
            except _Continue:
                continue

    def _assign(self, variables: list[tuple[str, list[Any]]], name: str, value: Any) -> None:
        for each, cell in reversed(variables):
            if each == name:
                cell[0] = value
                return
        raise TemplateError(f"undefined variable: {name}")

    def failed(self, node: Any, message: str, text: str = "") -> TemplateError:
        """An error of execution with upstream's prefix; `text` is what it is about, if that is not the node alone."""
        text = text or source(node)
        return TemplateError(f'template: output:1:{_position(node)}: executing "output" at <{text}>: {message}')

    # -- values

    def pipeline(self, pipe: Any, dot: Any, variables: list[tuple[str, list[Any]]]) -> Any:
        """The value of a pipeline; its declared variables are added to the scope."""
        declared, assign, commands = pipe
        value: Any = functions.NOTHING
        for command in commands:
            value = self._command(command, dot, variables, value)
        for name in declared:
            if assign:
                self._assign(variables, name, value)
            else:
                variables.append((name, [value]))
        return value

    def _command(self, command: list[Any], dot: Any, variables: list[tuple[str, list[Any]]], final: Any) -> Any:
        first, arguments = command[0], command[1:]
        extra = [] if final is functions.NOTHING else [final]
        if first[0] == "function":
            return self._function(first, arguments, dot, variables, extra)
        if first[0] in ("field", "chain", "variable") and (arguments or extra):
            raise self.failed(first, f"{_last(first)} is not a method but has arguments")
        if arguments or extra:
            raise self.failed(first, f"can't give argument to non-function {source(first)}")
        return self._value(first, dot, variables)

    def _function(
        self, node: Node, arguments: list[Any], dot: Any, variables: list[tuple[str, list[Any]]], extra: list[Any]
    ) -> Any:
        name = node[1]
        if name in ("and", "or"):
            value: Any = None
            for each in [*arguments, *(("const", held, 0) for held in extra)]:
                value = self._value(each, dot, variables)
                if functions.truth(value) == (name == "or"):
                    return value
            if not arguments and not extra:
                raise self.failed(node, f"wrong number of args for {name}: want at least 1 got 0")
            return value
        values = [self._value(each, dot, variables) for each in arguments] + extra
        try:
            return functions.call(name, values)
        except functions.FunctionError as error:
            message = str(error)
            if message.startswith("wrong number"):
                raise self.failed(node, message) from None
            text = " ".join(source(part) for part in (node, *arguments))
            raise self.failed(node, f"error calling {name}: {message}", text) from None

    def _value(self, node: Any, dot: Any, variables: list[tuple[str, list[Any]]]) -> Any:
        kind = node[0]
        if kind == "const":
            return node[1]
        if kind == "dot":
            return dot
        if kind == "nil":
            raise self.failed(node, "nil is not a command")
        if kind == "field":
            return self._fields(node, dot, node[1])
        if kind == "variable":
            for name, cell in reversed(variables):
                if name == node[1]:
                    return self._fields(node, cell[0], node[2])
            raise TemplateError(f"undefined variable: {node[1]}")
        if kind == "chain":
            return self._fields(node, self._value(node[1], dot, variables), node[2])
        if kind == "pipe":
            return self.pipeline(node[1], dot, list(variables))
        if kind == "function":
            return self._function(node, [], dot, variables, [])
        raise TemplateError(f"unexpected {kind}")

    def _fields(self, node: Any, value: Any, names: list[str]) -> Any:
        for name in names:
            if value is None or value is functions.NO_VALUE:
                if value is None and not self.template.allow_missing:
                    raise self.failed(node, f"nil pointer evaluating interface {{}}.{name}")
                if value is functions.NO_VALUE:
                    value = functions.NO_VALUE
                    continue
                raise self.failed(node, f"nil pointer evaluating interface {{}}.{name}")
            if not isinstance(value, dict):
                raise self.failed(node, f"can't evaluate field {name} in type interface {{}}")
            if name in value:
                value = value[name]
            elif self.template.allow_missing:
                value = functions.NO_VALUE
            else:
                raise self.failed(node, f'map has no entry for key "{name}"')
        return value


def _last(node: Any) -> str:
    names = node[2] if node[0] in ("variable", "chain") else node[1]
    return str(names[-1]) if names else str(node[1])


def _position(node: Any) -> int:
    if node[0] in ("range", "pipe"):
        return _position(node[1][2][0][0])
    return int(node[-1]) if isinstance(node[-1], int) and not isinstance(node[-1], bool) else 0


def source(node: Any) -> str:
    """A node as it stood in the template."""
    kind = node[0]
    if kind == "field":
        return "".join(f".{name}" for name in node[1])
    if kind == "variable":
        return str(node[1]) + "".join(f".{name}" for name in node[2])
    if kind == "dot":
        return "."
    if kind == "const":
        return functions.quoted(node[1])
    if kind == "function":
        return str(node[1])
    if kind == "chain":
        return f"({source(node[1])})" + "".join(f".{name}" for name in node[2])
    if kind == "pipe":
        return " | ".join(" ".join(source(part) for part in command) for command in node[1][2])
    if kind == "template":
        pipe = f" {source(('pipe', node[2]))}" if node[2] else ""
        return f"{{{{template {functions.quoted(node[1])}{pipe}}}}}"
    if kind == "range":
        return " | ".join(" ".join(source(part) for part in command) for command in node[1][2])
    return str(kind)
