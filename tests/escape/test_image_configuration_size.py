"""Configurations of images that are huge or odd: the runtime answers, refuses in words, and serves others.

Vectors: CVE-2023-25153 (import without a limit), environments and commands beyond what the kernel takes, thousands of
volumes, labels of a megabyte, words that are none.
"""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from escape.conftest import Inside
from escape.images import image
from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri.errors import CRIError

ODD: dict[str, dict[str, Any]] = {
    "huge_environment": {"Env": [f"A{n}={'x' * 1000}" for n in range(4000)]},
    "one_long_variable": {"Env": ["A=" + "x" * (3 << 20)]},
    "variables_that_are_none": {"Env": ["", "=", "=x", "A", "A=\0b", "PATH=\0"]},
    "long_command": {"Cmd": ["sleep", "1000", "x" * (3 << 20)]},
    "many_words": {"Cmd": ["sleep", *["1000"] * 100_000]},
    "no_word": {"Cmd": [""]},
    "null_in_a_word": {"Cmd": ["sleep\0", "1000"]},
    "entry_is_a_folder": {"Entrypoint": ["/"]},
    "long_folder": {"WorkingDir": "/" + "x" * 5000},
    "deep_folder": {"WorkingDir": "/x" * 2000},
    "null_in_the_folder": {"WorkingDir": "/x\0y"},
    "long_user": {"User": "x" * (1 << 20)},
    "many_volumes": {"Volumes": {f"/v{n}": {} for n in range(500)}},
    "volume_at_the_root": {"Volumes": {"/": {}, "": {}, ".": {}, "//": {}}},
    "long_volume": {"Volumes": {"/" + "x" * 5000: {}}},
    "null_in_a_volume": {"Volumes": {"/x\0y": {}}},
    "labels": {"Labels": {f"l{n}": "x" * 1000 for n in range(2000)}},
    "stop_signal": {"StopSignal": "SIG" + "9" * 5000},
    "other_types": {"Env": None, "Cmd": None, "Volumes": None, "Labels": None, "ExposedPorts": None},
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_configuration_does_not_affect_others(machine: Machine, inside: Inside, name: str) -> None:
    try:
        made = image(machine, **ODD[name])
    except (CRIError, subprocess.CalledProcessError):
        made = ""
    if made:
        with Pod(machine) as pod:
            try:
                pod.start(image=made)
                said = ""
            except CRIError as error:
                said = error.message
        assert "Traceback" not in said
        assert len(said) < 20_000
    assert inside.sh("echo fine") == (0, "fine\n")
