"""What the embedded runtime refuses to do to its node."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.security import refuse_unsupported, sysctl_files, sysctl_path
from pybernetes.cri.errors import CRIError


def test_parameters_of_a_pods_own_namespaces_are_set() -> None:
    wanted = {
        "net.ipv4.ip_unprivileged_port_start": "0",
        "net/ipv4/conf/eth0.1/rp_filter": "1",
        "kernel.shm_rmid_forced": "1",
        "fs.mqueue.msg_max": "20",
    }
    assert sysctl_files(wanted, own_network=True, own_ipc=True) == {
        "net/ipv4/ip_unprivileged_port_start": "0",
        "net/ipv4/conf/eth0.1/rp_filter": "1",
        "kernel/shm_rmid_forced": "1",
        "fs/mqueue/msg_max": "20",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kernel.core_pattern", "is not in a separate kernel namespace"),
        ("vm.overcommit_memory", "is not in a separate kernel namespace"),
        ("fs/mqueue/../file-max", "is not the name of a kernel parameter"),
        ("net.//.kernel.core_pattern", "is not the name of a kernel parameter"),
        ("net/../kernel/core_pattern", "is not the name of a kernel parameter"),
        ("/net/core", "is not the name of a kernel parameter"),
        ("net..core", "is not the name of a kernel parameter"),
        ("", "is not the name of a kernel parameter"),
        ("net", "is not in a separate kernel namespace"),
    ],
)
def test_parameters_of_the_node_are_not(name: str, message: str) -> None:
    with pytest.raises(CRIError, match=f'sysctl "{name}" {message}'):
        sysctl_files({name: "x"}, own_network=True, own_ipc=True)


@pytest.mark.parametrize(("name", "kind"), [("net.core.somaxconn", "network"), ("kernel.shmmax", "ipc")])
def test_parameters_of_namespaces_that_are_shared_with_the_node_are_not(name: str, kind: str) -> None:
    with pytest.raises(CRIError, match=f'sysctl "{name}" is not allowed in the hosts {kind} namespace'):
        sysctl_files({name: "1"}, own_network=False, own_ipc=False)


def test_a_slash_stands_for_a_dot_in_a_name_with_dots() -> None:
    assert sysctl_path("net.ipv4.conf.eth0/1.rp_filter") == "net/ipv4/conf/eth0.1/rp_filter"


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {"apparmor": {"profile_type": 2, "localhost_ref": "mine"}},
            "apparmor is not supported, but mine is specified",
        ),
        ({"apparmor_profile": "localhost/mine"}, "apparmor is not supported, but localhost/mine is specified"),
        ({"namespace_options": {"userns_options": {"mode": 0}}}, "user namespaces are not supported"),
    ],
)
def test_what_would_not_be_done_is_refused(context: dict[str, Any], message: str) -> None:
    with pytest.raises(CRIError, match=message):
        refuse_unsupported(cri.LinuxContainerSecurityContext(**context))


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"apparmor": {"profile_type": 0}, "apparmor_profile": "runtime/default"},
        {"apparmor": {"profile_type": 1}, "apparmor_profile": "unconfined"},
        {"namespace_options": {"userns_options": {"mode": 2}}},
    ],
)
def test_what_is_the_case_anyway_is_not_refused(context: dict[str, Any]) -> None:
    refuse_unsupported(cri.LinuxContainerSecurityContext(**context))


def test_sandboxes_are_looked_at_as_well() -> None:
    refuse_unsupported(cri.LinuxSandboxSecurityContext())
    options = {"userns_options": {"mode": 0}}
    with pytest.raises(CRIError, match="user namespaces are not supported"):
        refuse_unsupported(cri.LinuxSandboxSecurityContext(namespace_options=options))
