"""What tests of builds share: the data of one cluster, and a bench to build on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybernetes.component.removal import remove_tree


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data of one cluster for all builds of a file: the base image is unpacked once."""
    folder = tmp_path_factory.mktemp("cluster") / "data"
    yield folder
    remove_tree(folder)  # some of it nests deeper than pytest can remove


@pytest.fixture
def bench(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """See bench.py."""
    from cluster.images.dockerfile.bench import Bench

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    (tmp_path / "context").mkdir()
    return Bench(data, tmp_path / "context", capsys.readouterr)
