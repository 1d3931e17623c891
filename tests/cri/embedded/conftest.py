"""A machine with the embedded runtime, one for all tests of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMachine]:
    """Started once."""
    if why := EmbeddedMachine.lacking():
        pytest.skip(why)
    folder = Path(tmp_path_factory.mktemp("embedded"))
    with EmbeddedMachine(folder, f"pyb-embedded-{os.getpid()}") as started:
        yield started
        print(started.log())
