"""Text to a tree: CEL's grammar by recursive descent, macros expanded on the way.

Only the first syntax error is reported, with the wording of the parser that upstream generates, where that is simple.
"""

from __future__ import annotations

from . import macros
from .ast import (
    Call,
    CompileError,
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
from .escaping import RESERVED
from .lexer import Token, tokens, unescape
from .values import INT_MAX, INT_MIN, UINT_MAX, UInt

MAX_LENGTH = 100_000
MAX_DEPTH = 250

_EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_BEGINNINGS = frozenset(("[", "{", "(", ".", "-", "!", "true", "false", "null"))
_RELATIONS = frozenset(("<", "<=", ">=", ">", "==", "!=", "in"))
_SUMS, _PRODUCTS = frozenset("+-"), frozenset("*/%")


def parse(source: str, macro_set: macros.MacroSet = macros.STANDARD) -> Node:
    """The tree of an expression. Raises CompileError."""
    if len(source) > MAX_LENGTH:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_LENGTH}"
        raise CompileError(source, [Problem(-1, message)])
    parser = _Parser(source, macro_set)
    node = parser.expression()
    if parser.token.kind != "end":
        parser.extraneous()
    if parser.problems:
        raise CompileError(source, parser.problems)
    return node


class _Parser:
    def __init__(self, source: str, macro_set: macros.MacroSet) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.tokens = tokens(source, self.problems)
        self.position = 0
        self.token = self.tokens[0]
        self.macros = macro_set
        self.depth = 0

    def fail(self, at: int, message: str) -> CompileError:
        return CompileError(self.source, [*self.problems, Problem(at, message)])

    def extraneous(self) -> None:
        following = self.tokens[self.position + 1] if self.position + 1 < len(self.tokens) else self.token
        word = "extraneous" if following.kind == "end" else "mismatched"
        raise self.fail(self.token.at, f"Syntax error: {word} input '{self.token.text}' expecting <EOF>")

    def mismatched(self, expecting: str) -> CompileError:
        return self.fail(self.token.at, f"Syntax error: mismatched input '{self.token.text}' expecting {expecting}")

    def advance(self) -> Token:
        token = self.token
        self.position += 1
        self.token = self.tokens[min(self.position, len(self.tokens) - 1)]
        return token

    def at_op(self, text: str) -> bool:
        return self.token.text == text and self.token.kind == "op"

    def accept(self, text: str) -> Token | None:
        return self.advance() if self.at_op(text) else None

    def expect(self, text: str, *others: str) -> Token:
        if self.at_op(text):
            return self.advance()
        if others:
            following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
            word = "extraneous" if following.text in (text, *others) and self.token.kind != "end" else "mismatched"
            wanted = "{" + ", ".join(f"'{each}'" for each in (text, *others)) + "}"
            raise self.fail(self.token.at, f"Syntax error: {word} input '{self.token.text}' expecting {wanted}")
        if text == ":":
            raise self.mismatched("':'")
        raise self.fail(self.token.at, f"Syntax error: missing '{text}' at '{self.token.text}'")

    def begins(self) -> bool:
        """Whether an expression can begin here."""
        return self.token.kind not in ("op", "end", "escaped") or self.token.text in _BEGINNINGS

    def no_expression(self, expected: str = "") -> CompileError:
        """Something stands where an expression has to begin; if one follows it is taken for a slip."""
        expected = expected or _EXPECTED
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        begins = following.kind not in ("op", "end", "escaped") or following.text in _BEGINNINGS
        word = "extraneous" if begins and self.token.kind != "end" else "mismatched"
        return self.fail(self.token.at, f"Syntax error: {word} input '{self.token.text}' expecting {expected}")

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self.logical("||", "_||_")
        if mark := self.accept("?"):
            then = self.logical("||", "_||_")
            self.expect(":")
            node = Call(mark.at, "_?_:_", [node, then, self.expression()])
        self.depth -= 1
        return node

    def logical(self, operator: str, name: str) -> Node:
        node = self.logical("&&", "_&&_") if operator == "||" else self.relation()
        terms, at = [node], -1
        while mark := self.accept(operator):
            at = at if at >= 0 else mark.at
            terms.append(self.logical("&&", "_&&_") if operator == "||" else self.relation())
        return Call(at, name, terms) if len(terms) > 1 else node

    def relation(self) -> Node:
        node = self.sum()
        while self.token.kind == "op" and self.token.text in _RELATIONS:
            mark = self.advance()
            name = "@in" if mark.text == "in" else f"_{mark.text}_"
            node = Call(mark.at, name, [node, self.sum()])
        return node

    def sum(self) -> Node:
        node = self.product()
        while self.token.kind == "op" and self.token.text in _SUMS:
            mark = self.advance()
            node = Call(mark.at, f"_{mark.text}_", [node, self.product()])
        return node

    def product(self) -> Node:
        node = self.unary()
        while self.token.kind == "op" and self.token.text in _PRODUCTS:
            mark = self.advance()
            node = Call(mark.at, f"_{mark.text}_", [node, self.unary()])
        return node

    def unary(self) -> Node:
        if self.at_op("!") or self.at_op("-"):
            sign = self.token.text
            if sign == "-" and self.tokens[self.position + 1].kind in ("int", "float"):
                return self.member()
            first = self.advance()
            count = 1
            while self.at_op(sign):
                if sign == "-" and self.tokens[self.position + 1].kind in ("int", "float"):
                    break
                self.advance()
                count += 1
            node = self.member()
            return node if count % 2 == 0 else Call(first.at, "!_" if sign == "!" else "-_", [node])
        return self.member()

    def member(self) -> Node:
        node = self.primary()
        while self.token.kind == "op":
            if self.at_op("."):
                dot = self.advance()
                optional = self.accept("?")
                name = self.token
                if name.kind == "escaped":
                    raise self.fail(name.at, "unsupported syntax: '`'")
                if name.kind != "ident":
                    if optional:
                        raise self.mismatched("{IDENTIFIER, ESC_IDENTIFIER}")
                    if name.text in ("true", "false", "null"):
                        raise self.mismatched("IDENTIFIER")
                    seen = "" if name.kind == "end" else name.text
                    raise self.fail(name.at, f"Syntax error: no viable alternative at input '.{seen}'")
                self.advance()
                if optional:
                    node = Call(dot.at, "_?._", [node, Literal(name.at, name.text)])
                elif self.at_op("("):
                    opening = self.advance()
                    node = self.call(opening.at, name.text, self.arguments(), node)
                else:
                    node = Select(dot.at, node, name.text)
            elif self.at_op("["):
                opening = self.advance()
                optional = self.accept("?")
                if not optional and not self.begins():
                    raise self.no_expression(_EXPECTED.replace("'!', ", "'!', '?', "))
                index = self.expression()
                self.expect("]")
                node = Call(opening.at, "_[?_]" if optional else "_[_]", [node, index])
            else:
                break
        return node

    def arguments(self) -> list[Node]:
        found: list[Node] = []
        if not self.at_op(")"):
            if not self.begins():
                raise self.no_expression(_EXPECTED.replace("'(', ", "'(', ')', "))
            found.append(self.expression())
            while self.accept(","):
                found.append(self.expression())
        self.expect(")")
        return found

    def call(self, at: int, name: str, args: list[Node], target: Node | None) -> Node:
        expand = self.macros.get((name, len(args), target is not None))
        if expand is not None:
            expanded = expand(at, target, args)
            if isinstance(expanded, Problem):
                self.problems.append(Problem(expanded.at if expanded.at >= 0 else at, expanded.message))
                return Literal(at, None)
            if expanded is not None:
                return expanded
        return Call(at, name, args, target)

    def primary(self) -> Node:
        token = self.token
        if token.kind == "op":
            return self.punctuated(token)
        if token.kind == "ident":
            return self.named("")
        if token.kind in ("int", "uint", "float"):
            self.advance()
            return self.number(token, "", token.at)
        if token.kind in ("string", "raw", "bytes"):
            self.advance()
            return Literal(token.at, self.text(token))
        raise self.no_expression()

    def punctuated(self, token: Token) -> Node:
        if token.text == "(":
            self.advance()
            node = self.expression()
            self.expect(")")
            return node
        if token.text == "[":
            return self.list_literal()
        if token.text == "{":
            self.advance()
            return MapNode(token.at, self.map_entries())
        if token.text in ("true", "false", "null"):
            self.advance()
            return Literal(token.at, {"true": True, "false": False, "null": None}[token.text])
        if token.text == "-" and self.tokens[self.position + 1].kind in ("int", "float"):
            self.advance()
            return self.number(self.advance(), "-", token.at)
        if token.text == "." and self.tokens[self.position + 1].kind == "ident":
            self.advance()
            return self.named(".")
        raise self.no_expression()

    def named(self, dot: str) -> Node:
        ahead = self.position  # IDENT ('.' IDENT)* '{' is an object
        while self.tokens[ahead].kind == "ident" and self.tokens[ahead + 1].text == ".":
            ahead += 2
        if (
            self.tokens[ahead].kind == "ident"
            and self.tokens[ahead + 1].kind == "op"
            and self.tokens[ahead + 1].text == "{"
        ):
            name = dot + "".join(token.text for token in self.tokens[self.position : ahead + 1])
            self.position = ahead
            self.advance()
            opening = self.advance()
            return StructNode(opening.at, name, self.field_entries())
        token = self.advance()
        if token.text in RESERVED:
            self.problems.append(Problem(token.at, f"reserved identifier: {token.text}"))
        if self.at_op("("):
            opening = self.advance()
            return self.call(opening.at, dot + token.text, self.arguments(), None)
        return Ident(token.at, dot + token.text)

    def lone_comma(self, closing: str) -> None:
        """`[,]` and `{,}` are empty, says the grammar."""
        if self.at_op(",") and self.tokens[self.position + 1].text == closing:
            self.advance()

    def list_literal(self) -> Node:
        opening = self.advance()
        items: list[Node] = []
        optional = set()
        self.lone_comma("]")
        while not self.at_op("]"):
            if self.accept("?"):
                optional.add(len(items))
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]", ",")
        return ListNode(opening.at, items, frozenset(optional))

    def map_entries(self) -> list[Entry]:
        entries = []
        self.lone_comma("}")
        while not self.at_op("}"):
            optional = bool(self.accept("?"))
            key = self.expression()
            colon = self.expect(":")
            entries.append(Entry(colon.at, key, "", self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}", ",")
        return entries

    def field_entries(self) -> list[Entry]:
        entries = []
        self.lone_comma("}")
        while not self.at_op("}"):
            optional = bool(self.accept("?"))
            if self.token.kind == "escaped":
                raise self.fail(self.token.at, "unsupported syntax: '`'")
            if self.token.kind != "ident":
                raise self.mismatched("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
            name = self.advance()
            colon = self.expect(":")
            entries.append(Entry(colon.at, None, name.text, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}", ",")
        return entries

    def number(self, token: Token, sign: str, at: int) -> Node:
        text = token.text
        if token.kind == "float":
            return Literal(at, float(sign + text))
        digits = text.rstrip("uU") if token.kind == "uint" else text
        try:
            value = int(sign + digits, 16 if digits.startswith("0x") else 10)
        except ValueError:  # more digits than Python reads: far beyond both kinds
            value = UINT_MAX + 1
        if token.kind == "uint":
            if value > UINT_MAX:
                self.problems.append(Problem(at, "invalid uint literal"))
            return Literal(at, UInt(value))
        if not INT_MIN <= value <= INT_MAX:
            self.problems.append(Problem(at, "invalid int literal"))
        return Literal(at, value)

    def text(self, token: Token) -> str | bytes:
        text, raw, is_bytes = token.text, False, False
        while text[0] in "rRbB":
            raw = raw or text[0] in "rR"
            is_bytes = is_bytes or text[0] in "bB"
            text = text[1:]
        width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
        body = text[width:-width].replace("\r\n", "\n").replace("\r", "\n")
        if raw or "\\" not in body:
            return body.encode() if is_bytes else body
        try:
            return unescape(body, is_bytes)
        except ValueError as error:
            self.problems.append(Problem(token.at, str(error)))
            return ""
