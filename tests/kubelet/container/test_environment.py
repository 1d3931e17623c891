"""What containers find in their environment."""

from __future__ import annotations

import base64
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    ConfigMap,
    Container,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    Pod,
    PodSpec,
    ResourceRequirements,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from pybernetes.api.core.v1 import ConfigMapEnvSource as FromMap
from pybernetes.api.core.v1 import ConfigMapKeySelector as MapKey
from pybernetes.api.core.v1 import FileKeySelector as FileKey
from pybernetes.api.core.v1 import ObjectFieldSelector as Field
from pybernetes.api.core.v1 import ResourceFieldSelector as Resource
from pybernetes.api.core.v1 import SecretEnvSource as FromSecret
from pybernetes.api.core.v1 import SecretKeySelector as SecretKey
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import parse
from pybernetes.kubelet.container.config_error import ConfigError
from pybernetes.kubelet.container.downward_api import format_map
from pybernetes.kubelet.container.env_file import EnvFileError, variable_of
from pybernetes.kubelet.container.environment import Environments
from pybernetes.kubelet.container.expansion import TooLong, expand_known, expand_subpath
from pybernetes.kubelet.container.service_links import service_environment
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.volumes.base import MountedVolume

FACTS = NodeFacts("node-1", ["192.0.2.1", "fd00::1"], {"cpu": parse("4"), "memory": parse("8Gi")})
IPS = ["10.0.0.7", "fd00::7"]


class _Objects:
    """A server with two objects in a namespace."""

    def __init__(self) -> None:
        self.asked = 0
        self.objects: dict[tuple[type[Any], str, str], Any] = {
            (ConfigMap, "shop", "map"): ConfigMap(data={"A": "1", "b.c": "2", "7": "3"}),
            (Secret, "shop", "keys"): Secret(data={"P": base64.b64encode(b"p\xff").decode()}),
        }

    async def get(self, kind: Any, namespace: str, name: str) -> Any:
        self.asked += 1
        if (kind, namespace, name) not in self.objects:
            raise errors.NotFound("", kind.__name__.lower(), name)
        return self.objects[kind, namespace, name]

    def register(self, pod: Pod) -> None: ...

    def unregister(self, uid: str) -> None: ...

    async def close(self) -> None: ...


def _service(name: str, ip: str = "10.96.0.9", namespace: str = "shop", ports: Any = None) -> Service:
    return Service(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ServiceSpec(cluster_ip=ip, ports=ports or [ServicePort(port=80)]),
    )


async def _env(
    env: list[EnvVar] | None = None,
    sources: list[EnvFromSource] | None = None,
    services: Collection[Service] | None = (),
    volumes: Any = None,
    objects: _Objects | None = None,
    **pod: Any,
) -> dict[str, str]:
    container = Container(
        name="main", env=env, env_from=sources, resources=ResourceRequirements(limits={"memory": "64Mi"})
    )
    metadata = ObjectMeta(name="web", namespace="shop", uid="u1", labels={"a": "b"}, annotations=pod.pop("notes", None))
    spec = PodSpec(node_name="node-1", service_account_name="default", containers=[container], **pod)
    environments = Environments(FACTS, objects or _Objects(), lambda: services)
    return await environments.of(Pod(metadata=metadata, spec=spec), container, IPS, volumes or {})


def _from(name: str, **source: Any) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(**source))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A) $(B)", "1 2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(C)", "$(C)"),
        ("$(A", "$(A"),
        ("$(A$(B)", "$(A$(B)"),
        ("$A $ ($) $", "$A $ ($) $"),
        ("$()", "$()"),
        ("no", "no"),
        ("$(L)", "$(A)"),
    ],
)
def test_references_are_replaced_once_and_left_alone_where_unknown(text: str, expected: str) -> None:
    assert expand_known(text, {"A": "1", "L": "$(A)"}, {"A": "x", "B": "2"}) == expected


