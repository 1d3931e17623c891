"""The parser of Go templates: text with actions to nodes, which are tuples whose first element is their kind."""

from __future__ import annotations

from pybernetes.kubectl.data import go_quote
from pybernetes.kubectl.printers.gotemplate_functions import FUNCTIONS, Int

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Node: TypeAlias = tuple[Any, ...]
    Token: TypeAlias = tuple[str, Any, int]


class TemplateError(Exception):
    """A template that cannot be parsed or executed."""


_SPACE = " \t\r\n"
_KEYWORDS = [("word", name) for name in ("if", "with", "range", "else")]
"""`{{range.items}}` is `{{range .items}}`."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


def parse(text: str) -> tuple[list[Node], dict[str, list[Node]]]:
    """The nodes of a template and of those defined in it. Raises TemplateError."""
    return _Parser(text).template()


class _Parser:
    def __init__(self, text: str) -> None:
        self.named: dict[str, list[Node]] = {}
        self.pieces = _pieces(text)
        self.at = 0
        self.tokens: list[Token] = []
        self.variables = ["$"]
        self.line = 1

    def template(self) -> tuple[list[Node], dict[str, list[Node]]]:
        nodes, ended = self._list("")
        if ended:
            raise self._error(f"unexpected {{{{{ended}}}}}")
        return nodes, self.named

    def _error(self, message: str) -> TemplateError:
        return TemplateError(f"template: output:{self.line}: {message}")

    def _list(self, inside: str) -> tuple[list[Node], str]:
        """Nodes until an `end`, an `else` or the end of the text; says which."""
        nodes: list[Node] = []
        while self.at < len(self.pieces):
            kind, content, line = self.pieces[self.at]
            self.at += 1
            self.line = line
            if kind == "text":
                nodes.append(("text", content))
                continue
            self.tokens = _tokens(content, self)
            word = self.tokens[0][1] if self.tokens and self.tokens[0][0] == "word" else ""
            if word in ("end", "else"):
                self.tokens.pop(0)
                if not inside:
                    raise self._error(f"unexpected {{{{{word}}}}}")
                return nodes, word
            node = self._action(word)
            if node is not None:
                nodes.append(node)
        if inside:
            raise self._error("unexpected EOF")
        return nodes, ""

    def _action(self, word: str) -> Node | None:
        if not self.tokens:
            raise self._error("missing value for command")
        if word in ("if", "with", "range"):
            self.tokens.pop(0)
            return self._control(word)
        if word in ("break", "continue"):
            return (word,)
        if word == "define":
            name = self._name("define")
            nodes, _ = self._list("define")
            self.named[name] = nodes
            return None
        if word in ("template", "block"):
            position = self.tokens[1][2] if len(self.tokens) > 1 else 0
            name = self._name(word)
            pipe = self._pipeline(word) if self.tokens else None
            if word == "block":
                nodes, _ = self._list("block")
                self.named.setdefault(name, nodes)
            return ("template", name, pipe, position)
        return ("action", self._pipeline("command"))

    def _name(self, word: str) -> str:
        self.tokens.pop(0)
        if not self.tokens or self.tokens[0][0] != "string":
            raise self._error(f"unexpected token in {word} clause")
        return str(self.tokens.pop(0)[1])

    def _control(self, word: str) -> Node:
        depth = len(self.variables)
        pipe = self._pipeline(word)
        nodes, ended = self._list(word)
        otherwise: list[Node] = []
        if ended == "else":
            following = self.tokens[0][1] if self.tokens and self.tokens[0][0] == "word" else ""
            if following in ("if", "with"):
                self.tokens.pop(0)
                otherwise = [self._control(following)]  # shares the end of the outer one
                del self.variables[depth:]
                return (word, pipe, nodes, otherwise)
            otherwise, ended = self._list(word)
            if ended == "else":
                raise self._error("expected end; found {{else}}")
        del self.variables[depth:]
        return (word, pipe, nodes, otherwise)

    def _pipeline(self, where: str, closing: bool = False) -> tuple[list[str], bool, list[list[Any]]]:
        declared: list[str] = []
        assign = False
        tokens = self.tokens
        if len(tokens) > 1 and tokens[0][0] == "variable" and tokens[1][0] in (":=", "="):
            assign = tokens[1][0] == "="
            declared = [tokens[0][1]]
            del tokens[:2]
        elif (
            where == "range"
            and len(tokens) > 3
            and tokens[0][0] == "variable"
            and tokens[1][0] == ","
            and tokens[2][0] == "variable"
            and tokens[3][0] in (":=", "=")
        ):
            assign = tokens[3][0] == "="
            declared = [tokens[0][1], tokens[2][1]]
            del tokens[:4]
        commands: list[list[Any]] = []
        command: list[Any] = []
        while True:
            if not tokens:
                if closing:
                    raise self._error("unclosed left paren")
                break
            kind = tokens[0][0]
            if kind == ")":
                if not closing:
                    raise self._error("unexpected right paren")
                tokens.pop(0)
                break
            if kind == "|":
                tokens.pop(0)
                if not command:
                    raise self._error("missing value for command")
                commands.append(command)
                command = []
                continue
            command.append(self._operand())
        if not command:
            raise self._error(f"missing value for {'parenthesized pipeline' if closing else where}")
        commands.append(command)
        if not assign:
            self.variables += declared
        for later in commands[1:]:
            if later[0][0] in ("const", "dot", "nil"):
                raise self._error(f"non executable command in pipeline stage {commands.index(later) + 1}")
        return declared, assign, commands

    def _operand(self) -> Any:
        kind, value, position = self.tokens.pop(0)
        node: Any
        if kind == "(":
            node = ("pipe", self._pipeline("command", closing=True), position)
        elif kind == "field":
            names = [value]
            if self.tokens and self.tokens[0][0] == "chain":
                position = self.tokens[0][2]
            while self.tokens and self.tokens[0][0] == "chain":
                names.append(self.tokens.pop(0)[1])
            return ("field", names, position)
        elif kind == "variable":
            if value not in self.variables:
                raise self._error(f'undefined variable "{value}"')
            names = []
            while self.tokens and self.tokens[0][0] == "chain":
                names.append(self.tokens.pop(0)[1])
            return ("variable", value, names, position)
        elif kind in ("string", "number", "char"):
            node = ("const", value, position)
        elif kind == ".":
            node = ("dot", position)
        elif kind == "word":
            if value in ("true", "false"):
                node = ("const", value == "true", position)
            elif value == "nil":
                node = ("nil", position)
            elif value in FUNCTIONS:
                node = ("function", value, position)
            else:
                raise self._error(f'function "{value}" not defined')
        else:
            raise self._error(
                f'unexpected "{kind}" in command' if kind != "chain" else f"unexpected <.{value}> in operand"
            )
        names = []
        while self.tokens and self.tokens[0][0] == "chain":
            names.append(self.tokens.pop(0)[1])
        return ("chain", node, names, position) if names else node


def _pieces(text: str) -> list[tuple[str, Any, int]]:
    """Text and actions in turn, with white space trimmed where the action says so."""
    found: list[tuple[str, Any, int]] = []
    at, line = 0, 1
    trim = False
    while True:
        start = text.find("{{", at)
        piece = text[at:] if start < 0 else text[at:start]
        if trim:
            piece = piece.lstrip(_SPACE)
        if start < 0:
            if piece:
                found.append(("text", piece, line))
            return found
        inside = start + 2
        if text[inside : inside + 1] == "-" and text[inside + 1 : inside + 2] in (*_SPACE,):
            piece = piece.rstrip(_SPACE)
            inside += 2
        if piece:
            found.append(("text", piece, line))
        line += text.count("\n", at, start)
        if text.startswith("/*", inside):
            end = text.find("*/", inside)
            if end < 0:
                raise TemplateError(f"template: output:{line}: unclosed comment")
            close = text.find("}}", end)
            trim = text[end + 2 : close].strip() == "-"
            at = close + 2
            continue
        end = _end(text, inside, line)
        body = text[inside:end]
        trim = body.endswith("-") and body[-2:-1] in (*_SPACE,)
        found.append(("action", (body[:-2] if trim else body, inside), line))
        line += text.count("\n", start, end)
        at = end + 2


def _end(text: str, at: int, line: int) -> int:
    while at < len(text):
        if text.startswith("}}", at):
            return at
        char = text[at]
        if char in "\"'":
            at += 1
            while at < len(text) and text[at] != char:
                if text[at] == "\n":
                    raise TemplateError(f"template: output:{line}: unterminated quoted string")
                at += 2 if text[at] == "\\" else 1
            if at >= len(text):
                raise TemplateError(f"template: output:{line}: unterminated quoted string")
        elif char == "`":
            at = text.find("`", at + 1)
            if at < 0:
                raise TemplateError(f"template: output:{line}: unterminated raw quoted string")
        at += 1
    raise TemplateError(f"template: output:{line}: unclosed action")


def _tokens(content: tuple[str, int], parser: _Parser) -> list[Token]:
    text, offset = content
    found: list[Token] = []
    at = 0
    spaced = True
    while at < len(text):
        char = text[at]
        start = at
        if char in _SPACE:
            at += 1
            spaced = True
            continue
        if char == "|":
            found.append(("|", None, offset + at))
            at += 1
        elif char in "(),":
            found.append((char, None, offset + at))
            at += 1
        elif text.startswith(":=", at):
            found.append((":=", None, offset + at))
            at += 2
        elif char == "=":
            found.append(("=", None, offset + at))
            at += 1
        elif char in "\"'`":
            value, at = _string(text, at)
            found.append(
                ("string" if char != "'" else "char", value if char != "'" else ord(value[:1] or "\0"), offset + start)
            )
        elif char == "." and not text[at + 1 : at + 2].isdigit():
            at += 1
            name = _identifier(text, at)
            at += len(name)
            attached = (
                not spaced
                and found
                and found[-1][0] in ("field", "chain", "variable", ")", "word", ".", "string")
                and found[-1][:2] not in _KEYWORDS
            )
            if not name:
                found.append((".", None, offset + start))
            else:
                found.append(("chain" if attached else "field", name, offset + start))
        elif char == "$":
            name = _identifier(text, at + 1)
            at += 1 + len(name)
            found.append(("variable", f"${name}", offset + start))
        elif char.isdigit() or char in "+-.":
            end = at + 1
            while end < len(text) and (
                text[end].isalnum() or text[end] in "._" or (text[end] in "+-" and text[end - 1] in "eE")
            ):
                end += 1
            found.append(("number", _number(text[at:end], parser), offset + start))
            at = end
        else:
            name = _identifier(text, at)
            if not name:
                raise TemplateError(f"template: output:{parser.line}: unexpected {_rune(char)} in command")
            at += len(name)
            found.append(("word", name, offset + start))
        spaced = False
    return found


def _rune(char: str) -> str:
    return go_quote(char)


def _identifier(text: str, at: int) -> str:
    end = at
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[at:end]


def _number(text: str, parser: _Parser) -> Any:
    bare = text.replace("_", "")
    try:
        return Int(bare, 0)
    except ValueError:
        try:
            return float(bare)
        except ValueError:
            raise TemplateError(f'template: output:{parser.line}: bad number syntax: "{text}"') from None


def _string(text: str, at: int) -> tuple[str, int]:
    mark = text[at]
    if mark == "`":
        end = text.index("`", at + 1)
        return text[at + 1 : end], end + 1
    out = []
    at += 1
    while text[at] != mark:
        char = text[at]
        if char == "\\":
            following = text[at + 1]
            width = {"x": 2, "u": 4, "U": 8}.get(following)
            if width:
                out.append(chr(int(text[at + 2 : at + 2 + width], 16)))
                at += 2 + width
                continue
            out.append(_ESCAPES.get(following, following))
            at += 2
            continue
        out.append(char)
        at += 1
    return "".join(out), at + 1
