"""Warnings about pods: the same as if each port and file were compared with each, without doing so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.core.v1 import (
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    KeyToPath,
    Pod,
    PodSpec,
    Volume,
)
from pybernetes.apiserver.strategies.core.pod_warnings import MAX_WARNINGS, pod_warnings

ports = st.builds(
    ContainerPort,
    container_port=st.sampled_from((80, 81)),
    protocol=st.sampled_from(("TCP", "UDP")),
    host_ip=st.sampled_from((None, "10.0.0.1", "10.0.0.2")),
    host_port=st.sampled_from((None, 80, 90)),
)
paths = st.sampled_from(("a", "a/b", "a/b/c", "a/b/", "b", "ab", "a//b", "", "/a", "c/d"))


def warned(spec: PodSpec) -> list[str]:
    return pod_warnings(Pod(spec=spec))


@given(st.lists(ports, max_size=8))
def test_ports_are_warned_of_in_pairs(ports: list[ContainerPort]) -> None:
    expected: list[str] = []
    for index, port in enumerate(ports):
        for number, other in enumerate(ports[:index]):
            if (port.container_port, port.protocol) != (other.container_port, other.protocol):
                continue
            ends = f"port definition with spec.containers[0].ports[{number}]"
            ip, other_ip = port.host_ip or "", other.host_ip or ""
            if (ip, port.host_port) == (other_ip, other.host_port):
                expected.append(f"spec.containers[0].ports[{index}]: duplicate {ends}")
            elif not port.host_port or not other.host_port:
                expected.append(f"spec.containers[0].ports[{index}]: overlapping {ends}")
            elif port.host_port == other.host_port and bool(ip) != bool(other_ip):
                expected.append(f"spec.containers[0].ports[{index}]: dangerously ambiguous {ends}")
    found = warned(PodSpec(containers=[Container(name="a", ports=ports)]))
    assert [each for each in found if "port definition" in each] == expected


@given(st.lists(paths, max_size=8))
def test_files_in_each_others_way_are_warned_of_in_pairs(paths: list[str]) -> None:
    expected: dict[str, None] = {}
    for index, path in enumerate(paths):
        one = path.rstrip("/")
        for other in (each.rstrip("/") for each in paths[:index]):
            if one and other and (f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")):
                expected[f'volume "v" (ConfigMap "c"): overlapping paths: "{one}" with "{other}"'] = None
    items = [KeyToPath(key="k", path=path) for path in paths]
    volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="c", items=items))
    assert warned(PodSpec(volumes=[volume])) == list(expected)


def test_thousands_of_equal_ports_and_files_give_a_bounded_number_of_warnings() -> None:
    equal = [ContainerPort(container_port=80, protocol="TCP") for _ in range(20_000)]
    assert len(warned(PodSpec(containers=[Container(name="a", ports=equal)]))) == MAX_WARNINGS
    items = [KeyToPath(key="k", path=f"a/{number % 300}") for number in range(20_000)]
    volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="c", items=items))
    assert len(warned(PodSpec(volumes=[volume]))) == MAX_WARNINGS