def test_a_long_text_costs_no_more_than_its_length() -> None:
    assert expand_known("$a" * 60_000, {}) == "$a" * 60_000
    assert expand_known("$(E)" * 300_000 + "$(" * 60_000, {"E": ""}) == "$(" * 60_000


@pytest.mark.parametrize("text", ["$a" * 1_400_000, "$(A)" * 14, "$$" * 140_000])
def test_an_expansion_ends_where_the_kernels_limit_is(text: str) -> None:
    with pytest.raises(TooLong, match="more than 131071 bytes after expansion"):
        expand_known(text, {"A": "x" * 10_000})


async def test_variables_that_double_fail_the_container() -> None:
    env = [EnvVar(name="A0", value="x"), *(EnvVar(name=f"A{i}", value=f"$(A{i - 1})" * 10) for i in range(1, 20))]
    with pytest.raises(ConfigError, match='environment variable "A6": more than 131071 bytes'):
        await _env(env)


async def test_a_variable_has_as_many_bytes_as_the_kernel_takes() -> None:
    assert len((await _env([EnvVar(name="A", value="ä" * 65534)]))["A"]) == 65534
    with pytest.raises(ConfigError, match='environment variable "A": 131072 bytes with its name'):
        await _env([EnvVar(name="A", value="ä" * 65535)])


async def test_all_variables_together_are_bounded() -> None:
    env = [EnvVar(name="A", value="x" * 100_000), *(EnvVar(name=f"B{i}", value="$(A)") for i in range(100))]
    with pytest.raises(ConfigError, match="have more than the 6291456 bytes"):
        await _env(env)


async def test_one_source_with_many_prefixes_is_read_until_the_bound_only() -> None:
    objects = _Objects()
    objects.objects[ConfigMap, "shop", "keys"] = ConfigMap(data={f"k{number}": "" for number in range(1000)})
    sources = [EnvFromSource(prefix=f"P{number:05}", config_map_ref=FromMap(name="keys")) for number in range(800)]
    with pytest.raises(ConfigError, match="have more than the 6291456 bytes"):
        await _env(sources=sources, objects=objects)
    assert objects.asked < 400


async def test_a_long_prefix_of_many_keys_fails_the_container_at_once() -> None:
    objects = _Objects()
    objects.objects[ConfigMap, "shop", "keys"] = ConfigMap(data={f"k{number}": "" for number in range(300)})
    sources = [EnvFromSource(prefix="P" * 100_000, config_map_ref=FromMap(name="keys"))]
    with pytest.raises(ConfigError, match="have more than the 6291456 bytes"):
        await _env(sources=sources, objects=objects)


async def test_a_source_that_replaces_another_is_not_counted_twice() -> None:
    objects = _Objects()
    objects.objects[ConfigMap, "shop", "keys"] = ConfigMap(data={f"k{number}": "" for number in range(1000)})
    sources = [EnvFromSource(prefix="P" * 100, config_map_ref=FromMap(name="keys"))] * 100
    assert len(await _env(sources=sources, objects=objects)) == 1000


def test_a_subpath_needs_all_of_its_variables() -> None:
    assert expand_subpath("$(A)/x", {"A": "1"}) == "1/x"
    with pytest.raises(ValueError, match=r"^missing value for B, C$"):
        expand_subpath("$(C)$(A)$(B)", {"A": "1", "C": ""})


async def test_later_sources_win_and_env_wins_over_them() -> None:
    found = await _env(
        [EnvVar(name="A", value="own"), EnvVar(name="C", value="$(A)-$(PRE_7)-$(WEB_SERVICE_HOST)-$(NO)")],
        [
            EnvFromSource(config_map_ref=FromMap(name="map")),
            EnvFromSource(prefix="PRE_", config_map_ref=FromMap(name="map")),
            EnvFromSource(secret_ref=FromSecret(name="keys")),
            EnvFromSource(secret_ref=FromSecret(name="none", optional=True)),
        ],
        [_service("web")],
    )
    assert found["A"] == "own"
    assert found["b.c"] == "2"
    assert found["PRE_b.c"] == "2"
    assert found["C"] == "own-3-10.96.0.9-$(NO)"
    assert found["P"].encode(errors="surrogateescape") == b"p\xff"


