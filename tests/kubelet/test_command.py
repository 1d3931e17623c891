"""`pyb kubelet` reports an error in its flags in one line, and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybernetes.kubelet.command import main

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--config={folder}/none"], "No such file or directory"),
        (["--config={folder}/bad.yaml"], "cgroupDriver = 'systemd' is not supported"),
        (["--config={folder}/good.yaml", "--config-dir={folder}/conf.d"], "20.conf: no kind"),
        (["--config-dir={folder}/conf.d"], "--config-dir needs --config"),
        (["--kubeconfig={folder}/none"], "cannot read the kubeconfig"),
        (["--bootstrap-kubeconfig={folder}/none"], "--bootstrap-kubeconfig needs --kubeconfig"),
    ],
)
def test_errors_are_reported(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    (tmp_path / "bad.yaml").write_text(HEAD + "cgroupDriver: systemd\n")
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "10.conf").write_text(HEAD + "maxPods: 5\n")
    (tmp_path / "conf.d" / "20.conf").write_text("kind: Nonsense\n")
    assert main([each.format(folder=tmp_path) for each in flags]) == 1
    told = capsys.readouterr().err
    assert words in told
    assert told.startswith("pyb kubelet: ")
    assert told.count("\n") == 1


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    script = (
        "import resource; from pybernetes.kubelet.command import raise_open_files;"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1];"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)); raise_open_files(1_000_000);"
        "soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]; assert soft >= min(hard, 1_000_000), soft"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
