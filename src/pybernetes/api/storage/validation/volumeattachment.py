"""VolumeAttachments."""

from __future__ import annotations

from typing import Final

from ...core.validation.common import validate_csi_driver_name
from ...core.validation.persistentvolume import validate_persistent_volume_spec
from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, required, too_long
from ...gocompat.goform import go_form
from ...meta.validation import IMMUTABLE, validate_object_meta
from ...names import MAX_ID, name_is_dns_subdomain, range_error
from ..v1 import (
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeError,
)

MAX_METADATA_BYTES: Final = 256 * 1024
MAX_MESSAGE_BYTES: Final = 1024

_SPEC = Path("spec")
_STATUS = Path("status")


def validate_volume_attachment(obj: VolumeAttachment) -> list[FieldError]:
    """Validate a new VolumeAttachment."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    spec = obj.spec or VolumeAttachmentSpec()
    source = spec.source or VolumeAttachmentSource()
    errors += validate_csi_driver_name(spec.attacher, _SPEC.child("attacher"))
    errors += _validate_source(source, _SPEC.child("source"))
    node = spec.node_name or ""
    errors += [invalid(_SPEC.child("nodeName"), node, problem) for problem in name_is_dns_subdomain(node, False)]
    errors += _validate_status(obj.status or VolumeAttachmentStatus())
    name = source.persistent_volume_name
    if name is not None:
        at = _SPEC.child("source", "persistentVolumeName")
        errors += [invalid(at, name, problem) for problem in name_is_dns_subdomain(name, False)]
    return errors


def validate_volume_attachment_update(new: VolumeAttachment, old: VolumeAttachment) -> list[FieldError]:
    """Validate an update: the volume and its node are immutable."""
    errors = validate_volume_attachment(new)
    spec = new.spec or VolumeAttachmentSpec()
    if not semantically_equal(spec, old.spec):
        errors.append(invalid(_SPEC, go_form(spec), IMMUTABLE))
    return errors


def _validate_source(source: VolumeAttachmentSource, path: Path) -> list[FieldError]:
    name, inline = source.persistent_volume_name, source.inline_volume_spec
    one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        return [required(path, one)]
    if name is not None and inline is not None:
        return [forbidden(path, one)]
    if inline is not None:
        return validate_persistent_volume_spec(inline, "", path.child("inlineVolumeSpec"), inline=True)
    if not name:
        return [required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")]
    return []


def _validate_status(status: VolumeAttachmentStatus) -> list[FieldError]:
    errors: list[FieldError] = []
    size = sum(len(text.encode()) for pair in (status.attachment_metadata or {}).items() for text in pair)
    if size > MAX_METADATA_BYTES:
        errors.append(too_long(_STATUS.child("attachmentMetadata"), "", MAX_METADATA_BYTES))
    errors += _validate_error(status.attach_error, _STATUS.child("attachError"))
    return errors + _validate_error(status.detach_error, _STATUS.child("detachError"))


def _validate_error(error: VolumeError | None, path: Path) -> list[FieldError]:
    if error is None:
        return []
    errors: list[FieldError] = []
    if len((error.message or "").encode()) > MAX_MESSAGE_BYTES:
        # The number that upstream names is that of another limit.
        errors.append(too_long(path.child("message"), "", MAX_METADATA_BYTES))
    if error.error_code is not None and error.error_code < 0:
        errors.append(invalid(path.child("errorCode"), error.error_code, range_error(0, MAX_ID)))
    return errors
