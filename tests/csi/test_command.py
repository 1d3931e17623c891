"""`pyb csi`: what it refuses, in words that name the flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybernetes.csi import command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["liveness", "--csi-address=/x", "--port=99999"], "argument --port: 99999 is no port"),
        (["liveness", "--csi-address=/x", "--probe-timeout=0"], "argument --probe-timeout: 0: more than 0 seconds"),
        (["health-monitor", "--csi-address=/x", "--monitor-interval=nan"], "argument --monitor-interval: nan: more"),
        (["populator", "--pod-template=FILE"], "pyb csi populator: --pod-template FILE: while parsing"),
        (["registrar", "--csi-address=NONE"], "pyb csi registrar: the driver at NONE does not say its name: rpc error"),
    ],
)
def test_bad_words_are_refused_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(command, "DRIVER_WITHIN", 0.05)
    monkeypatch.setattr(command.component, "log_to_stderr", lambda verbosity: None)
    file = tmp_path / "template.yaml"
    file.write_text("{")
    more = {
        "populator": ["--group=g", "--version=v1", "--kind=K", "--plural=ks"],
        "registrar": ["--kubelet-registration-path=/x"],
    }.get(words[0], [])
    replaced = [each.replace("FILE", str(file)).replace("NONE", str(tmp_path / "none")) for each in words]
    try:
        code = command.main([*replaced, *more])
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    shown = capsys.readouterr().err
    assert said.replace("FILE", str(file)).replace("NONE", str(tmp_path / "none")) in shown
    assert "Traceback" not in shown
