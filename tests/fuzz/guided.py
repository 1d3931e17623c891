"""What the coverage-guided fuzzers share: they begin with good inputs and know the words of the API.

Interesting inputs are kept in the project's cache for the next run. libFuzzer's options are passed on. Inputs that
break something are written to the current folder, unless -artifact_prefix says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

from pybernetes.api.base import Struct
from pybernetes.api.schema import fields
from tools import ROOT

SYNTAX = ("{", "}", "[", "]", ":", ",", "null", '"', "1e9", "- ", "\\u", "&a", "*a", "<<", "!!", "$patch", "---")


def fuzz(one_input: Callable[[bytes], None], seeds: Iterable[bytes], words: Iterable[str] = ()) -> None:
    """Try inputs until one breaks, or until the options say that it is enough; the process ends with it."""
    folder = ROOT / ".cache/fuzz" / Path(sys.argv[0]).stem
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    dictionary = folder / "words"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in (*SYNTAX, *words)))
    atheris.Setup([*sys.argv, f"-dict={dictionary}", str(corpus)], one_input)
    atheris.Fuzz()


def names_of_fields(cls: type[Struct]) -> set[str]:
    """The names in all objects of a class, in quotes."""
    names, seen, todo = set(), {cls}, [cls]
    while todo:
        for info in fields(todo.pop()):
            names.add(f'"{info.wire}":')
            inner = info
            while inner.items is not None:
                inner = inner.items
            if inner.struct is not None and inner.struct not in seen:
                seen.add(inner.struct)
                todo.append(inner.struct)
    return names


def _escaped(word: str) -> str:
    return "".join(char if char.isalnum() else "".join(f"\\x{byte:02x}" for byte in char.encode()) for char in word)
