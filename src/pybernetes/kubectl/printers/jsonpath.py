"""kubectl's dialect of JSONPath: text with `{...}` in it, `range`/`end`, filters, unions, slices, recursive descent."""

from __future__ import annotations

from pybernetes.kubectl.data import dumps, number, pretty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Node: TypeAlias = tuple[Any, ...]


class JSONPathError(Exception):
    """A template that cannot be parsed or executed; the text is upstream's."""


_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "=")


class _Parser:
    """Text to nodes: tuples whose first element is their kind."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def parse(self) -> list[Node]:
        nodes: list[Node] = []
        stack: list[list[Node]] = [nodes]
        while self.at < len(self.text):
            start = self.text.find("{", self.at)
            if start < 0:
                stack[-1].append(("text", self.text[self.at :]))
                break
            if start > self.at:
                stack[-1].append(("text", self.text[self.at : start]))
            self.at = start + 1
            self._action(stack)
        while len(stack) > 1:  # what follows a range without an end comes once more after it, as upstream has it
            inner = stack.pop()
            stack[-1] += inner
        return nodes

    def _action(self, stack: list[list[Node]]) -> None:
        """The inside of one pair of braces: expressions with spaces between them."""
        current: list[Node] = []
        while True:
            if self.at >= len(self.text):
                raise JSONPathError("unclosed action")
            char = self.text[self.at]
            if char == "}":
                self.at += 1
                if current:
                    stack[-1].append(("path", current))
                return
            if char in " \t\r\n":
                self.at += 1
                if current:
                    stack[-1].append(("path", current))
                    current = []
                if char in "\r\n":
                    raise JSONPathError("unclosed action")
                continue
            if char in "\"'":
                stack[-1].append(("text", self._quoted()))
                continue
            if char in ".[$@":
                self._step(current)
                continue
            if char.isdigit() or char in "+-":
                word = self._word()
                stack[-1].append(("number", _number(word)))
                continue
            word = self._word()
            if word == "range":
                inner: list[Node] = []
                self._skip_space()
                path: list[Node] = []
                while self.at < len(self.text) and self.text[self.at] not in "} \t":
                    self._step(path)
                if self.at < len(self.text) and self.text[self.at] == "}":
                    self.at += 1
                stack[-1].append(("range", path, inner))
                stack.append(inner)
                return
            if word == "end":
                if len(stack) == 1:
                    stack[-1].append(("error", "not in range, nothing to end"))
                else:
                    stack.pop()
                continue
            if not word:
                raise JSONPathError(f"unrecognized character in action: {_rune(char)}")
            if word in ("true", "false"):
                stack[-1].append(("bool", word == "true"))
                continue
            stack[-1].append(("error", f"unrecognized identifier {word}"))

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def _word(self) -> str:
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_+-."):
            self.at += 1
        return self.text[start : self.at]

    def _quoted(self) -> str:
        mark = self.text[self.at]
        start = self.at + 1
        at = start
        while at < len(self.text) and self.text[at] != mark:
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            raise JSONPathError("unterminated quoted string")
        self.at = at + 1
        return _unquote(self.text[start:at], mark)

    def _step(self, path: list[Node]) -> None:
        """One `.field`, `..`, `[...]`, `$` or `@`."""
        char = self.text[self.at]
        if char in "$@":
            self.at += 1
            path.append(("root",) if char == "$" else ("current",))
            return
        if char == "[":
            self._bracket(path)
            return
        if char != ".":
            # a field without a dot: {range items} is not allowed by upstream, names after [..] are
            raise JSONPathError(f"unrecognized character in action: {_rune(char)}")
        self.at += 1
        if self.at < len(self.text) and self.text[self.at] == ".":
            self.at += 1
            path.append(("recursive",))
            if self.at < len(self.text) and self.text[self.at] not in " \t[}":
                self._field(path)
            return
        if self.at >= len(self.text) or self.text[self.at] in " \t}":
            path.append(("field", ""))
            return
        if self.text[self.at] == "[":
            return
        self._field(path)

    def _field(self, path: list[Node]) -> None:
        if self.text[self.at] == "*":
            self.at += 1
            path.append(("wildcard",))
            return
        name = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\" and self.at + 1 < len(self.text):
                name.append(self.text[self.at + 1])
                self.at += 2
                continue
            if char in ".[]{} \t\r\n()=!<>&|,;@$":
                break
            name.append(char)
            self.at += 1
        path.append(("field", "".join(name)))

    def _bracket(self, path: list[Node]) -> None:
        start = self.at + 1
        depth, at, quote = 1, start, ""
        while at < len(self.text):
            char = self.text[at]
            if quote:
                if char == "\\":
                    at += 1
                elif char == quote:
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == "[":
                depth += 1
            elif char == "]":
                depth -= 1
                if depth == 0:
                    break
            at += 1
        else:
            raise JSONPathError("unterminated array")
        inside = self.text[start:at]
        self.at = at + 1
        key = inside.strip()
        if len(key) > 1 and key[0] == key[-1] == "'" and "'" not in key[1:-1]:
            # ['a.b'] is .a.b; a dot within a key has a backslash before it
            steps = _Parser(f".{key[1:-1]}")
            while steps.at < len(steps.text):
                steps._step(path)
            return
        path.append(_subscript(inside))


def _subscript(inside: str) -> Node:
    text = inside.strip()
    if text == "*":
        return ("slice", None, None, None)
    if text.startswith("?("):
        if not text.endswith(")"):
            raise JSONPathError("unterminated filter")
        return _filter(text[2:-1])
    parts = _split(text)
    if len(parts) > 1:
        return ("union", [_subscript(part) for part in parts])
    if text[:1] == "'":
        if len(text) < 2 or text[-1] != text[0]:
            raise JSONPathError("unterminated quoted string")
        return ("field", _unquote(text[1:-1], text[0]))
    if ":" in text:
        numbers = text.split(":")
        if len(numbers) <= 3:
            try:
                start, stop, step = ([int(each) if each.strip() else None for each in numbers] + [None])[:3]
            except ValueError:
                raise JSONPathError(f"invalid array index {inside}") from None
            return ("slice", start, stop, step)
    try:
        return ("index", int(text))
    except ValueError:
        raise JSONPathError(f"invalid array index {inside}") from None


def _split(text: str) -> list[str]:
    """The parts between commas that are not in quotes."""
    parts, quote, current = [], "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == ",":
            parts.append(current)
            current = ""
            continue
        current += char
    return [*parts, current]


def _filter(text: str) -> Node:
    quote, depth = "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
            continue
        if char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char in "=!<>":
            for operator in _OPERATORS:
                if text.startswith(operator, at):
                    if operator == "=":
                        raise JSONPathError(f"unrecognized filter operator {operator}")
                    return ("filter", _operand(text[:at]), operator, _operand(text[at + len(operator) :]))
    return ("filter", _operand(text), "exists", [])


def _operand(text: str) -> list[Node]:
    parsed = _Parser("{" + text.strip() + "}").parse()
    return parsed


def _number(word: str) -> Any:
    try:
        return int(word)
    except ValueError:
        try:
            return float(word)
        except ValueError:
            raise JSONPathError(f"cannot parse number {word}") from None


def _rune(char: str) -> str:
    return f"U+{ord(char):04X} '{char}'"


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquote(text: str, mark: str) -> str:
    out, at = [], 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            following = text[at + 1]
            if following == "u":
                out.append(chr(int(text[at + 2 : at + 6], 16)))
                at += 6
                continue
            if following == "x":
                out.append(chr(int(text[at + 2 : at + 4], 16)))
                at += 4
                continue
            out.append(_ESCAPES.get(following, following))
            at += 2
            continue
        out.append(char)
        at += 1
    return "".join(out)


class JSONPath:
    """A parsed template, ready to render objects."""

    def __init__(self, text: str, allow_missing: bool = True, as_json: bool = False) -> None:
        self.nodes = _Parser(text).parse()
        self.allow_missing = allow_missing
        self.as_json = as_json

    def render(self, obj: Any) -> str:
        """The template's output for an object. Raises JSONPathError."""
        out: list[str] = []
        self._run(self.nodes, obj, obj, out)
        return "".join(out)

    def results(self, obj: Any) -> list[list[Any]]:
        """The values of each expression in braces."""
        found = []
        for node in self.nodes:
            if node[0] == "path":
                found.append(self._path(node[1], [obj], obj, obj))
            elif node[0] == "error":
                raise JSONPathError(node[1])
            elif node[0] == "text":
                found.append([node[1]])
        return found

    def _run(self, nodes: list[Node], current: Any, root: Any, out: list[str]) -> None:
        for node in nodes:
            if node[0] == "text":
                out.append(node[1])
            elif node[0] in ("number", "bool"):
                out.append(_text(node[1]))
            elif node[0] == "error":
                raise JSONPathError(node[1])
            elif node[0] == "range":
                for each in self._path(node[1], [current], root, current):
                    self._run(node[2], each, root, out)
            else:
                values = self._path(node[1], [current], root, current)
                if self.as_json:
                    out.append(pretty(values) + "\n")
                else:
                    out.append(" ".join(_text(value) for value in values))

    def _path(self, path: list[Node], values: list[Any], root: Any, current: Any) -> list[Any]:
        for step in path:
            values = self._step(step, values, root, current)
        return values

    def _step(self, step: Node, values: list[Any], root: Any, current: Any) -> list[Any]:
        kind = step[0]
        if kind == "root":
            return [root]
        if kind == "current":
            return values
        if kind == "field":
            return self._field(step[1], values)
        if kind == "recursive":
            return [each for value in values for each in _descend(value)]
        if kind == "wildcard":
            return [each for value in values for each in _children(value)]
        if kind == "union":
            found: list[Any] = []
            for part in step[1]:
                found += self._step(part, values, root, current)
            return found
        if kind == "filter":
            return [
                each
                for value in values
                if isinstance(value, list | dict)
                for each in (value if isinstance(value, list) else value.values())
                if self._holds(step, each, root)
            ]
        return self._array(step, values)

    def _field(self, name: str, values: list[Any]) -> list[Any]:
        if not name:
            return values
        found = []
        for value in values:
            if isinstance(value, dict) and name in value:
                found.append(value[name])
        if not found and not self.allow_missing and values:
            raise JSONPathError(f"{name} is not found")
        return found

    def _array(self, step: Node, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{_go_type(value)} is not array or slice")
            if step[0] == "index":
                index = step[1]
                if -len(value) <= index < len(value):
                    found.append(value[index])
                else:
                    raise JSONPathError(f"array index out of bounds: index {index}, length {len(value)}")
                continue
            start, stop, by = step[1], step[2], step[3]
            if by is not None and by <= 0:
                raise JSONPathError("step must be > 0")
            found += value[start:stop:by]
        return found

    def _holds(self, step: Node, value: Any, root: Any) -> bool:
        left = self._operand(step[1], value, root)
        if step[2] == "exists":
            return bool(left)
        right = self._operand(step[3], value, root)
        if not left or not right:
            return False
        if len(left) > 1 or len(right) > 1:
            raise JSONPathError("can only compare one element at a time")
        return _compare(left[0], step[2], right[0])

    def _operand(self, nodes: list[Node], value: Any, root: Any) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if node[0] in ("text", "number", "bool"):
                found.append(node[1])
            elif node[0] == "error":
                raise JSONPathError(node[1])
            else:
                missing, self.allow_missing = self.allow_missing, True
                try:
                    found += self._path(node[1], [value], root, value)
                finally:
                    self.allow_missing = missing
        return found


def _compare(left: Any, operator: str, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        same = left == right and isinstance(left, bool) and isinstance(right, bool)
        return same if operator == "==" else not same
    number_types = (int, float)
    if isinstance(left, number_types) and isinstance(right, str):
        left = _text(left)
    elif isinstance(left, str) and isinstance(right, number_types):
        right = _text(right)
    if type(left) is not type(right) and not (isinstance(left, number_types) and isinstance(right, number_types)):
        return operator == "!="
    if operator == "==":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    try:
        return bool({"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[operator])
    except TypeError:
        raise JSONPathError(f"unrecognized filter operator {operator}") from None


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return list(value) if isinstance(value, list) else []


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for each in _children(value):
        if isinstance(each, dict | list):
            yield from _descend(each)


def _go_type(value: Any) -> str:
    return "map[string]interface {}" if isinstance(value, dict) else "string" if isinstance(value, str) else "float64"


def _text(value: Any) -> str:
    """How a value is printed."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict | list):
        return dumps(value)
    return str(value)
