"""An API server with upstream's default plugins, and how transcripts are played to it."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import transcripts
from apiserver.client import Client

import tools

HERE = Path(__file__).parent / "transcripts"
Play = Callable[[str], None]


@contextlib.contextmanager
def server_with(folder: Path, *flags: str) -> Iterator[Client]:
    """A server with these flags about admission, and no others."""
    with tools.api_server(folder, *flags, accounts=True) as server:
        yield Client(server)


@pytest.fixture(scope="session")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The administrator of a server with all plugins that are on by default."""
    with server_with(tmp_path_factory.mktemp("admission")) as client:
        yield client


@pytest.fixture
def play(admin: Client) -> Play:
    return lambda name: played(admin, name)


def played(client: Client, name: str) -> None:
    """Plays a transcript and fails where the answers differ from upstream's."""

    def call(user: str, method: str, path: str, body: Any, media: str) -> tuple[int, Any, list[str]]:
        headers = {"Content_Type": media}
        if user:
            headers |= {"Impersonate_User": user, "Impersonate_Group": "system:nodes"}
        answer = client(method, path, body, **headers)
        return answer.status, json.loads(answer.body), answer.warnings

    document = transcripts.load(HERE / f"{name}.yaml")
    namespace = f"t-{secrets.token_hex(4)}"
    assert client.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    found = transcripts.differences(document, transcripts.play(document, namespace, call))
    assert not found, "\n".join(found)
