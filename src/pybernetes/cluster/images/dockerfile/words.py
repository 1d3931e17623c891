"""Words of a Dockerfile: split at blanks, with quotes and escapes, and variables put in.

The rules are those of Dockerfiles, which are not quite a shell's: `$X`, `${X}`, `${X:-word}` (also `-`, `:+`, `+`,
`:?`, `?`), `${X#pattern}`, `##`, `%`, `%%`, `${X/pattern/word}` and `//`. Pure; everything wrong is a ValueError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

DEEPEST = 40
"""Substitutions in substitutions."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")


def split(text: str, escape: str = "\\") -> list[str]:
    """Words between blanks; quotes and escapes keep blanks together and stay where they are."""
    words: list[str] = []
    word, quote, at = "", "", 0
    while at < len(text):
        character = text[at]
        if not quote and character.isspace():
            if word:
                words.append(word)
            word = ""
        elif character == escape and quote != "'" and at + 1 < len(text):
            word += text[at : at + 2]
            at += 1
        else:
            if quote and character == quote:
                quote = ""
            elif not quote and character in "'\"":
                quote = character
            word += character
        at += 1
    return [*words, word] if word else words


def pairs(text: str, escape: str = "\\") -> list[tuple[str, str]]:
    """`A=b C="d e"`, or `A the rest`; values with their quotes. ValueError if a word is neither."""
    words = split(text, escape)
    if not words:
        raise ValueError("wants at least one NAME=VALUE")
    if "=" not in words[0]:
        parts = text.strip().split(None, 1)  # the first form of ENV: a name, a blank, the rest of the line
        if len(parts) < 2:
            raise ValueError(f"{parts[0]!r} has no value: NAME=VALUE")
        return [(parts[0], parts[1])]
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r} is not NAME=VALUE (a value with blanks goes in quotes)")
        if not name:
            raise ValueError(f"{word!r} has no name")
        found.append((name, value))
    return found


def json_words(text: str) -> list[str] | None:
    """The words of `["a", "b"]`; None if it is not that."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def expand(word: str, variables: Mapping[str, str], escape: str = "\\") -> str:
    """A word with its variables put in and its quotes taken off."""
    return _Reader(word, variables, escape).until("", 0)


def expand_text(text: str, variables: Mapping[str, str], escape: str = "\\") -> str:
    """A here-document with its variables put in; quotes in it are as any other character."""
    return _Reader(text, variables, escape).document()


class _Reader:
    def __init__(self, text: str, variables: Mapping[str, str], escape: str) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self._escape = escape

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def until(self, ends: str, depth: int) -> str:
        """Reads to one of these characters (which stays), or to the end if there are none."""
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} substitutions in each other")
        found = []
        while (character := self._peek()) and (not ends or character not in ends):
            self._at += 1
            if character == "'":
                found.append(self._single())
            elif character == '"':
                found.append(self._double(depth))
            elif character == "$":
                found.append(self._dollar(depth))
            elif character == self._escape:
                found.append(self._take())
            else:
                found.append(character)
        return "".join(found)

    def document(self) -> str:
        """Reads all of it."""
        found = []
        while character := self._take():
            if character == "$":
                found.append(self._dollar(0))
            elif character == self._escape and self._peek() in ("$", self._escape, "`"):
                found.append(self._take())
            else:
                found.append(character)
        return "".join(found)

    def _single(self) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise ValueError(f"a single quote does not end in {self._text!r}")
        found = self._text[self._at : end]
        self._at = end + 1
        return found

    def _double(self, depth: int) -> str:
        found = []
        while (character := self._take()) != '"':
            if not character:
                raise ValueError(f"a double quote does not end in {self._text!r}")
            if character == "$":
                found.append(self._dollar(depth))
            elif character == self._escape:
                following = self._take()
                kept = "" if following in ('"', "$", self._escape) else self._escape
                found.append(kept + following)
            else:
                found.append(character)
        return "".join(found)

    def _dollar(self, depth: int) -> str:
        braces = self._peek() == "{"
        start = self._at + braces
        match = _NAME.match(self._text, start)
        if not braces:
            if match is None or not (match[0][0].isalpha() or match[0][0] == "_" or match[0] in "0123456789@*#"):
                return "$"
            self._at = match.end()
            return self._variables.get(match[0], "")
        if match is None:
            raise ValueError(f"no name of a variable in {self._text[self._at - 1 :]!r}")
        self._at = match.end()
        value = self._modified(match[0], depth)
        if self._take() != "}":
            raise ValueError(f"${{{match[0]} has no closing brace in {self._text!r}")
        return value

    def _modified(self, name: str, depth: int) -> str:
        value = self._variables.get(name)
        operator = self._peek()
        if operator in ("}", ""):
            return value or ""
        self._at += 1
        if operator in "#%/":
            twice = self._peek() == operator
            self._at += twice
            pattern = self._pattern("/}" if operator == "/" else "}", depth)
            if operator != "/":
                return _cut(value or "", pattern, operator, longest=twice)
            word = ""
            if self._peek() == "/":
                self._at += 1
                word = self.until("}", depth + 1)
            return re.sub(pattern, lambda _: word, value or "", count=0 if twice else 1, flags=re.DOTALL)
        counts_empty = operator == ":"
        if counts_empty:
            operator = self._take()
        if operator not in ("-", "+", "?"):
            raise ValueError(f"unsupported modifier ({operator}) of ${{{name}}} in {self._text!r}")
        word = self.until("}", depth + 1)
        there = value is not None and (value != "" or not counts_empty)
        if operator == "+":
            return word if there else ""
        if there:
            return value or ""
        if operator == "?":
            raise ValueError(f"{name}: {word or 'not set'}")
        return word

    def _pattern(self, ends: str, depth: int) -> str:
        """A shell's pattern as a regular expression."""
        found = []
        while (character := self._peek()) and character not in ends:
            self._at += 1
            if character == self._escape:
                found.append(re.escape(self._take()))
            elif character == "$":
                found.append(re.escape(self._dollar(depth + 1)))
            else:
                found.append({"*": ".*", "?": "."}.get(character) or re.escape(character))
        return "".join(found)


def _cut(value: str, pattern: str, operator: str, *, longest: bool) -> str:
    """The value without the shortest or longest beginning (#) or end (%) that matches."""
    whole = re.compile(pattern, re.DOTALL)
    lengths = range(len(value) + 1)
    for length in reversed(lengths) if longest else lengths:
        part = value[:length] if operator == "#" else value[len(value) - length :]
        if whole.fullmatch(part):
            return value[length:] if operator == "#" else value[: len(value) - length]
    return value
