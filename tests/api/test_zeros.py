"""Values that are written although nobody set them, and structs as messages show them."""

from __future__ import annotations

import msgspec

from pybernetes.api import zeros
from pybernetes.api.goform import go_form
from pybernetes.api.resource.v1 import ResourceClaimTemplate
from pybernetes.api.storage.v1 import CSIDriver, CSIDriverSpec, TokenRequest, VolumeAttachment, VolumeAttachmentSpec


def test_zero_values_are_filled_in_at_every_depth() -> None:
    obj = VolumeAttachment()
    zeros.fill(obj)
    assert msgspec.to_builtins(obj) == {
        "spec": {"attacher": "", "source": {}, "nodeName": ""},
        "status": {"attached": False},
    }


def test_items_of_lists_are_filled_in_and_what_is_set_stays() -> None:
    obj = CSIDriver(spec=CSIDriverSpec(token_requests=[TokenRequest(), TokenRequest(audience="a")]))
    zeros.fill(obj)
    assert msgspec.to_builtins(obj) == {"spec": {"tokenRequests": [{"audience": ""}, {"audience": "a"}]}}


def test_only_metadata_of_parts_is_filled_in() -> None:
    obj = ResourceClaimTemplate()
    zeros.fill(obj)
    assert msgspec.to_builtins(obj) == {"spec": {"metadata": {}, "spec": {"devices": {}}}}


def test_messages_show_every_field_of_a_struct_by_its_name_in_go() -> None:
    spec = VolumeAttachmentSpec(attacher="a")
    shown = bytes(go_form(spec))
    assert shown == (b'{"Attacher":"a","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":null},"NodeName":""}')
