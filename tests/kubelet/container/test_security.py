"""Security contexts, kernel parameters and AppArmor: what containers run as, and which pods a node refuses."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.core.v1 import (
    AppArmorProfile,
    Capabilities,
    Container,
    Pod,
    PodSecurityContext,
    PodSpec,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
    Sysctl,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.cri import v1 as cri
from pybernetes.kubelet.container import apparmor, security
from pybernetes.kubelet.container.config_error import ConfigError
from pybernetes.kubelet.container.sysctls import SysctlAdmission, SysctlPatternError, normalize
from pybernetes.kubelet.pod.refusal import PodRefused


def _pod(own: SecurityContext | None = None, of_pod: PodSecurityContext | None = None, **spec: Any) -> Pod:
    annotations = spec.pop("annotations", None)
    return Pod(
        metadata=ObjectMeta(name="web", namespace="shop", uid="u1", annotations=annotations),
        spec=PodSpec(containers=[Container(name="main", security_context=own)], security_context=of_pod, **spec),
    )


def _container(pod: Pod) -> Container:
    assert pod.spec is not None
    assert pod.spec.containers
    return pod.spec.containers[0]


def _context(pod: Pod, *, uid: int | None = 0, user: str = "", default: bool = False, target: str = "") -> Any:
    return security.container_security(
        pod,
        _container(pod),
        image_uid=uid,
        image_user=user,
        seccomp_root="/var/lib/kubelet/seccomp",
        seccomp_default=default,
        target_id=target,
    )


def test_the_containers_fields_go_before_the_pods() -> None:
    of_pod = PodSecurityContext(
        run_as_user=1, run_as_group=2, run_as_non_root=True, se_linux_options=SELinuxOptions(level="s0")
    )
    own = SecurityContext(run_as_user=0, run_as_non_root=False)
    found = security.effective(_pod(own, of_pod), _container(_pod(own, of_pod)))
    assert (found.run_as_user, found.run_as_group, found.run_as_non_root) == (0, 2, False)
    assert found.se_linux_options == SELinuxOptions(level="s0")


@pytest.mark.parametrize(
    ("own", "uid", "user", "message"),
    [
        (
            SecurityContext(run_as_non_root=True, run_as_user=0),
            None,
            "",
            "container's runAsUser breaks non-root policy",
        ),
        (SecurityContext(run_as_non_root=True, run_as_user=7), 0, "", None),
        (SecurityContext(run_as_non_root=True), 0, "", "container has runAsNonRoot and image will run as root"),
        (SecurityContext(run_as_non_root=True), 7, "", None),
        (
            SecurityContext(run_as_non_root=True),
            None,
            "web",
            "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root",
        ),
        (
            SecurityContext(run_as_non_root=True),
            -1,
            "",
            "container has runAsNonRoot and image has an invalid user id (-1). (Must be 1-(2147483647)): must be"
            " between 0 and 2147483647, inclusive",
        ),
        (SecurityContext(run_as_non_root=False), 0, "", None),
        (None, 0, "", None),
    ],
)
def test_who_must_not_be_root_is_not(
    own: SecurityContext | None, uid: int | None, user: str, message: str | None
) -> None:
    pod = _pod(own)
    if message is None:
        security.verify_non_root(pod, _container(pod), uid, user)
        return
    with pytest.raises(ConfigError) as caught:
        security.verify_non_root(pod, _container(pod), uid, user)
    assert str(caught.value) == f'{message} (pod: "web_shop(u1)", container: main)'


def test_users_and_groups() -> None:
    of_pod = PodSecurityContext(fs_group=5, supplemental_groups=[6, 7], run_as_group=8)
    found = _context(_pod(SecurityContext(run_as_user=3), of_pod))
    assert found.run_as_user.value == 3
    assert found.run_as_group.value == 8
    assert list(found.supplemental_groups) == [5, 6, 7]
    assert _context(_pod(), uid=9).run_as_user.value == 9
    named = _context(_pod(), uid=None, user="web")
    assert not named.HasField("run_as_user")
    assert named.run_as_username == "web"
    strict = _context(_pod(of_pod=PodSecurityContext(supplemental_groups_policy="Strict")))
    assert strict.supplemental_groups_policy == cri.Strict


def test_privileges() -> None:
    plain = _context(_pod())
    assert not plain.privileged
    assert not plain.no_new_privs
    assert not plain.readonly_rootfs
    assert "/proc/kcore" in plain.masked_paths
    assert "/proc/sys" in plain.readonly_paths
    found = _context(
        _pod(
            SecurityContext(
                privileged=True,
                allow_privilege_escalation=False,
                read_only_root_filesystem=True,
                proc_mount="Unmasked",
                capabilities=Capabilities(add=["NET_ADMIN"], drop=["ALL"]),
            )
        )
    )
    assert found.privileged
    assert found.no_new_privs
    assert found.readonly_rootfs
    assert not found.masked_paths
    assert not found.readonly_paths
    assert list(found.capabilities.add_capabilities) == ["NET_ADMIN"]
    assert list(found.capabilities.drop_capabilities) == ["ALL"]


@pytest.mark.parametrize(
    ("own", "of_pod", "default", "kind", "path"),
    [
        (None, None, False, "Unconfined", ""),
        (None, None, True, "RuntimeDefault", ""),
        (SeccompProfile(type="RuntimeDefault"), None, False, "RuntimeDefault", ""),
        (SeccompProfile(type="Unconfined"), SeccompProfile(type="RuntimeDefault"), True, "Unconfined", ""),
        (None, SeccompProfile(type="RuntimeDefault"), False, "RuntimeDefault", ""),
        (
            SeccompProfile(type="Localhost", localhost_profile="a/b.json"),
            None,
            False,
            "Localhost",
            "/var/lib/kubelet/seccomp/a/b.json",
        ),
    ],
)
def test_seccomp(own: SeccompProfile, of_pod: SeccompProfile, default: bool, kind: str, path: str) -> None:
    pod = _pod(SecurityContext(seccomp_profile=own), PodSecurityContext(seccomp_profile=of_pod))
    found = _context(pod, default=default).seccomp
    assert found.profile_type == cri.SecurityProfile.ProfileType.Value(kind)
    assert found.localhost_ref == path


def test_a_localhost_profile_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="localhostProfile must be set"):
        _context(_pod(SecurityContext(seccomp_profile=SeccompProfile(type="Localhost"))))


def test_namespaces() -> None:
    found = security.namespaces(_pod())
    assert (found.network, found.ipc, found.pid) == (cri.POD, cri.POD, cri.CONTAINER)
    found = security.namespaces(_pod(host_network=True, host_ipc=True, host_pid=True))
    assert (found.network, found.ipc, found.pid) == (cri.NODE, cri.NODE, cri.NODE)
    assert security.namespaces(_pod(share_process_namespace=True)).pid == cri.POD
    target = security.namespaces(_pod(), "c1")
    assert (target.pid, target.target_id) == (cri.TARGET, "c1")
    assert security.namespaces(_pod(share_process_namespace=True), "c1").pid == cri.POD
    with pytest.raises(ConfigError, match="runtime does not support user namespaces"):
        security.namespaces(_pod(host_users=False))


def test_a_sandbox_is_privileged_for_a_privileged_container_and_confined_by_seccomp() -> None:
    found = security.sandbox_security(
        _pod(SecurityContext(privileged=True), PodSecurityContext(run_as_user=1, run_as_group=2, fs_group=3))
    )
    assert found.privileged
    assert found.HasField("seccomp")
    assert found.seccomp.profile_type == cri.SecurityProfile.RuntimeDefault
    assert (found.run_as_user.value, found.run_as_group.value, list(found.supplemental_groups)) == (1, 2, [3])


def _sysctls(*names: str, **spec: Any) -> Pod:
    return _pod(of_pod=PodSecurityContext(sysctls=[Sysctl(name=name, value="1") for name in names]), **spec)


@pytest.mark.parametrize(
    ("pod", "allowed", "message"),
    [
        (_sysctls("kernel.shm_rmid_forced", "net.ipv4.tcp_rmem"), (), None),
        (_sysctls("net/ipv4/tcp_rmem"), (), None),
        (_sysctls("kernel.msgmax"), (), 'forbidden sysctl: "kernel.msgmax" not allowlisted'),
        (_sysctls("kernel.msgmax"), ("kernel.msg*",), None),
        (_sysctls("net.core.somaxconn"), ("net.*",), None),
        (_sysctls("net.core.somaxconn"), ("net.core.somaxconn",), None),
        (
            _sysctls("net.ipv4.tcp_rmem", host_network=True),
            (),
            'forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host Net enabled',
        ),
        (
            _sysctls("kernel.shm_rmid_forced", host_ipc=True),
            (),
            'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
        ),
        (_pod(), (), None),
    ],
)
def test_sysctls(pod: Pod, allowed: tuple[str, ...], message: str | None) -> None:
    admission = SysctlAdmission(allowed, "6.1.0-18-amd64")
    if message is None:
        admission.admit(pod)
        return
    with pytest.raises(PodRefused) as caught:
        admission.admit(pod)
    assert (caught.value.reason, caught.value.message) == ("SysctlForbidden", message)


def test_on_an_old_kernel_less_is_safe() -> None:
    SysctlAdmission(release="4.14.1").admit(_sysctls("net.ipv4.tcp_fin_timeout"))
    with pytest.raises(PodRefused):
        SysctlAdmission(release="4.14.1").admit(_sysctls("net.ipv4.tcp_rmem"))


def test_a_parameter_of_the_whole_machine_cannot_be_allowed() -> None:
    with pytest.raises(SysctlPatternError, match=r'the sysctls "vm.swappiness" are not known to be namespaced'):
        SysctlAdmission(("vm.swappiness",))


def test_dots_and_slashes_change_places() -> None:
    assert normalize("net/ipv4/conf/eth0.1/rp_filter") == "net.ipv4.conf.eth0/1.rp_filter"
    assert normalize("net.ipv4.conf.eth0/1.rp_filter") == "net.ipv4.conf.eth0/1.rp_filter"


def test_apparmor_is_refused_where_the_kernel_has_none() -> None:
    wants = _pod(SecurityContext(app_armor_profile=AppArmorProfile(type="RuntimeDefault")))
    with pytest.raises(PodRefused) as caught:
        apparmor.admit(wants, enabled=False)
    assert caught.value.reason == "AppArmor"
    assert caught.value.message == "Cannot enforce AppArmor: AppArmor is not enabled on the host"
    apparmor.admit(wants, enabled=True)
    apparmor.admit(_pod(), enabled=False)
    apparmor.admit(_pod(of_pod=PodSecurityContext(app_armor_profile=AppArmorProfile(type="Unconfined"))), enabled=False)
    old = _pod(annotations={"container.apparmor.security.beta.kubernetes.io/main": "localhost/x"})
    with pytest.raises(PodRefused):
        apparmor.admit(old, enabled=False)


def test_apparmor_profiles_are_set_in_both_fields() -> None:
    own = _context(_pod(SecurityContext(app_armor_profile=AppArmorProfile(type="Localhost", localhost_profile="x"))))
    assert (own.apparmor.profile_type, own.apparmor.localhost_ref) == (cri.SecurityProfile.Localhost, "x")
    assert own.apparmor_profile == "localhost/x"
    of_pod = _context(_pod(of_pod=PodSecurityContext(app_armor_profile=AppArmorProfile(type="Unconfined"))))
    assert of_pod.apparmor_profile == "unconfined"
    old = _pod(annotations={"container.apparmor.security.beta.kubernetes.io/main": "runtime/default"})
    assert _context(old).apparmor_profile == "runtime/default"
    assert not _context(_pod()).HasField("apparmor")
