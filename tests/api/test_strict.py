"""From bytes to kinds: unknown, repeated and mistyped fields."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api import strict
from pybernetes.api.admissionregistration.v1 import MutatingWebhookConfiguration
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition
from pybernetes.api.apps.v1 import Deployment
from pybernetes.api.autoscaling import v1 as autoscaling_v1
from pybernetes.api.core.v1 import Pod, Secret, Service
from pybernetes.api.errors import BadRequest
from pybernetes.api.policy.v1 import PodDisruptionBudget

DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {
    cls: msgspec.json.Decoder(cls)
    for cls in (Pod, Secret, Service, Deployment, MutatingWebhookConfiguration, CustomResourceDefinition)
}
FAMILY = {
    CustomResourceDefinition: "apiextensions.k8s.io/v1",
    Deployment: "apps/v1",
    MutatingWebhookConfiguration: "admissionregistration.k8s.io/v1",
}
CANNOT = {cls: f'{cls.__name__} in version "v1" cannot be handled as a {cls.__name__}: ' for cls in DECODERS}


def decode(cls: type[Any], body: bytes, validation: str = strict.STRICT) -> tuple[Any, list[str]]:
    return strict.decode(cls, DECODERS[cls], body, FAMILY.get(cls, "v1"), validation)


def refusal(cls: type[Any], body: bytes) -> str:
    with pytest.raises(BadRequest) as refused:
        decode(cls, body)
    return str(refused.value)


def test_a_good_body_becomes_the_object_with_canonical_values() -> None:
    body = (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},'
        b'"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1,"memory":"1024Mi","x":0.5}}}]}}'
    )
    pod, problems = decode(Pod, body)
    assert problems == []
    assert pod.spec.containers[0].resources.limits == {"cpu": "1", "memory": "1Gi", "x": "500m"}


UNKNOWN = (
    b'{"spec":{"foo":1,"containers":[{"name":"a","bar":{},"name":"b"}]},'
    b'"kinda":"x","metadata":{"labels":{"a":"1","a":"2"}}}'
)
PROBLEMS = [
    'unknown field "spec.foo"',
    'unknown field "spec.containers[0].bar"',
    'duplicate field "spec.containers[0].name"',
    'unknown field "kinda"',
    'duplicate field "metadata.labels.a"',
]


def test_strict_refuses_unknown_and_repeated_fields_and_names_all() -> None:
    assert refusal(Pod, UNKNOWN) == CANNOT[Pod] + "strict decoding error: " + ", ".join(PROBLEMS)


def test_warn_returns_them_and_drops_the_unknown() -> None:
    pod, problems = decode(Pod, UNKNOWN, strict.WARN)
    assert problems == PROBLEMS
    assert pod.spec.containers[0].name == "b"
    assert pod.metadata.labels == {"a": "2"}


def test_ignore_drops_them_silently() -> None:
    pod, problems = decode(Pod, UNKNOWN, strict.IGNORE)
    assert problems == []
    assert pod.spec.containers[0].name == "b"


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"name":"a","name":"b"}}',
        b'{"metadata":{"name":"a" ,"name" :"b"}}',
        b'{"metadata":{"name":null,"name":"b"}}',
        b'{"metadata":{"name":"x","name":"\\u0022\\u0022\\u0022\\u0022"}}',
        b'{"metadata":{"na\\u006de":"a","name":"b"}}',
        b'{\n "metadata": {\n "name": "a",\n "name": "b"}}',
    ],
)
def test_a_key_given_twice_is_found_however_it_is_written(body: bytes) -> None:
    _, problems = decode(Pod, body, strict.WARN)
    assert problems == ['duplicate field "metadata.name"']


def test_at_most_a_hundred_problems_are_listed() -> None:
    body = json.dumps({f"f{n}": 1 for n in range(150)}).encode()
    _, problems = decode(Pod, body, strict.WARN)
    assert len(problems) == 100


@pytest.mark.parametrize(
    ("cls", "body", "message"),
    [
        (
            Deployment,
            b'{"spec":{"replicas":"3"}}',
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            Pod,
            b'{"spec":{"priority":99999999999}}',
            "json: cannot unmarshal number 99999999999 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            Pod,
            b'{"spec":{"priority":1.0}}',
            "json: cannot unmarshal number 1.0 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            Pod,
            b'{"spec":{"activeDeadlineSeconds":9223372036854775808}}',
            "json: cannot unmarshal number 9223372036854775808 into Go struct field "
            "PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            Pod,
            b'{"spec":{"hostNetwork":"yes"}}',
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            Pod,
            b'{"spec":{"containers":{}}}',
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (Pod, b'{"spec":[]}', "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            Pod,
            b'{"metadata":{"labels":{"a":1}}}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            Pod,
            b'{"metadata":{"labels":["a"]}}',
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            Pod,
            b'{"metadata":{"creationTimestamp":5}}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            Pod,
            b'{"metadata":{"creationTimestamp":"2024-13-01T00:00:00Z"}}',
            'parsing time "2024-13-01T00:00:00Z": month out of range',
        ),
        (
            Pod,
            b'{"spec":{"containers":[{"resources":{"limits":{"cpu":"abc"}}}]}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            Pod,
            b'{"spec":{"priority":"x","containers":[{"resources":{"limits":{"cpu":true}}}]}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            Service,
            b'{"spec":{"ports":[{"targetPort":99999999999}]}}',
            "json: cannot unmarshal number 99999999999 into Go struct field "
            "ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            Service,
            b'{"spec":{"ports":[{"targetPort":true}]}}',
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            Pod,
            b'{"spec":{"volumes":[{"name":"v","emptyDir":5}]}}',
            "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir "
            "of type v1.EmptyDirVolumeSource",
        ),
        (
            Pod,
            b'{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":[]}}}]}}',
            "json: cannot unmarshal array into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            Pod,
            b'{"spec":{"containers":[{"imagePullPolicy":1}]}}',
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy "
            "of type v1.PullPolicy",
        ),
        (
            Pod,
            b'{"metadata":{"ownerReferences":[{"uid":{}}]}}',
            "json: cannot unmarshal object into Go struct field OwnerReference.metadata.ownerReferences.uid "
            "of type types.UID",
        ),
        (
            Pod,
            b'{"spec":{"overhead":[]}}',
            "json: cannot unmarshal array into Go struct field PodSpec.spec.overhead of type v1.ResourceList",
        ),
        (
            Pod,
            b'{"spec":{"containers":[{"securityContext":{"capabilities":{"add":{}}}}]}}',
            "json: cannot unmarshal object into Go struct field "
            "Capabilities.spec.containers.securityContext.capabilities.add of type []v1.Capability",
        ),
        (
            Pod,
            b'{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[5]}}}]}}',
            "json: cannot unmarshal number into Go struct field "
            "Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability",
        ),
        (
            MutatingWebhookConfiguration,
            b'{"webhooks":[{"rules":[{"apiGroups":[5]}]}]}',
            "json: cannot unmarshal number into Go struct field RuleWithOperations.webhooks.rules.Rule.apiGroups "
            "of type string",
        ),
        (
            Secret,
            b'{"data":{"a":[256]}}',
            "json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8",
        ),
        (Secret, b'{"data":{"a":"YQ"}}', "illegal base64 data at input byte 0"),
        (Secret, b'{"data":{"a":"YWJj!"}}', "illegal base64 data at input byte 4"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(cls: type[Any], body: bytes, message: str) -> None:
    assert refusal(cls, body) == CANNOT[cls] + message


@pytest.mark.parametrize(
    ("body", "message", "summary"),
    [
        (b"", "unexpected end of JSON input", "<empty>"),
        (b'{"a":1', "unexpected end of JSON input", '{"a":1'),
        (b"{}}", "invalid character '}' after top-level value", "{}}"),
        (b"x", "invalid character 'x' looking for beginning of value", "78"),
        (
            b'{"kind":5}',
            "json: cannot unmarshal number into Go struct field .kind of type string",
            '{"kind":5}',
        ),
        (b'{"x":' * 20_000, "invalid character '{' exceeded max depth", '{"x":{"x":{"x":{"x":{"x":{"x": ...'),
    ],
)
def test_a_body_that_is_no_object_is_unrecognized(body: bytes, message: str, summary: str) -> None:
    assert refusal(Pod, body) == (
        "the object provided is unrecognized (must be of type Pod): "
        f"couldn't get version/kind; json parse error: {message} ({summary})"
    )


def test_null_is_accepted_wherever_go_accepts_it() -> None:
    body = (
        b'{"metadata":{"name":null,"labels":{"a":null}},"spec":{"containers":[null],"nodeSelector":null},"status":null}'
    )
    pod, problems = decode(Pod, body)
    assert problems == []
    assert msgspec.json.encode(pod) == b'{"metadata":{"labels":{"a":""}},"spec":{"containers":[{}]}}'
    assert msgspec.json.encode(decode(Pod, b"null")[0]) == b"{}"


def test_a_time_that_is_null_in_a_map_is_none() -> None:
    budget, _ = strict.convert(PodDisruptionBudget, {"status": {"disruptedPods": {"a": None}}})
    assert budget.status.disrupted_pods == {}


def test_bytes_may_be_a_list_of_numbers() -> None:
    secret, _ = decode(Secret, b'{"data":{"a":[104,105,null],"b":[]}}')
    assert secret.data == {"a": "aGkA", "b": ""}


def test_bytes_that_are_no_text_become_the_replacement_character() -> None:
    assert decode(Pod, b'{"metadata":{"name":"\xff"}}')[0].metadata.name == "\ufffd"
    assert decode(Pod, rb'{"metadata":{"name":"\ud800"}}')[0].metadata.name == "\ufffd"


def schema(within: str) -> bytes:
    return b'{"spec":{"versions":[{"schema":{"openAPIV3Schema":{%s}}}]}}' % within.encode()


@pytest.mark.parametrize(
    "within", ['"items":{"foo":1,"type":"string"}', '"items":[{"foo":1}]', '"items":5', '"items":"x"']
)
def test_what_is_one_of_several_types_is_read_without_complaints(within: str) -> None:
    definition, problems = decode(CustomResourceDefinition, schema(within))
    assert problems == []
    read = msgspec.to_builtins(definition.spec.versions[0].schema.open_apiv_3_schema)
    assert "foo" not in str(read)
    assert ("string" in str(read)) == ("string" in within)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ('"additionalProperties":[1]', "boolean or JSON schema expected"),
        ('"additionalProperties":"x"', "boolean or JSON schema expected"),
        (
            '"properties":{"a":{"items":{"type":5}}}',
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.type of type string",
        ),
        ('"items":[5]', "json: cannot unmarshal number into Go value of type v1.JSONSchemaProps"),
        ('"dependencies":{"a":[5]}', "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_what_is_none_of_several_types_is_refused(within: str, message: str) -> None:
    assert refusal(CustomResourceDefinition, schema(within)) == CANNOT[CustomResourceDefinition] + message


def test_a_decoded_value_is_converted_the_same_way() -> None:
    pod, problems = strict.convert(Pod, {"metadata": {"name": "a", "foo": 1}, "spec": {"containers": [None]}})
    assert problems == ['unknown field "metadata.foo"']
    assert pod.metadata.name == "a"
    with pytest.raises(strict.DecodeError) as refused:
        strict.convert(Deployment, {"spec": {"replicas": "3"}})
    assert str(refused.value) == (
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    )


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, None),
        ({"kind": "Pod", "api_version": "v1"}, None),
        (
            {"kind": "Foo"},
            'Foo in version "v1" cannot be handled as a Pod: no kind "Foo" is registered for version "v1" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            {"kind": "Deployment", "api_version": "apps/v1"},
            'Deployment in version "v1" cannot be handled as a Pod: '
            "converting (v1.Deployment) to (core.Pod): unknown conversion",
        ),
        (
            {"api_version": "a/b/c"},
            "the object provided is unrecognized (must be of type Pod): unexpected GroupVersion string: a/b/c ({...)",
        ),
    ],
)
def test_an_object_of_another_kind_is_refused(named: dict[str, str], message: str | None) -> None:
    if message is None:
        strict.check_kind(Pod(**named), Pod, "v1")
        return
    with pytest.raises(BadRequest) as refused:
        strict.check_kind(Pod(**named), Pod, "v1", b"{...")
    assert str(refused.value) == message


def test_an_object_of_another_version_is_refused() -> None:
    autoscaler = autoscaling_v1.HorizontalPodAutoscaler
    with pytest.raises(BadRequest, match=r"data \(autoscaling/v2\) does not match .* \(autoscaling/v1\)"):
        strict.check_kind(autoscaler(api_version="autoscaling/v2"), autoscaler, "autoscaling/v1")


names = st.sampled_from(["name", "namespace", "generateName", "uid", "foo", "bar"])
texts = st.text(max_size=4) | st.sampled_from(['"', '":', "\\", "null"])


@given(st.lists(st.tuples(names, texts), max_size=6), st.sampled_from([(",", ":"), (", ", " : ")]), st.booleans())
def test_unknown_and_repeated_keys_are_always_found(
    pairs: list[tuple[str, str]], separators: tuple[str, str], escape: bool
) -> None:
    comma, colon = separators
    inner = comma.join(f"{json.dumps(k)}{colon}{json.dumps(v, ensure_ascii=escape)}" for k, v in pairs)
    _, problems = decode(Pod, f'{{"metadata":{{{inner}}}}}'.encode("utf-8", "replace"), strict.WARN)
    want, seen = [], set()
    for key, _ in pairs:
        if key in ("foo", "bar"):
            want.append(f'unknown field "metadata.{key}"')
        elif key in seen:
            want.append(f'duplicate field "metadata.{key}"')
        seen.add(key)
    assert problems == list(dict.fromkeys(want))


@given(st.binary(max_size=30) | st.text(alphabet='{}[]":,spec01x\\', max_size=20).map(str.encode))
def test_any_bytes_decode_or_are_a_bad_request(body: bytes) -> None:
    try:
        decode(Pod, body)
    except BadRequest:
        pass
