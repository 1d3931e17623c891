"""Our messages of CRI v1 against the ones that the installed containerd was built with."""

from __future__ import annotations

import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from pybernetes.cri import v1

CHANGED = {"KeyValue.value", "ContainerEventResponse.pod_sandbox_metadata"}
"""What is otherwise in CRI of today than in Debian's containerd 1.6: a string that became bytes (the same on the wire),
and a part of the events, which that containerd does not serve."""


def containerds_file() -> Any:
    """The descriptor of CRI v1 that a program in Go carries with it, compressed."""
    program = shutil.which("containerd")
    if program is None:
        pytest.skip("containerd is not installed")
    data = Path(program).read_bytes()
    for match in re.finditer(b"\x1f\x8b\x08", data):
        file = descriptor_pb2.FileDescriptorProto()
        try:
            file.ParseFromString(zlib.decompressobj(31).decompress(data[match.start() : match.start() + 200_000]))
        except Exception:  # most of what looks like a beginning is none
            continue
        if file.package == "runtime.v1" and file.service:
            return file
    pytest.skip("containerd does not show its descriptors")


def shape(field: Any) -> tuple[str, int, int, str]:
    return field.name, field.type, field.label, field.type_name


def test_fields_are_those_of_containerd() -> None:
    theirs = containerds_file()
    differing = []
    for message in theirs.message_type:
        if "Windows" in message.name:
            continue
        ours = descriptor_pb2.DescriptorProto()
        getattr(v1, message.name).DESCRIPTOR.CopyToProto(ours)
        fields = {field.number: shape(field) for field in ours.field}
        differing += [
            f"{message.name}.{field.name}"
            for field in message.field
            if "Windows" not in field.type_name and fields.get(field.number) != shape(field)
        ]
    for enum in theirs.enum_type:
        differing += [value.name for value in enum.value if getattr(v1, value.name) != value.number]
    methods = {method.path for method in v1.methods()}
    for service in theirs.service:
        differing += [
            method.name for method in service.method if f"/runtime.v1.{service.name}/{method.name}" not in methods
        ]
    assert set(differing) <= CHANGED


def test_a_name_that_cri_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="CRI v1 has no ContainerConfigs"):
        _ = v1.ContainerConfigs
