"""Objects in the other versions of their kind: by the name of the version alone, or by a webhook.

A `Converter` belongs to one state of a definition; forms that were made by it are worth nothing once there is another.
A webhook is asked for many objects at once. It may change everything but what says which object it is: of the metadata
only labels and annotations are taken from its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api.apiextensions.v1 import CustomResourceDefinitionSpec, WebhookConversion
from pybernetes.api.errors import APIError
from pybernetes.api.field import Path, aggregate
from pybernetes.api.gocompat.goprint import type_of
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.validation import validate_annotations, validate_labels
from pybernetes.api.randomness import new_uid

from .outline import Outline
from .resource import CustomResource, resource_of
from .version import CustomVersion

if TYPE_CHECKING:
    from ..webhooks.client import WebhookClient

Document = dict[str, Any]

TIMEOUT: Final = 30.0  # seconds; upstream's
BATCH: Final = 500  # objects in one review; a list may have many more


class Converter:
    """The versions of one definition, and the way between them."""

    remote = False
    """Whether a webhook converts, so that conversion takes time and can fail."""

    def __init__(self, outline: Outline) -> None:
        spec = outline.definition.spec or CustomResourceDefinitionSpec()
        self.resources: dict[str, CustomResource] = {}
        for version in spec.versions or ():
            resource = resource_of(outline, version)
            self.resources[resource.api_version] = resource

    @staticmethod
    def of(outline: Outline, client: WebhookClient) -> Converter:
        """The way that a definition asks for."""
        spec = outline.definition.spec
        conversion = spec.conversion if spec else None
        if conversion is not None and conversion.strategy == "Webhook" and conversion.webhook is not None:
            return WebhookConverter(outline, conversion.webhook, client)
        return Converter(outline)

    @property
    def stored(self) -> CustomResource:
        """The version that objects are stored as."""
        return next(each for each in self.resources.values() if each.api_version == each.storage_version)

    def version(self, api_version: str) -> CustomVersion | None:
        """One of the versions, served or not."""
        resource = self.resources.get(api_version)
        return resource.custom if resource is not None else None

    async def convert(self, objects: list[Document], api_version: str) -> list[Document]:
        """The same objects in another version."""
        return [{**each, "apiVersion": api_version} for each in objects]


class WebhookConverter(Converter):
    """By a webhook."""

    remote = True

    def __init__(self, outline: Outline, webhook: WebhookConversion, client: WebhookClient) -> None:
        super().__init__(outline)
        self._webhook = webhook
        self._client = client

    async def convert(self, objects: list[Document], api_version: str) -> list[Document]:
        """Ask the webhook. Raises APIError, in upstream's words, if it cannot, may not or does not."""
        converted: list[Document] = []
        for low in range(0, len(objects), BATCH):
            converted += await self._ask(objects[low : low + BATCH], api_version)
        return converted

    async def _ask(self, objects: list[Document], api_version: str) -> list[Document]:
        from ..webhooks.client import CallFailed

        waiting = [each for each in objects if each["apiVersion"] != api_version]
        if not waiting:
            return objects
        subject = f"conversion webhook for {_gvk(waiting[0])}"
        version = next((each for each in self._webhook.conversion_review_versions or () if each in _REVIEWS), None)
        if version is None:
            raise _failed("no supported conversion review versions")
        uid = new_uid()
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": waiting}
        review = {"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{version}", "request": request}
        try:
            body = await self._client.post(self._webhook.client_config, msgspec.json.encode(review), TIMEOUT)
            answers = _answers(body, uid, version)
        except CallFailed as failure:
            raise _failed(f"{subject} failed: {failure.message}") from None
        except _Malformed as problem:
            raise _failed(f"{subject} failed: {problem}") from None
        if len(answers) != len(waiting):
            raise _failed(f"{subject} returned {len(answers)} objects, expected {len(waiting)}")
        made = iter(
            [
                _accepted(subject, original, answer, api_version)
                for original, answer in zip(waiting, answers, strict=True)
            ]
        )
        return [each if each["apiVersion"] == api_version else next(made) for each in objects]


_REVIEWS: Final = ("v1", "v1beta1")


class _Malformed(ValueError):
    """An invalid answer."""


def _failed(message: str) -> APIError:
    return APIError(message, code=500, reason="")


def _gvk(document: Document) -> str:
    group, _, version = document["apiVersion"].rpartition("/")
    return f"{group}/{version}, Kind={document['kind']}"


def _answers(body: bytes, uid: str, version: str) -> list[Any]:
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Malformed(str(error)) from None
    if not isinstance(review, dict):
        raise _Malformed("the answer is not an object")
    if version == "v1":
        said = (review.get("apiVersion"), review.get("kind"))
        if said != ("apiextensions.k8s.io/v1", "ConversionReview"):
            group, _, number = str(said[0] or "").rpartition("/")
            wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview"
            raise _Malformed(f"expected webhook response of {wanted}, got {group}/{number}, Kind={said[1] or ''}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _Malformed("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise _Malformed(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise _Malformed(str(result.get("message") or f"response.result.status was '{status}', not 'Success'"))
    objects = response.get("convertedObjects") or []
    if not isinstance(objects, list):
        raise _Malformed("response.convertedObjects is not a list")
    return objects


def _accepted(subject: str, original: Document, answer: Any, api_version: str) -> Document:
    """Check an object that the webhook converted, and keep the metadata that it may not change. Raises APIError.

    Upstream converts one object at a time, hence `index 0` in its messages.
    """
    if not isinstance(answer, dict):
        raise _failed(f"{subject} failed, unexpected type {type_of(answer)} at index 0")
    if answer.get("apiVersion") != api_version:
        versions = f"expected {api_version}, received {answer.get('apiVersion') or '/'}"
        raise _failed(f"{subject} returned invalid object at index 0: invalid groupVersion ({versions})")
    if answer.get("kind") != original["kind"]:
        kinds = f"expected {original['kind']}, received {answer.get('kind') or ''}"
        raise _failed(f"{subject} returned invalid object at index 0: invalid kind ({kinds})")
    metadata = answer.get("metadata")
    start = f"{subject} returned invalid object: "
    words = f"{subject} returned invalid metadata: "
    if "metadata" not in answer:
        metadata = {}
    elif not isinstance(metadata, dict):
        raise _failed(f"{words}invalid metadata of type {type_of(metadata)} in converted object")
    before = original.get("metadata") or {}
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (before.get(name) or "") != (metadata.get(name) or ""):
            raise _failed(f"{start}must have the same {shown}: {before.get(name) or ''} != {metadata.get(name) or ''}")
    if "metadata" not in answer:
        raise _failed(f"{words}missing metadata in converted object")
    kept = dict(before)
    for name, validate in (("labels", validate_labels), ("annotations", validate_annotations)):
        found = metadata.get(name)
        kept.pop(name, None)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise _failed(f"{words}invalid metadata.{name} of type {type_of(found)} in converted object")
        for key, value in found.items():
            if not isinstance(value, str):
                what = f"metadata.{name}[{key}] must be a string, but is {type_of(value)} in converted object"
                raise _failed(words + what)
        if found != before.get(name) and (errors := validate(found, Path("metadata", name))):
            raise _failed(words + aggregate(errors))
        kept[name] = found
    return {**answer, "metadata": kept}
