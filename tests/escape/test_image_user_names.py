"""A name in an image's /etc/passwd that is the number of a user, or whose own numbers are none.

Vector: `runAsUser: 1000` where the image names its root "1000".
"""

from __future__ import annotations

import tarfile

import pytest
from escape.images import entry, image, who
from escape.pods import Pod
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError


@ours
def test_a_user_by_number_is_no_user_by_name(machine: Machine) -> None:
    passwd = entry("etc/passwd", text="1000:x:0:0::/:/bin/sh\nlost:x:5:4294967295::/:/bin/sh\n")
    name = image(machine, [entry("etc", tarfile.DIRTYPE), passwd], User="1000")
    with Pod(machine) as pod:
        assert who(pod, name).split() == ["1000", "0"]
        linux = cri.LinuxContainerConfig(security_context={"run_as_user": {"value": 1000}})
        assert who(pod, name, linux=linux).split() == ["1000", "0"]
        lost = image(machine, [entry("etc", tarfile.DIRTYPE), passwd], User="lost")
        assert who(pod, lost) == ""


@ours
def test_a_passwd_file_that_never_ends_holds_nothing_up(machine: Machine) -> None:
    name = image(machine, [entry("etc", tarfile.DIRTYPE), entry("etc/passwd", tarfile.FIFOTYPE)], User="somebody")
    with Pod(machine) as pod, pytest.raises(CRIError):
        pod.sleeper(image=name)
