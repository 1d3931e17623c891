"""What `pyb status` says in one line."""

from __future__ import annotations

import pytest

from pybernetes.cluster.commands.status import _table


def status(running: dict[str, bool], *, ready: bool = True) -> dict[str, object]:
    """A cluster of these processes."""
    components = [
        {"name": name, "running": runs, "pid": 1, "uptimeSeconds": 1.0, "rssBytes": 1, "restarts": 0}
        for name, runs in running.items()
    ]
    whole = all(runs for name, runs in running.items() if name != "supervisor")
    facts = {"server": "https://127.0.0.1:1", "store": "sqlite", "context": "pyb", "dataDir": "/d"}
    return {
        "name": "c",
        "running": whole,
        "supervised": running["supervisor"],
        "ready": whole and ready,
        "nodes": [],
        "differences": (),
        "components": components,
        **facts,
    }


@pytest.mark.parametrize(
    ("running", "ready", "says"),
    [
        ({"supervisor": True, "apiserver": True}, True, "ready"),
        ({"supervisor": True, "apiserver": True}, False, "running, not ready"),
        ({"supervisor": False, "apiserver": False}, False, "not running"),
        (
            {"supervisor": False, "apiserver": True},
            True,
            "ready, without its supervisor; `pyb up --name c` gives it a new one",
        ),
        (
            {"supervisor": True, "apiserver": True, "controller-manager": False},
            False,
            "running, without controller-manager",
        ),
    ],
)
def test_one_process_that_does_not_run_is_named_and_the_others_are_shown(
    running: dict[str, bool], ready: bool, says: str
) -> None:
    first, *rest = _table(status(running, ready=ready)).splitlines()
    assert first == f"Cluster 'c': {says}"
    assert any(line.startswith("apiserver") for line in rest) == running["apiserver"]
