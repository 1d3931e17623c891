"""What the runtime is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import (
    Container,
    ContainerPort,
    EnvVar,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodSecurityContext,
    PodSpec,
    ResourceRequirements,
    SecurityContext,
    Sysctl,
    VolumeDevice,
    VolumeMount,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.cri import v1 as cri
from pybernetes.kubelet.cgroups.container import ContainerSettings
from pybernetes.kubelet.container.config import ConfigBuilder, ContainerExtras, ImageUser, Settings
from pybernetes.kubelet.container.config_error import ConfigError
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.volumes.base import MountedVolume, Volumes

Events = list[tuple[str, str]]


def _pod(container: Container, **spec: Any) -> Pod:
    metadata = ObjectMeta(name="web", namespace="shop", uid="u1", labels={"app": "web"}, annotations={"note": "x"})
    spec.setdefault("dns_policy", "Default")
    return Pod(metadata=metadata, spec=PodSpec(containers=[container], termination_grace_period_seconds=30, **spec))


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def builder(tmp_path: Path, events: Events) -> ConfigBuilder:
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    settings = Settings(
        ContainerSettings(memory_capacity=1 << 34),
        resolv_conf=str(tmp_path / "resolv.conf"),
        pod_logs_dir=tmp_path / "logs",
    )
    return ConfigBuilder(
        tmp_path / "kubelet",
        NodeFacts("node-1"),
        settings,
        None,
        list,
        lambda pod, type, reason, message: events.append((reason, message)),
    )


async def _config(
    builder: ConfigBuilder, pod: Pod, volumes: Volumes | None = None, extras: ContainerExtras | None = None
) -> Any:
    assert pod.spec is not None
    assert pod.spec.containers
    return await builder.container(
        pod,
        pod.spec.containers[0],
        restart_count=2,
        hash="abc",
        image_ref="sha256:1",
        image_user=ImageUser(0),
        pod_ips=["10.0.0.7"],
        volumes=volumes or {},
        extras=extras,
    )


def _text(path: str) -> str:
    return Path(path).read_text()


def _mode(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


async def test_a_sandbox(builder: ConfigBuilder, tmp_path: Path) -> None:
    pod = _pod(
        Container(
            name="main",
            ports=[
                ContainerPort(name="http", container_port=80, host_port=8080, protocol="TCP", host_ip="127.0.0.1"),
                ContainerPort(container_port=53, protocol="UDP"),
                ContainerPort(container_port=53, protocol="UDP"),
            ],
            resources=ResourceRequirements(limits={"cpu": "1", "memory": "64Mi"}, requests={"cpu": "500m"}),
        ),
        security_context=PodSecurityContext(sysctls=[Sysctl(name="net.core.somaxconn", value="9")]),
    )
    found = await builder.sandbox(pod, 3, cgroup_parent="/kubepods/burstable/podu1")
    metadata = found.metadata
    assert (metadata.name, metadata.namespace, metadata.uid, metadata.attempt) == ("web", "shop", "u1", 3)
    assert dict(found.labels) == {
        "app": "web",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": "u1",
    }
    assert dict(found.annotations) == {"note": "x"}
    assert found.hostname == "web"
    assert list(found.dns_config.servers) == ["192.0.2.53"]
    assert found.log_directory == str(tmp_path / "logs" / "shop_web_u1")
    assert (tmp_path / "logs" / "shop_web_u1").is_dir()
    assert [(each.host_port, each.container_port, each.protocol, each.host_ip) for each in found.port_mappings] == [
        (8080, 80, cri.TCP, "127.0.0.1"),
        (0, 53, cri.UDP, ""),
    ]
    assert found.linux.cgroup_parent == "/kubepods/burstable/podu1"
    assert dict(found.linux.sysctls) == {"net.core.somaxconn": "9"}
    assert found.linux.resources.memory_limit_in_bytes == 64 << 20
    assert found.linux.resources.cpu_shares == 512


async def test_on_the_hosts_network_a_sandbox_has_no_name_of_its_own(builder: ConfigBuilder) -> None:
    found = await builder.sandbox(_pod(Container(name="main"), host_network=True), 0, cgroup_parent="/")
    assert found.hostname == ""


async def test_a_sandbox_that_cannot_be_named_is_refused(builder: ConfigBuilder) -> None:
    with pytest.raises(ConfigError, match="is not a valid DNS label"):
        await builder.sandbox(_pod(Container(name="main"), hostname="A_b"), 0, cgroup_parent="/")


async def test_a_container(builder: ConfigBuilder, tmp_path: Path) -> None:
    pod = _pod(
        Container(
            name="main",
            image="busybox",
            command=["$(SHELL)", "$(NO)"],
            args=["$(GREETING)", "$$(GREETING)"],
            env=[EnvVar(name="GREETING", value="hello"), EnvVar(name="SHELL", value="sh")],
            working_dir="/srv",
            stdin=True,
            tty=True,
            ports=[ContainerPort(container_port=80)],
            lifecycle=Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=["true"])), stop_signal="SIGRTMIN+3"),
            termination_message_path="/dev/termination-log",
            termination_message_policy="File",
            resources=ResourceRequirements(limits={"cpu": "100m"}),
        )
    )
    found = await _config(builder, pod)
    assert (found.metadata.name, found.metadata.attempt) == ("main", 2)
    assert (found.image.image, found.image.user_specified_image) == ("sha256:1", "busybox")
    assert list(found.command) == ["sh", "$(NO)"]
    assert list(found.args) == ["hello", "$(GREETING)"]
    assert {each.key: each.value for each in found.envs} == {"GREETING": b"hello", "SHELL": b"sh"}
    assert (found.working_dir, found.stdin, found.stdin_once, found.tty) == ("/srv", True, False, True)
    assert found.log_path == "main/2.log"
    assert (tmp_path / "logs" / "shop_web_u1" / "main").is_dir()
    assert found.stop_signal == cri.SIGRTMINPLUS3
    assert dict(found.labels)["io.kubernetes.container.name"] == "main"
    assert dict(found.annotations) == {
        "io.kubernetes.container.hash": "abc",
        "io.kubernetes.container.restartCount": "2",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "File",
        "io.kubernetes.pod.terminationGracePeriod": "30",
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["true"]}}',
        "io.kubernetes.container.ports": '[{"containerPort":80}]',
    }
    assert found.linux.resources.cpu_quota == 10_000
    hosts, message = found.mounts
    assert hosts.container_path == "/etc/hosts"
    assert "10.0.0.7\tweb\n" in _text(hosts.host_path)
    assert message.container_path == "/dev/termination-log"
    assert Path(message.host_path).parent == tmp_path / "kubelet" / "pods" / "u1" / "containers" / "main"
    assert _mode(message.host_path) == 0o666


@pytest.mark.parametrize("text", ["$(LONG)$(LONG)", "x" * 131_072])
async def test_an_argument_that_the_kernel_would_not_take_is_refused(builder: ConfigBuilder, text: str) -> None:
    env = [EnvVar(name="LONG", value="x" * 100_000)]
    with pytest.raises(ConfigError, match=r"^command\[1\]: "):
        await _config(builder, _pod(Container(name="main", command=["sh", text], env=env)))
    with pytest.raises(ConfigError, match=r"^args\[0\]: "):
        await _config(builder, _pod(Container(name="main", args=[text], env=env)))


async def test_a_mount_is_recursively_read_only_once_the_runtime_says_that_it_can(
    builder: ConfigBuilder, tmp_path: Path
) -> None:
    mount = VolumeMount(name="data", mount_path="/x", read_only=True, recursive_read_only="Enabled")
    builder._settings.recursive_read_only = lambda: True
    found = await _config(
        builder,
        _pod(Container(name="main", volume_mounts=[mount])),
        volumes={"data": MountedVolume("data", tmp_path)},
    )
    assert [each.recursive_read_only for each in found.mounts if each.container_path == "/x"] == [True]


async def test_volumes_become_mounts(builder: ConfigBuilder, tmp_path: Path) -> None:
    mounts = [
        VolumeMount(name="data", mount_path="/data", mount_propagation="Bidirectional"),
        VolumeMount(name="data", mount_path="ro", read_only=True),
        VolumeMount(name="config", mount_path="/config", mount_propagation="HostToContainer"),
        VolumeMount(name="image", mount_path="/image", sub_path="a/b"),
        VolumeMount(name="data", mount_path="/etc/hosts"),
    ]
    volumes = {
        "data": MountedVolume("data", tmp_path / "data"),
        "config": MountedVolume("config", tmp_path / "config", read_only=True),
        "image": MountedVolume("image", Path(), read_only=True, image="busybox"),
    }
    found = (await _config(builder, _pod(Container(name="main", volume_mounts=mounts)), volumes)).mounts
    assert [(each.container_path, each.host_path, each.readonly, each.propagation) for each in found] == [
        ("/data", str(tmp_path / "data"), False, cri.PROPAGATION_BIDIRECTIONAL),
        ("/ro", str(tmp_path / "data"), True, cri.PROPAGATION_PRIVATE),
        ("/config", str(tmp_path / "config"), True, cri.PROPAGATION_HOST_TO_CONTAINER),
        ("/image", "", True, cri.PROPAGATION_PRIVATE),
        ("/etc/hosts", str(tmp_path / "data"), False, cri.PROPAGATION_PRIVATE),
    ]
    assert (found[3].image.image, found[3].image_sub_path) == ("busybox", "a/b")


@pytest.mark.parametrize(
    ("mount", "message"),
    [
        (VolumeMount(name="no", mount_path="/x"), 'cannot find volume "no" to mount into container "main"'),
        (VolumeMount(name="disk", mount_path="/x"), 'cannot find volume "disk" to mount into container "main"'),
        (
            VolumeMount(name="data", mount_path="/x", sub_path_expr="$(ABSOLUTE)"),
            "error SubPath `/tmp` must not be an absolute path",
        ),
        (
            VolumeMount(name="data", mount_path="/x", sub_path_expr="$(UP)/x"),
            "unable to provision SubPath `../x`: must not contain '..'",
        ),
        (VolumeMount(name="data", mount_path="/x", sub_path_expr="$(NO)"), "missing value for NO"),
        (
            VolumeMount(name="data", mount_path="/x", sub_path="a\0b"),
            'failed to prepare subPath for volumeMount "data" of container "main"',
        ),
        (VolumeMount(name="data", mount_path="/x", mount_propagation="Odd"), 'invalid MountPropagation mode: "Odd"'),
        (
            VolumeMount(name="data", mount_path="/x", read_only=True, recursive_read_only="Enabled"),
            'failed to resolve recursive read-only mode: volume "data" requested recursive read-only mode, but it is'
            " not supported by the runtime",
        ),
    ],
)
async def test_what_cannot_be_mounted(builder: ConfigBuilder, tmp_path: Path, mount: VolumeMount, message: str) -> None:
    env = [EnvVar(name="ABSOLUTE", value="/tmp"), EnvVar(name="UP", value="..")]
    volumes = {
        "data": MountedVolume("data", tmp_path),
        "disk": MountedVolume("disk", Path("/dev/loop0"), device=True),
    }
    with pytest.raises(ConfigError) as caught:
        await _config(builder, _pod(Container(name="main", env=env, volume_mounts=[mount])), volumes)
    assert str(caught.value) == message


async def test_block_devices_and_what_plugins_add(builder: ConfigBuilder) -> None:
    devices = [VolumeDevice(name="disk", device_path="/dev/x")]
    volumes = {"disk": MountedVolume("disk", Path("/dev/loop0"), read_only=True, device=True)}
    extras = ContainerExtras(
        devices=[cri.Device(container_path="/dev/gpu", host_path="/dev/gpu0", permissions="rw")],
        mounts=[cri.Mount(container_path="/lib/gpu", host_path="/opt/gpu")],
        envs={"GPU": "0", "A": "plugin"},
        annotations={"gpu": "yes", "io.kubernetes.container.hash": "no"},
        cdi_devices=["vendor.com/gpu=0"],
        cpuset_cpus="1",
    )
    pod = _pod(Container(name="main", volume_devices=devices, env=[EnvVar(name="A", value="own-$(GPU)")]))
    found = await _config(builder, pod, volumes, extras)
    assert [(each.container_path, each.host_path, each.permissions) for each in found.devices] == [
        ("/dev/gpu", "/dev/gpu0", "rw"),
        ("/dev/x", "/dev/loop0", "r"),
    ]
    assert found.mounts[0].container_path == "/lib/gpu"
    assert {each.key: each.value for each in found.envs} == {"GPU": b"0", "A": b"own-$(GPU)"}
    assert found.annotations["gpu"] == "yes"
    assert found.annotations["io.kubernetes.container.hash"] == "abc"
    assert found.CDI_devices[0].name == "vendor.com/gpu=0"
    assert found.linux.resources.cpuset_cpus == "1"


async def test_root_is_refused_before_anything_is_created(builder: ConfigBuilder, tmp_path: Path) -> None:
    pod = _pod(Container(name="main", security_context=SecurityContext(run_as_non_root=True)))
    with pytest.raises(ConfigError, match="image will run as root"):
        await _config(builder, pod)
    assert not (tmp_path / "kubelet").exists()
