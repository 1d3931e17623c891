"""Which store a URL names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pybernetes.store import open_store


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory://", "MemoryStore"),
        ("sqlite:///var/lib/x.db", "SQLiteStore"),
        ("http://127.0.0.1:2379", "EtcdStore"),
        ("https://a:2379, https://b:2379", "EtcdStore"),
        (["http://a:2379", "http://b:2379"], "EtcdStore"),
    ],
)
def test_a_url_names_its_store(url: str | list[str], kind: str) -> None:
    assert type(open_store(url)).__name__ == kind


@pytest.mark.parametrize("url", ["", "postgres://x", "sqlite:x.db", []])
def test_what_is_no_store_is_refused(url: str | list[str]) -> None:
    with pytest.raises(ValueError, match="not a store"):
        open_store(url)


def test_sqlite_does_not_import_grpc() -> None:
    code = (
        "import sys; from pybernetes.store import open_store; open_store('sqlite:///x'); print('grpc' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
