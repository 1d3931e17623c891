"""A Dockerfile as a list of instructions: directives, comments, continued lines, flags and here-documents.

Nothing is carried out and no variable is put in here, but errors that can be seen are reported, with their line, before
the first step runs. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pybernetes.cluster.images.dockerfile import words
from pybernetes.cluster.images.dockerfile.errors import BuildError, placed

FLAGS: dict[str, tuple[str, ...]] = {
    "ADD": ("chown", "chmod", "checksum", "link", "exclude", "unpack"),
    "ARG": (),
    "CMD": (),
    "COPY": ("from", "chown", "chmod", "link", "exclude"),
    "ENTRYPOINT": (),
    "ENV": (),
    "EXPOSE": (),
    "FROM": ("platform",),
    "HEALTHCHECK": ("interval", "timeout", "start-period", "start-interval", "retries"),
    "LABEL": (),
    "MAINTAINER": (),
    "ONBUILD": (),
    "RUN": ("mount", "network"),
    "SHELL": (),
    "STOPSIGNAL": (),
    "USER": (),
    "VOLUME": (),
    "WORKDIR": (),
}
"""The instructions, with the flags that they take."""
REPEATED = ("exclude", "mount")
"""Flags that may come several times."""
KNOWN_BUT_REFUSED = {
    ("ADD", "keep-git-dir"),
    ("COPY", "parents"),
    ("RUN", "security"),
    ("RUN", "device"),
}
LARGEST = 1 << 20
_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.*?)\s*")
_HEREDOC = re.compile(r"[0-9]*<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_.-]*)\2")


@dataclass(frozen=True)
class Heredoc:
    """A file written into the Dockerfile."""

    word: str
    """Its placeholder in the instruction: `<<NAME`."""
    name: str
    content: str
    expands: bool
    """Whether variables in it are put in: its name is not in quotes."""


@dataclass(frozen=True)
class Instruction:
    """One of them, where it is, and what it was written as."""

    keyword: str
    text: str
    line: int
    flags: dict[str, list[str]] = field(default_factory=dict)
    heredocs: tuple[Heredoc, ...] = ()
    original: str = ""

    def flag(self, name: str) -> str:
        """A flag's value, empty if it is not there."""
        return self.flags.get(name, [""])[-1]


@dataclass(frozen=True)
class Dockerfile:
    """The content of a file."""

    name: str
    instructions: list[Instruction]
    escape: str = "\\"
    warnings: tuple[str, ...] = ()


def parse(content: bytes, name: str = "Dockerfile") -> Dockerfile:
    """Reads a Dockerfile. Raises BuildError."""
    if len(content) > LARGEST:
        raise BuildError(f"{name} has {len(content)} bytes: that is no Dockerfile")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise placed(name, content[: error.start].count(b"\n") + 1, "", "not UTF-8") from None
    if "\0" in text:
        raise placed(name, text[: text.index("\0")].count("\n") + 1, "", "a zero byte")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    escape, begin = _directives(name, lines)
    warnings: list[str] = []
    found = list(_instructions(name, lines, begin, escape, warnings))
    if not found:
        raise BuildError(f"{name} has no instructions")
    first = next((each for each in found if each.keyword != "ARG"), None)
    if first is None or first.keyword != "FROM":
        wrong = first or found[-1]
        raise placed(name, wrong.line, wrong.keyword, "no FROM before it: a Dockerfile begins with FROM, or with ARG")
    return Dockerfile(name, found, escape, tuple(warnings))


def one(name: str, text: str, line: int, escape: str) -> Instruction:
    """A single instruction, as ONBUILD has it."""
    keyword, rest = _keyword(text.strip())
    if keyword.upper() in ("ONBUILD", "FROM", "MAINTAINER"):
        raise placed(name, line, "ONBUILD", f"{keyword.upper()} may not be triggered")
    return _instruction(name, keyword, rest, line, escape, text.strip())


def _directives(name: str, lines: list[str]) -> tuple[str, int]:
    """The escape character, and the first line after the directives, which are the very first comments."""
    seen: dict[str, str] = {}
    for number, line in enumerate(lines):
        match = _DIRECTIVE.fullmatch(line.strip())
        key = match[1].lower() if match else ""
        if match is None or key not in ("syntax", "escape", "check"):
            break
        if key in seen:
            raise placed(name, number + 1, "", f"the directive {key!r} comes twice")
        seen[key] = match[2]
        if key == "escape" and match[2] not in ("\\", "`"):
            raise placed(name, number + 1, "", f"the escape character is \\ or `, not {match[2]!r}")
        if key == "syntax" and "dockerfile" not in match[2].rpartition("/")[2]:
            raise placed(name, number + 1, "", f"the frontend {match[2]!r} is another language than Dockerfiles'")
    return seen.get("escape", "\\"), len(seen)