async def test_an_earlier_variable_cannot_use_a_later_one() -> None:
    found = await _env([EnvVar(name="A", value="$(B)"), EnvVar(name="B", value="b"), EnvVar(name="D", value="$(B)")])
    assert found["A"] == "$(B)"
    assert found["D"] == "b"


async def test_a_service_does_not_replace_what_the_author_wrote() -> None:
    found = await _env([EnvVar(name="WEB_SERVICE_HOST", value="mine")], services=[_service("web")])
    assert found["WEB_SERVICE_HOST"] == "mine"
    assert found["WEB_SERVICE_PORT"] == "80"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels['a']", "b"),
        ("metadata.labels['x']", ""),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,fd00::1"),
        ("status.podIP", "10.0.0.7"),
        ("status.podIPs", "10.0.0.7,fd00::7"),
    ],
)
async def test_fields(path: str, expected: str) -> None:
    assert (await _env([_from("X", field_ref=Field(api_version="v1", field_path=path))]))["X"] == expected


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.memory", None, "67108864"),
        ("limits.memory", "1Mi", "64"),
        ("limits.memory", "1Gi", "1"),
        ("limits.cpu", None, "4"),
        ("limits.cpu", "1m", "4000"),
        ("limits.cpu", "0", "4"),
        ("requests.cpu", "1m", "0"),
        ("limits.hugepages-2Mi", None, "0"),
    ],
)
async def test_resources_are_rounded_up_and_the_nodes_where_there_is_no_limit(
    resource: str, divisor: str | None, expected: str
) -> None:
    found = await _env([_from("X", resource_field_ref=Resource(resource=resource, divisor=divisor))])
    assert found["X"] == expected


