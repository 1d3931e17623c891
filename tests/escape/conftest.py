"""A machine with the embedded runtime for the escape suite, one for all tests of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine
from escape.keys import keep_secret

SECRET = "pyb-secret"
"""A key of the user who starts the node."""


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMachine]:
    """Started once."""
    if why := EmbeddedMachine.lacking():
        pytest.skip(why)
    keep_secret(SECRET)
    with EmbeddedMachine(Path(tmp_path_factory.mktemp("escape")), f"pyb-escape-{os.getpid()}") as started:
        yield started