def _instructions(name: str, lines: list[str], at: int, escape: str, warnings: list[str]) -> Iterator[Instruction]:
    continued = re.compile(rf"{re.escape(escape)}[ \t]*$")
    while at < len(lines):
        if not lines[at].strip() or lines[at].lstrip().startswith("#"):
            at += 1
            continue
        begin, parts, empty = at, [lines[at].lstrip()], False
        while (match := continued.search(parts[-1])) and at + 1 < len(lines):
            parts[-1] = parts[-1][: match.start()]
            at += 1
            while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith("#")):
                empty = empty or not lines[at].strip()
                at += 1
            if at == len(lines):
                break
            parts.append(lines[at])
        else:
            parts[-1] = continued.sub("", parts[-1])
        at = min(at + 1, len(lines))
        if empty:
            warnings.append(f"{name}:{begin + 1}: an empty line inside a continued one")
        text = "".join(parts).strip()
        keyword, rest = _keyword(text)
        if not keyword:
            continue
        instruction = _instruction(name, keyword, rest, begin + 1, escape, text)
        if instruction.keyword in ("RUN", "COPY", "ADD"):
            instruction, at = _with_heredocs(name, instruction, lines, at, escape)
        yield instruction


def _keyword(text: str) -> tuple[str, str]:
    """The first word, and the rest."""
    first, rest = [*text.split(None, 1), "", ""][:2]
    return first, rest


def _instruction(name: str, keyword: str, rest: str, line: int, escape: str, original: str) -> Instruction:
    upper = keyword.upper()
    if upper not in FLAGS:
        near = difflib.get_close_matches(upper, FLAGS, 1)
        raise placed(name, line, "", f"unknown instruction {keyword[:40]!r}" + (f", is it {near[0]}?" if near else ""))
    flags, rest = _flags(name, upper, rest, line, escape)
    if not rest.strip() and upper not in ("RUN", "CMD", "ENTRYPOINT"):
        raise placed(name, line, upper, "wants an argument")
    if not rest.strip() and upper == "RUN":
        raise placed(name, line, upper, "wants a command")
    return Instruction(upper, rest.strip(), line, flags, (), original)


def _flags(name: str, keyword: str, rest: str, line: int, escape: str) -> tuple[dict[str, list[str]], str]:
    found: dict[str, list[str]] = {}
    while rest.startswith("--"):
        word = words.split(rest, escape)[0]
        rest = rest[len(word) :].lstrip()
        if word == "--":
            break
        flag, equals, value = word[2:].partition("=")
        if (keyword, flag) in KNOWN_BUT_REFUSED:
            raise placed(name, line, keyword, f"--{flag} is not supported")
        if flag not in FLAGS[keyword]:
            taken = ", ".join(f"--{each}" for each in FLAGS[keyword])
            raise placed(name, line, keyword, f"unknown flag --{flag}" + (f"; it takes {taken}" if taken else ""))
        if not equals and flag != "link":
            raise placed(name, line, keyword, f"--{flag} wants a value: --{flag}=...")
        if flag in found and flag not in REPEATED:
            raise placed(name, line, keyword, f"--{flag} comes twice")
        found.setdefault(flag, []).append(value)
    return found, rest


def _with_heredocs(
    name: str, instruction: Instruction, lines: list[str], at: int, escape: str
) -> tuple[Instruction, int]:
    found = []
    for word in words.split(instruction.text, escape):
        match = _HEREDOC.fullmatch(word)
        if match is None:
            continue
        content, closed = [], False
        while at < len(lines):
            line = lines[at].lstrip("\t") if match[1] else lines[at]
            at += 1
            if line == match[3]:
                closed = True
                break
            content.append(line + "\n")
        if not closed:
            raise placed(name, instruction.line, instruction.keyword, f"the here-document {match[3]} does not end")
        found.append(Heredoc(word, match[3], "".join(content), expands=not match[2]))
    return replace(instruction, heredocs=tuple(found)), at
