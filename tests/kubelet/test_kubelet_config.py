"""KubeletConfiguration files and flags."""

from __future__ import annotations

import pytest

from pybernetes.kubelet.config.load import KubeletConfigError, check, load, seconds, set_defaults, without_effect
from pybernetes.kubelet.config.types import KubeletConfiguration
from pybernetes.kubelet.options import parse

HEAD = b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def test_a_file_is_read_and_completed() -> None:
    config = load(HEAD + b"maxPods: 7\nclusterDNS: [10.0.0.10]\nevictionHard: {memory.available: 1Gi}\n")
    set_defaults(config)
    check(config)
    assert (config.max_pods, config.cluster_dns, config.port) == (7, ["10.0.0.10"], 10250)
    assert config.eviction_hard == {"memory.available": "1Gi"}
    assert config.authentication is not None
    assert config.authentication.anonymous is not None
    assert config.authentication.anonymous.enabled is False
    assert seconds(config.sync_frequency) == 60.0
    assert config.serialize_image_pulls is True


def test_drop_ins_are_put_over_the_file_one_after_another() -> None:
    config = load(
        HEAD + b"maxPods: 7\nport: 1\nevictionHard: {memory.available: 1Gi, pid.available: 5%}\nclusterDNS: [a]\n",
        [
            ("10.conf", HEAD + b"maxPods: 8\nevictionHard: {memory.available: 2Gi}\n"),
            ("20.conf", HEAD + b"maxPods: 9\nclusterDNS: [b]\n"),
        ],
    )
    assert (config.max_pods, config.port, config.cluster_dns) == (9, 1, ["b"])
    assert config.eviction_hard == {"memory.available": "2Gi", "pid.available": "5%"}
    with pytest.raises(KubeletConfigError, match=r"x\.conf: no kind"):
        load(HEAD, [("x.conf", b"kind: Pod")])


def test_defaults_of_evictions_can_be_merged() -> None:
    config = load(HEAD + b"evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n")
    set_defaults(config)
    assert config.eviction_hard is not None
    assert config.eviction_hard["memory.available"] == "1Gi"
    assert config.eviction_hard["nodefs.available"] == "10%"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"maxPodz: 1", 'unknown field "maxPodz"'),
        (b"maxPods: many", "maxPods"),
        (b"cgroupDriver: systemd", "cgroupDriver = 'systemd' is not supported"),
        (b"cpuManagerPolicy: magic", "unknown cpuManagerPolicy"),
        (b"topologyManagerPolicy: restricted", "topologyManagerPolicy"),
        (b"syncFrequency: soon", 'invalid duration "soon"'),
        (b"imageGCLowThresholdPercent: 90", "imageGCLowThresholdPercent"),
        (b"maxParallelImagePulls: 5\nserializeImagePulls: true", "maxParallelImagePulls"),
        (b"authorization: {mode: Maybe}", "authorization.mode"),
        (b"enforceNodeAllocatable: [kube-reserved]", "kubeReservedCgroup must be specified"),
        (b"enforceNodeAllocatable: [everything]", "Valid options are none, pods"),
        (b"enforceNodeAllocatable: [none, pods]", "may not contain additional enforcements"),
        (b"cgroupsPerQOS: false", "not supported unless cgroupsPerQOS is enabled"),
        (b"memorySwap: {swapBehavior: Much}", "swapBehavior"),
        (b"maxPods: 1\nmaxPods: 2", "already set"),
    ],
)
def test_invalid_and_unsupported_settings_are_reported(text: bytes, words: str) -> None:
    with pytest.raises(KubeletConfigError, match=words):
        _read(HEAD + text)


def _read(data: bytes) -> None:
    config = load(data)
    set_defaults(config)
    check(config)


def test_settings_without_effect_are_reported() -> None:
    config = load(HEAD + b"failSwapOn: false\nhairpinMode: none\nkubeAPIQPS: 7\nmaxPods: 5\n")
    assert without_effect(config) == ["hairpinMode", "kubeAPIQPS"]


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(KubeletConfigError, match='no kind "Pod"'):
        load(b"apiVersion: v1\nkind: Pod\n")


def test_what_is_typed_wins_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(
        [
            "--config=/x",
            "--max-pods=9",
            "--node-labels=a=b,c=d",
            "--register-with-taints=k=v:NoSchedule,x:NoExecute",
            "--eviction-hard=memory.available<5%",
            "--client-ca-file=/ca",
            "--anonymous-auth",
            "--authorization-mode=AlwaysAllow",
            "--fail-swap-on=false",
            "--node-ip=10.0.0.1,fd00::1",
            "-v=2",
        ]
    )
    config = KubeletConfiguration(max_pods=3)
    options.apply(config)
    set_defaults(config)
    assert config.max_pods == 9
    assert config.eviction_hard == {"memory.available": "5%"}
    assert [(each.key, each.value, each.effect) for each in config.register_with_taints or ()] == [
        ("k", "v", "NoSchedule"),
        ("x", None, "NoExecute"),
    ]
    assert config.authentication is not None
    assert config.authentication.x509 is not None
    assert config.authentication.x509.client_ca_file == "/ca"
    assert config.authorization is not None
    assert config.authorization.mode == "AlwaysAllow"
    assert options.node_labels == {"a": "b", "c": "d"}
    assert options.node_ip == ["10.0.0.1", "fd00::1"]
    assert "--fail-swap-on has no effect here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flag", ["--register-with-taints=x", "--node-labels=x", "--eviction-hard=x", "--sync-frequency=x", "--nonsense"]
)
def test_a_bad_flag_ends_the_program(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([flag])
    assert flag.partition("=")[0] in capsys.readouterr().err
