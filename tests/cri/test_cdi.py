"""CDI: from specification files to a container's config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cri import cdi
from pybernetes.cri import v1 as cri


def _spec(folder: Path, file: str, name: str = "0", kind: str = "vendor.com/gpu", **edits: Any) -> None:
    folder.mkdir(exist_ok=True)
    found = {"cdiVersion": "0.6.0", "kind": kind, "devices": [{"name": name, "containerEdits": edits}]}
    found["containerEdits"] = {"env": ["ALL=1"]}
    (folder / file).write_text(json.dumps(found))


def test_edits_are_put_into_the_config(tmp_path: Path) -> None:
    _spec(
        tmp_path,
        "a.json",
        env=["PATH=/gpu", "GPU=0"],
        deviceNodes=[{"path": "/dev/gpu"}, {"path": "/dev/ctl", "hostPath": "/dev/null", "permissions": "r"}],
        mounts=[{"hostPath": "/lib/gpu", "containerPath": "/gpu", "options": ["ro", "nosuid", "bind"]}],
        additionalGids=[0, 44],
    )
    (tmp_path / "b.yaml").write_text("kind: vendor.com/net\ndevices:\n- name: x\n  containerEdits: {env: [NET=x]}\n")
    config = cri.ContainerConfig(envs=[cri.KeyValue(key="PATH", value=b"/bin"), cri.KeyValue(key="A", value=b"1")])
    cdi.apply(config, ["vendor.com/gpu=0", "vendor.com/net=x", "vendor.com/gpu=0"], [tmp_path])
    assert [(each.key, each.value) for each in config.envs] == [
        ("A", b"1"),
        ("ALL", b"1"),
        ("PATH", b"/gpu"),
        ("GPU", b"0"),
        ("NET", b"x"),
    ]
    assert [(each.container_path, each.host_path, each.permissions) for each in config.devices] == [
        ("/dev/gpu", "/dev/gpu", "rwm"),
        ("/dev/ctl", "/dev/null", "r"),
    ]
    assert [(each.container_path, each.host_path, each.readonly) for each in config.mounts] == [
        ("/gpu", "/lib/gpu", True)
    ]
    assert list(config.linux.security_context.supplemental_groups) == [44]


def test_the_later_folder_wins_and_a_bad_file_costs_only_its_own_devices(tmp_path: Path) -> None:
    first, second = tmp_path / "etc", tmp_path / "run"
    _spec(first, "a.json", env=["FROM=etc"])
    _spec(second, "a.json", env=["FROM=run"])
    (second / "bad.json").write_text("[" * 100_000)
    (second / "worse.yaml").write_text("kind: 5")
    assert cdi.resolve(["vendor.com/gpu=0"], [first, second]).env["FROM"] == "run"
    _spec(second, "b.json", env=["FROM=elsewhere"])  # the same device twice in a folder is in neither
    assert cdi.resolve(["vendor.com/gpu=0"], [first, second]).env["FROM"] == "etc"


@pytest.mark.parametrize(
    ("name", "edits", "text"),
    [
        ("vendor.com/gpu=1", {}, "unresolvable CDI devices vendor.com/gpu=1"),
        ("gpu", {}, "not of the form"),
        ("vendor.com/gpu=0", {"hooks": [{"path": "/bin/x"}]}, "CDI device vendor.com/gpu=0 needs hooks"),
        ("vendor.com/gpu=0", {"netDevices": [1]}, "needs netDevices"),
        ("vendor.com/gpu=0", {"env": ["X"]}, "env 'X' is not NAME=VALUE"),
        ("vendor.com/gpu=0", {"deviceNodes": [{"path": "dev"}]}, "path 'dev' is not an absolute path"),
        ("vendor.com/gpu=0", {"mounts": [{"containerPath": "/x", "hostPath": "/y", "type": "tmpfs"}]}, "tmpfs"),
        ("vendor.com/gpu=0", {"mounts": 5}, "mounts is not a list of objects"),
        ("vendor.com/gpu=0", {"additionalGids": ["x"]}, "'x' is not a group"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(tmp_path: Path, name: str, edits: dict[str, Any], text: str) -> None:
    _spec(tmp_path, "a.json", **edits)
    config = cri.ContainerConfig()
    with pytest.raises(cdi.CDIError, match=text):
        cdi.apply(config, [name], [tmp_path])
    assert config == cri.ContainerConfig()
