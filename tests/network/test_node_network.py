"""The network process of a node ends when its client certificate was renewed, to be started with the new one."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from pybernetes.network import node_network


def kubeconfig(folder: Path) -> tuple[Path, Path]:
    certificate, path = folder / "client.crt", folder / "kubeconfig"
    certificate.write_text("first")
    path.write_text(json.dumps({"users": [{"user": {"client-certificate": str(certificate)}}]}))
    return path, certificate


async def test_it_ends_when_the_certificate_was_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_network, "CERTIFICATE_CHECK", 0.01)
    path, certificate = kubeconfig(tmp_path)
    waiting = asyncio.create_task(node_network._until_renewed(str(path)))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    certificate.unlink()  # while it is being replaced it may be missing
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    certificate.write_text("second")
    os.utime(certificate, ns=(1, 1))
    await asyncio.wait_for(waiting, 30)


def test_a_configuration_that_is_wrong_ends_it_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = kubeconfig(tmp_path)
    (tmp_path / "proxy.json").write_text("{}")
    assert node_network.main([f"--kubeconfig={path}", f"--proxy-config={tmp_path / 'proxy.json'}"]) == 1
    assert "Object 'Kind' is missing" in capsys.readouterr().err
