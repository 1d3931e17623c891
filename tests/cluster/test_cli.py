"""The table of commands: complete, lazy, and with exit codes a script can use."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

import tools
from pybernetes.cluster import cli
from pybernetes.cluster.commands import bench


def test_help_lists_the_commands_for_users(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    for name in ("up", "down", "status", "kubeconfig", "test", "bench", "apiserver", "version"):
        assert f"\n  {name} " in shown
    assert "supervise" not in shown


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["upp"]) == 2
    assert "unknown command 'upp'" in capsys.readouterr().err


def test_version_names_ours_and_that_of_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("pybernetes ")
    assert "Kubernetes API v1.36" in shown


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig", "test", "bench"])
def test_each_command_explains_itself(command: str) -> None:
    result = subprocess.run([*tools.PYTHON, command, "--help"], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout.startswith(f"usage: pyb {command}")


def test_the_supervisor_imports_nothing_heavy() -> None:
    script = "import sys; from pybernetes.cluster import cli, supervisor; print('\\n'.join(sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.split())
    assert "pybernetes.cluster.supervisor" in loaded
    assert not loaded & {"argparse", "asyncio", "cryptography", "dataclasses", "msgspec", "ssl", "subprocess", "yaml"}


def test_a_module_in_the_users_folder_does_not_shadow_ours(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    result = subprocess.run([*tools.PYTHON, "version"], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_bench_runs_a_file_of_the_bench_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "_shared_by_pyb_tests.py").write_text("SHARED = 5\n")
    (tmp_path / "bench" / "demo_of_pyb_tests.py").write_text(
        "from _shared_by_pyb_tests import SHARED\ndef main(argv):\n    return SHARED + len(argv)\n"
    )
    monkeypatch.setattr(bench, "root", lambda: tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["bench", "demo_of_pyb_tests", "x", "y"]) == 7
    assert cli.main(["bench", "other"]) == 1
    assert "there are: demo_of_pyb_tests\n" in capsys.readouterr().err


def test_a_terminated_benchmark_takes_down_what_it_started(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "demo.py").write_text(
        "import asyncio, os, signal, subprocess\n"
        "def main(argv):\n"
        "    try:\n"
        "        print('begun', flush=True)\n"
        "        asyncio.run(asyncio.sleep(60))\n"
        "    finally:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        print('taken down', flush=True)\n"
    )
    script = (
        "import sys, pathlib; from pybernetes.cluster import cli; from pybernetes.cluster.commands import bench;"
        "bench.root = lambda: pathlib.Path(sys.argv[1]); sys.exit(cli.main(['bench', 'demo']))"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.terminate()
        assert running.stdout.read() == "taken down\n"
    assert running.returncode == 143


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["statsu"], "unknown command 'statsu'; did you mean status?"),
        (["up", "--nods=2"], "unrecognized arguments: --nods=2; did you mean --nodes?"),
        (["up", "--store=sqllite"], "did you mean sqlite?"),
        (["up", "--nodes=two"], "argument --nodes: 'two' is not a number; 0, 1, 2 and so on are"),
        (["up", "--port=70000"], "argument --port: '70000' is not a port"),
        (["node", "stpo", "x"], "did you mean stop?"),
        (["fault"], "the following arguments are required: COMMAND"),
        (["fault", "aply"], "did you mean apply?"),
        (["snapshot"], "the following arguments are required: COMMAND"),
        (["csi"], "the following arguments are required: COMMAND"),
        (["at", "5"], "the following arguments are required: get, resource"),
    ],
)
def test_usage_errors_are_plain_words(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    with contextlib.suppress(SystemExit):
        assert cli.main(words) == 2
    assert message in capsys.readouterr().err
