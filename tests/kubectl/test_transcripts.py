"""Our kubectl prints what upstream's kubectl v1.36 printed, byte by byte, and ends with the same exit code.

Files that make or list nodes, API groups, or what has no namespace have an API server of their own, as when they were
recorded. The others share one, each in its own namespace.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import kubectl_transcripts
import pytest

import tools
from pybernetes.kubectl import main as kubectl

FILES = sorted((kubectl_transcripts.FOLDER / "transcripts").glob("*.txt"))


ALONE = ("cluster", "create-more", "debug", "describe-more", "nodes")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """The API server of transcripts that stay in their namespace."""
    with tools.api_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(path: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tools.ApiServer]:
    """The API server for a file."""
    if path.stem not in ALONE:
        yield request.getfixturevalue("shared")
        return
    with tools.api_server(tmp_path / "server") as server:
        yield server


class Runner:
    """Runs command lines within this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *argv: str) -> tuple[str, str, int]:
        """What a command prints on stdout and stderr, and its exit code."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
        self._monkeypatch.setattr(sys, "stdout", out)
        self._monkeypatch.setattr(sys, "stderr", err)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = kubectl.main(list(argv))
        out.flush()
        assert isinstance(out.buffer, io.BytesIO)
        return out.buffer.getvalue().decode(), err.getvalue(), code


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_commands_print_what_upstreams_kubectl_prints(
    server: tools.ApiServer, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = f"t-{path.stem}"
    kubectl_transcripts.config_for(server.kubeconfig, namespace, tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    # No plugin of this machine: `plugin list` would show it.
    folders = [folder for folder in os.get_exec_path() if not any(Path(folder).glob("kubectl-*"))]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    for name, value in kubectl_transcripts.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(kubectl_transcripts.MANIFESTS)
    run = Runner(monkeypatch)
    run("create", "namespace", namespace)
    different = []
    folder, here = str(tmp_path), str(kubectl_transcripts.MANIFESTS)
    for entry in kubectl_transcripts.load(path):
        stdout, stderr, code = run(*(word.replace("$TMP", folder) for word in shlex.split(entry.command)[1:]))
        texts = [text.replace(folder, "$TMP").replace(here, "$HERE") for text in (stdout, stderr)]
        found = [kubectl_transcripts.normalized(text) for text in texts]
        wanted = [kubectl_transcripts.normalized(text) for text in (entry.stdout, entry.stderr)]
        if (found, code) != (wanted, entry.code):
            different.append(
                f"$ {entry.command}\n--- expected {entry.code}\n{''.join(wanted)}--- found {code}\n{''.join(found)}"
            )
    assert not different, "\n".join(different)
