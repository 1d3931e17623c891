"""`kubectl describe` prints what upstream's kubectl v1.36.4 printed of objects that have nearly every field."""

from __future__ import annotations

import time
from pathlib import Path

import kubectl_static
import pytest
from kubectl_transcripts import normalized

from pybernetes.kubectl import main as kubectl

FILES = sorted(kubectl_static.FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_descriptions_are_upstreams(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for obj, wanted in kubectl_static.load(path):
        with kubectl_static.serve([obj]) as server:
            resource, name = kubectl_static.resource_of(obj).fullname, obj["metadata"]["name"]
            code = kubectl.main([f"--server={server}", "--namespace=ns", "describe", resource, name])
        captured = capsys.readouterr()
        assert (code, captured.err) == (0, "")
        assert normalized(captured.out) == normalized(wanted)
