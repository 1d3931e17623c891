"""What tests of images share: a registry, and a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.images.registries import FakeRegistry

from pybernetes.cri.embedded.images.store import ImageStore


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry().serving() as serving:
        yield serving


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")
