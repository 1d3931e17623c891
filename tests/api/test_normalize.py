"""Canonical forms, in place."""

from __future__ import annotations

from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api import normalize
from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Node, Pod, Secret


def test_values_at_every_depth_become_canonical() -> None:
    pod = msgspec.convert(
        {
            "metadata": {
                "creationTimestamp": "2024-01-01T01:00:00+01:00",
                "managedFields": [{"time": "2024-01-01T00:00:00.5Z"}],
            },
            "spec": {
                "containers": [
                    {
                        "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
                        "env": [{"valueFrom": {"resourceFieldRef": {"divisor": "1000m"}}}],
                    }
                ],
                "overhead": {"cpu": "1000m"},
                "volumes": [{"emptyDir": {"sizeLimit": "1024Ki"}}],
            },
            "status": {"conditions": [{"lastTransitionTime": "2024-01-01T00:00:00-01:00"}]},
        },
        Pod,
    )
    normalize.normalize(pod)
    assert msgspec.to_builtins(pod) == {
        "metadata": {
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "managedFields": [{"time": "2024-01-01T00:00:00Z"}],
        },
        "spec": {
            "containers": [
                {
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
                    "env": [{"valueFrom": {"resourceFieldRef": {"divisor": "1"}}}],
                }
            ],
            "overhead": {"cpu": "1"},
            "volumes": [{"emptyDir": {"sizeLimit": "1Mi"}}],
        },
        "status": {"conditions": [{"lastTransitionTime": "2024-01-01T01:00:00Z"}]},
    }


def test_an_object_without_such_values_is_left_alone() -> None:
    pod = Pod()
    normalize.normalize(pod)
    assert msgspec.to_builtins(pod) == {}


def test_micro_times_keep_six_digits_and_zero_times_go() -> None:
    lease = msgspec.convert(
        {
            "metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"},
            "spec": {"renewTime": "2024-01-01T01:00:00.123456+01:00"},
        },
        Lease,
    )
    normalize.normalize(lease)
    assert lease.metadata is not None
    assert lease.metadata.creation_timestamp is None
    assert lease.spec is not None
    assert lease.spec.renew_time == "2024-01-01T00:00:00.123456Z"


def test_maps_of_quantities_and_bytes_are_visited() -> None:
    node = msgspec.convert({"status": {"capacity": {"cpu": "1000m"}}}, Node)
    secret = msgspec.convert({"data": {"a": "Y\nQ=="}}, Secret)
    normalize.normalize(node)
    normalize.normalize(secret)
    assert node.status is not None
    assert node.status.capacity == {"cpu": "1"}
    assert secret.data == {"a": "YQ=="}


@pytest.mark.parametrize(
    ("text", "at"),
    [("Y", 0), ("YQ", 0), ("YQ=", 3), ("YQ=x", 2), ("=", 0), ("Y=", 1), ("YWJj!", 4), ("YQ==YQ==", 4), ("YQ==x", 4)],
)
def test_bad_base64_is_named_by_its_position(text: str, at: int) -> None:
    with pytest.raises(ValueError, match=f"illegal base64 data at input byte {at}$"):
        normalize.canonical_base64(text)


@given(st.binary(), st.integers(1, 10))
def test_base64_with_line_breaks_is_accepted_and_joined(raw: bytes, width: int) -> None:
    text = b64encode(raw).decode()
    broken = "\r\n".join(text[n : n + width] for n in range(0, len(text), width))
    assert normalize.canonical_base64(broken) == text


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("5", "5"),
        ("5.0", "5"),
        ("1e3", "1000"),
        ("0", "0"),
        ("5.5", "5.5"),
        ("1e-7", "1e-7"),
        ("123456789012345678", "123456789012345680"),
        ("123456789012345678901", "123456789012345680000"),
    ],
)
def test_numbers_have_no_fraction_they_do_not_need(sent: str, written: str) -> None:
    schema = msgspec.json.decode(f'{{"maximum":{sent}}}', type=JSONSchemaProps)
    normalize.normalize(schema)
    assert msgspec.json.encode(schema).decode() == f'{{"maximum":{written}}}'
