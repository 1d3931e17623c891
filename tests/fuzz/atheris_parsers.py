"""A coverage-guided fuzzer on the readers of text: selectors, quantities, times, schedules, addresses, paths.

python tests/fuzz/atheris_parsers.py -max_total_time=300
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["pybernetes.api", "pybernetes.apiserver"]):
    from fuzz import guided, test_parsers
    from fuzz.journey import refused
    from fuzz.wild import TEXTS

    from pybernetes.api.errors import APIError
    from pybernetes.apiserver.negotiation import clauses
    from pybernetes.apiserver.requestinfo import request_info

READERS = list(test_parsers.READERS.items())


def one_input(data: bytes) -> None:
    """The first byte chooses the reader, the rest is the text."""
    if not data:
        return
    text = data[1:].decode("utf-8", "replace")
    choice = data[0] % (len(READERS) + 2)
    if choice < len(READERS):
        read, (_, refusal) = READERS[choice]
        with contextlib.suppress(refusal):
            read(text)
    elif choice == len(READERS):
        clauses(text)
    else:
        path, _, query = text.partition("?")
        try:
            request_info("GET", "/" + path, query)
        except APIError as error:
            refused(error)


if __name__ == "__main__":
    guided.fuzz(one_input, [bytes([n]) + text.encode() for n in range(len(READERS)) for text in TEXTS])
