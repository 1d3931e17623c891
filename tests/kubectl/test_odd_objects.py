"""An object that the API server accepts and that lacks what kubectl shows keeps no other from being shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tools
from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl.commands import describe
from pybernetes.kubectl.describing.description import Description


@pytest.fixture
def volumes(cluster: tools.ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three PersistentVolumes, whose claims lack a namespace and a name, or are empty."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    names = []
    for number, reference in enumerate(({"namespace": "a"}, {"name": "b"}, {"namespace": "a", "name": "b"})):
        name = f"odd-{tmp_path.name.replace('_', '-')}-{number}"
        spec: dict[str, Any] = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},
            "claimRef": reference,
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
        assert kubectl.main(["create", "-f", str(tmp_path / f"{name}.json")]) == 0
        names.append(name)
    return names


def test_a_volume_with_half_a_claim_is_described(volumes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert kubectl.main(["describe", "pv", *volumes]) == 0
    claims = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("Claim:")]
    assert claims == [["Claim:", "a/"], ["Claim:", "/b"], ["Claim:", "a/b"]]


def test_an_object_that_cannot_be_described_does_not_end_the_command(
    volumes: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = describe.describer

    def describer(group: str, kind: str) -> Any:
        def one(this: Description) -> None:
            if this.info.name == volumes[0]:
                raise KeyError("name")
            usual(group, kind)(this)

        return one

    monkeypatch.setattr(describe, "describer", describer)
    capsys.readouterr()
    assert kubectl.main(["describe", "pv", *volumes]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("Claim:") == 2
    assert shown.err == f"error: cannot describe PersistentVolume '{volumes[0]}': unexpected data: KeyError: 'name'\n"