async def test_the_pods_limit_goes_before_the_nodes() -> None:
    cpu = _from("X", resource_field_ref=Resource(resource="limits.cpu", divisor="1m"))
    found = await _env([cpu], resources=ResourceRequirements(limits={"cpu": "1500m"}))
    assert found["X"] == "1500"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"config_map_key_ref": MapKey(name="map", key="no")}, "couldn't find key no in ConfigMap shop/map"),
        ({"secret_key_ref": SecretKey(name="keys", key="no")}, "couldn't find key no in Secret shop/keys"),
        ({"config_map_key_ref": MapKey(name="none", key="x")}, 'configmap "none" not found'),
        ({"secret_key_ref": SecretKey(name="none", key="x")}, 'secret "none" not found'),
        ({"field_ref": Field(field_path="status.phase")}, "field label not supported: status.phase"),
        ({"field_ref": Field(field_path="spec.x['a']")}, "field label does not support subscript: spec.x['a']"),
        ({"resource_field_ref": Resource(resource="limits.gpu")}, "unsupported container resource : limits.gpu"),
        ({"resource_field_ref": Resource(resource="limits.cpu", container_name="x")}, "container x not found"),
        ({"file_key_ref": FileKey(volume_name="v", path="f", key="A")}, 'cannot find the volume "v" referenced by'),
    ],
)
async def test_what_cannot_be_had_fails_the_container(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await _env([_from("X", **source)])
    assert str(caught.value).startswith(message)


async def test_what_is_optional_and_not_there_is_left_out() -> None:
    found = await _env(
        [
            _from("X", config_map_key_ref=MapKey(name="none", key="x", optional=True)),
            _from("Y", secret_key_ref=SecretKey(name="keys", key="x", optional=True)),
        ]
    )
    assert found == {}


async def test_a_missing_source_fails_the_container() -> None:
    with pytest.raises(ConfigError, match=r'^configmap "none" not found$'):
        await _env(sources=[EnvFromSource(config_map_ref=FromMap(name="none"))])


async def test_services_must_have_been_read_unless_the_pod_is_static() -> None:
    with pytest.raises(ConfigError, match=r"^services have not yet been read at least once, cannot construct envvars$"):
        await _env(services=None)
    assert await _env(services=None, notes={"kubernetes.io/config.source": "file"}) == {}


def test_services_become_variables_in_both_styles() -> None:
    ports = [ServicePort(name="http", port=80), ServicePort(name="dns-udp", port=53, protocol="UDP")]
    found = service_environment([_service("my-web", "fd00::9", ports=ports)], "shop", True)
    assert found == {
        "MY_WEB_SERVICE_HOST": "fd00::9",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP": "80",
        "MY_WEB_SERVICE_PORT_DNS_UDP": "53",
        "MY_WEB_PORT": "tcp://[fd00::9]:80",
        "MY_WEB_PORT_80_TCP": "tcp://[fd00::9]:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "fd00::9",
        "MY_WEB_PORT_53_UDP": "udp://[fd00::9]:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "fd00::9",
    }


def test_which_services_a_container_sees() -> None:
    services = [
        _service("kubernetes", "10.96.0.1", "default"),
        _service("web"),
        _service("headless", "None"),
        _service("none", ""),
        _service("other", namespace="elsewhere"),
    ]
    hosts = lambda links: {  # noqa: E731
        key for key in service_environment(services, "shop", links) if key.endswith("_SERVICE_HOST")
    }
    assert hosts(True) == {"KUBERNETES_SERVICE_HOST", "WEB_SERVICE_HOST"}
    assert hosts(False) == {"KUBERNETES_SERVICE_HOST"}


async def test_a_variable_from_a_file_of_a_volume(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("A='1'\nB='x\ny' # more\n")
    (tmp_path / "env").symlink_to("/real")
    (tmp_path / "out").symlink_to("/etc/hostname")
    volumes = {"v": MountedVolume("v", tmp_path)}
    ask = lambda path, key, optional=False: _env(  # noqa: E731
        [_from("X", file_key_ref=FileKey(volume_name="v", path=path, key=key, optional=optional))], volumes=volumes
    )
    assert (await ask("real", "A"))["X"] == "1"
    assert (await ask("env", "B"))["X"] == "x\ny"
    assert await ask("env", "C", True) == {}
    with pytest.raises(ConfigError, match=r'^environment variable key "C" not found in file "'):
        await ask("env", "C")
    for path in ("out", "../x", "nope", "."):
        with pytest.raises(ConfigError, match=r"^couldn't parse env file$"):
            await ask(path, "A")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X='a b $c \\n \"'", 'a b $c \\n "'),
        ("# no\n\n  \t\n  X='1' # y", "1"),
        ("Y='x\n\nX='\nX='2'", "2"),
        ("X= '1'", ""),
        ("X=''", ""),
        ("Y='1'", ""),
        ("X='1\n 2'", "1\n 2"),
        ("X='1'\nbroken", "1"),
    ],
)
def test_env_files(text: str, expected: str) -> None:
    assert variable_of(text, "X") == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A='1'\nX", "at line 2: missing '='"),
        ("='1'", "at line 1: empty variable name"),
        ("X ='1'", "at line 1: whitespace before '=' is not allowed"),
        ("X=1", "at line 1: value must be enclosed in single quotes"),
        ('X="1"', "at line 1: value must be enclosed in single quotes"),
        ("X=", "at line 1: value must be enclosed in single quotes"),
        ("X='1' 2", "at line 1: unexpected content after closing quote"),
        ("\nX='1\n", "starting at line 2: unclosed single quote"),
    ],
)
def test_env_files_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(EnvFileError) as caught:
        variable_of(text, "X")
    assert str(caught.value) == f"invalid environment variable format {why}"


def test_maps_are_written_sorted_and_quoted() -> None:
    assert format_map({"b": 'x"y', "a": "l1\nl2"}) == 'a="l1\\nl2"\nb="x\\"y"'
