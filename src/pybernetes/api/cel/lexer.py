"""Text to words: CEL's tokens, and what the escapes in its literals stand for."""

from __future__ import annotations

import re
from typing import NamedTuple

from .ast import Problem

_ESCAPED = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_PLAIN = rf"""\"{{3}}(?:{_ESCAPED}|[^\\])*?\"{{3}}|'{{3}}(?:{_ESCAPED}|[^\\])*?'{{3}}
    |"(?:{_ESCAPED}|[^\\"\n\r])*"|'(?:{_ESCAPED}|[^\\'\n\r])*'"""
_RAW = r"""[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
_TOKEN = re.compile(
    rf"""
    (?P<blank>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<bytes>[bB](?:{_RAW}|{_PLAIN}))
  | (?P<raw>{_RAW})
  | (?P<string>{_PLAIN})
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>0x[0-9a-fA-F]+[uU]|\d+[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPENED = {quote: re.compile(rf"{quote}(?:{_ESCAPED}|[^\\{quote}\n\r])*", re.ASCII) for quote in ("'", '"')}
_PARTIAL = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?", re.ASCII)
_KEYWORDS = {"true", "false", "null", "in"}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))", re.DOTALL
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A word of the text."""

    kind: str
    text: str
    at: int


def tokens(source: str, problems: list[Problem]) -> list[Token]:
    """The tokens of a text, with an `end` behind them; invalid characters are reported as problems and skipped."""
    found = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            end = _broken(source, at)
            problems.append(Problem(at, f"Syntax error: token recognition error at: '{source[at:end]}'"))
            at = end
            continue
        kind = match.lastgroup or ""
        if kind != "blank":
            text = match[0]
            found.append(Token("op" if kind == "ident" and text in _KEYWORDS else kind, text, at))
        at = match.end()
    found.append(Token("end", "<EOF>", len(source)))
    return found


def _broken(source: str, at: int) -> int:
    """Where the lexer gives up on something it cannot read: behind the first character that does not fit."""
    opened = _OPENED.get(source[at])
    if opened is None:  # half of an operator takes what follows along
        return min(at + (2 if source[at] in "&=|" else 1), len(source))
    match = opened.match(source, at)
    assert match is not None
    end = match.end()
    if source[end : end + 1] == "\\":
        partial = _PARTIAL.match(source, end)
        assert partial is not None
        end = partial.end()
    return min(end + 1, len(source))


def unescape(body: str, is_bytes: bool) -> str | bytes:
    """The value of a literal's body. Raises ValueError."""

    def replace(match: re.Match[str]) -> str:
        simple, hexadecimal, short, long, octal, _other = match.groups()
        if simple is not None:
            return _SIMPLE.get(simple, simple)
        if (short is not None or long is not None) and not is_bytes:
            code = int(short or long, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise ValueError("invalid unicode code point")
            return chr(code)
        if hexadecimal is not None:
            return chr(int(hexadecimal, 16))
        if octal is not None:
            return chr(int(octal, 8))
        raise ValueError("unable to unescape string")

    if not is_bytes:
        return _ESCAPE.sub(replace, body)
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        out += body[at : match.start()].encode() + bytes([ord(replace(match))])
        at = match.end()
    return bytes(out + body[at:].encode())
