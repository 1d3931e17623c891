"""Users of an image that are beyond the largest number, negative, or in other scripts' digits.

Vector: CVE-2024-40635 (4294967295 and above became root).
"""

from __future__ import annotations

import pytest
from escape.images import image, who
from escape.pods import Pod
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri

USERS = ("4294967295", "4294967296", "18446744073709551616", "-1", "+0", "0x0", "\u0660", "nobody:4294967295", " 0")


@ours
@pytest.mark.parametrize("user", USERS)
def test_a_user_that_is_no_number_of_a_user_is_not_root(machine: Machine, user: str) -> None:
    name = image(machine, User=user)
    with Pod(machine) as pod:
        assert who(pod, name).split()[:1] != ["0"]
        images = pod._call(lambda runtime: runtime.list_images(cri.ListImagesRequest())).images
    assert any(name in each.repo_tags for each in images)
