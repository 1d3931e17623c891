from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of one cluster for all builds of a file: the base image is unpacked once."""
    return tmp_path_factory.mktemp("cluster") / "data"


@pytest.fixture
def bench(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """See bench.py."""
    from cluster.images.dockerfile.bench import Bench

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    (tmp_path / "context").mkdir()
    return Bench(data, tmp_path / "context", capsys.readouterr)
