"""`pyb bench`: a ratio only where both servers ran, ranges beside medians, and no package that a run does not have."""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import importlib.util
import re
import statistics
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tools

BENCH = tools.ROOT / "bench"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """bench/api.py; not as `api`, which is a folder of tests."""
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_api", BENCH / "api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rounds(api: ModuleType, monkeypatch: pytest.MonkeyPatch, **values: list[float]) -> list[str]:
    """Makes each side answer these figures in turn; answers the order in which the sides ran."""
    ran: list[str] = []

    def one_round(side: Any, folder: Path, options: Any) -> Any:
        name = side.title.split()[0]
        ran.append(name)
        return {"GET pod": api.Figure(values[name][ran.count(name) - 1], "req/s")}, [f"--flag-of-{name}"]

    monkeypatch.setattr(api, "one_round", one_round)
    return ran


def test_without_another_server_there_are_medians_and_ranges_and_no_ratio(
    api: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds(api, monkeypatch, ours=[100.0, 500.0, 300.0, 200.0, 400.0])
    report = api.Report("api")
    sides = {"ours": api.Side("ours with SQLite", "sqlite", (), "etcd")}
    api.compare(report, "sqlite", sides, argparse.Namespace(rounds=5))
    shown = capsys.readouterr().out
    assert "== ours with SQLite; 5 rounds each, in turn" in shown
    assert "ours with SQLite: --flag-of-ours" in shown
    assert re.search(r"sqlite: GET pod +300 req/s +\(100-500\)\n", shown)
    assert "ratio" not in shown
    assert "upstream" not in shown


def test_beside_another_server_both_run_in_turn_and_the_ratio_is_of_the_medians(
    api: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = [100.0, 400.0, 300.0], [100.0, 100.0, 200.0]
    ran = rounds(api, monkeypatch, ours=ours, theirs=theirs)
    report = api.Report("api")
    sides = {
        "ours": api.Side("ours with SQLite", "sqlite", (), "etcd"),
        "theirs": api.Side("theirs with etcd", "etcd", (), "etcd"),
    }
    api.compare(report, "sqlite", sides, argparse.Namespace(rounds=3))
    assert ran == ["ours", "theirs"] * 3
    shown = capsys.readouterr().out
    assert "== ours with SQLite, theirs with etcd; 3 rounds each, in turn" in shown
    assert "theirs with etcd: --flag-of-theirs" in shown
    assert "(100-400)  theirs 100 (100-200)  ratio 3.00 (1.00-4.00)" in shown
    assert report.rows["sqlite: GET pod, ratio"] == statistics.median(ours) / statistics.median(theirs)


def test_a_folder_without_the_programs_is_one_line(api: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--beside: no program kube-apiserver in "):
        api.main(["--beside", str(tmp_path)])


@pytest.mark.parametrize(("text", "value"), [("310.00us", 0.31), ("1.50ms", 1.5), ("1.02s", 1020.0), ("1.00m", 60e3)])
def test_latencies_have_one_unit(api: ModuleType, text: str, value: float) -> None:
    assert api.milliseconds(text) == pytest.approx(value)


def test_benchmarks_use_only_what_a_run_installs() -> None:
    """`./pyb bench` on a fresh checkout must not end in ModuleNotFoundError."""
    installed = set(re.findall("^([a-z0-9-]+)==", (tools.ROOT / "requirements/run.txt").read_text(), re.M))
    owners = importlib.metadata.packages_distributions()
    for path in BENCH.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in {each.split(".")[0] for each in names}:
                if name in sys.stdlib_module_names or name == "pybernetes" or (BENCH / f"{name}.py").exists():
                    continue
                assert installed & {each.lower() for each in owners.get(name, ())}, f"{path.name} imports {name}"
