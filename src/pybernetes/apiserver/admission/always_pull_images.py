"""Every image is pulled anew, so that a pod needs the credentials for it even where the image is there already."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.api.core.containers import all_containers, all_containers_with_path
from pybernetes.api.core.v1 import PodSpec
from pybernetes.api.field import FieldError, Path, not_supported

from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

_ALWAYS = "Always"
_SPEC = Path("spec")


class AlwaysPullImages(Plugin):
    """Upstream's AlwaysPullImages."""

    name = "AlwaysPullImages"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def admit(self, attributes: Attributes) -> None:
        if _nothing_new(attributes):
            return
        spec = attributes.new.spec or PodSpec()
        for container in all_containers(spec):
            container.image_pull_policy = _ALWAYS
        for volume in spec.volumes or ():
            if volume.image is not None:
                volume.image.pull_policy = _ALWAYS

    def validate(self, attributes: Attributes) -> None:
        if not _nothing_new(attributes):
            for error in _errors(attributes.new.spec or PodSpec()):
                raise forbidden(attributes, error)


def _errors(spec: PodSpec) -> Iterator[FieldError]:
    for container, path in all_containers_with_path(spec, _SPEC):
        if container.image_pull_policy != _ALWAYS:
            yield not_supported(path.child("imagePullPolicy"), container.image_pull_policy or "", (_ALWAYS,))
    for index, volume in enumerate(spec.volumes or ()):
        if volume.image is not None and volume.image.pull_policy != _ALWAYS:
            path = _SPEC.child("volumes").index(index).child("image", "pullPolicy")
            yield not_supported(path, volume.image.pull_policy or "", (_ALWAYS,))


def _nothing_new(attributes: Attributes) -> bool:
    """Whether an update brings no image that the pod did not have before."""
    if attributes.operation != UPDATE:
        return False
    before = {each.image for each in all_containers(attributes.old.spec or PodSpec())}
    return all(each.image in before for each in all_containers(attributes.new.spec or PodSpec()))
