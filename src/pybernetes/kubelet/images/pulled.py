"""Remembers which images this kubelet pulled, and with whose credentials, across restarts.

Images that were here before (imported, preloaded) may be used by every pod. One that was pulled with a secret may be
used by pods that have the same secret or the same credentials; all others must pull it themselves. The intent is
written before a pull, so that an image whose pull was interrupted does not pass for preloaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from pybernetes.component import state_files

from .credentials import Credential

log = logging.getLogger(__name__)


class PulledSecret(msgspec.Struct, rename="camel"):
    """The credentials an image was pulled with."""

    uid: str
    namespace: str
    name: str
    credential_hash: str


class PulledRecord(msgspec.Struct, rename="camel", omit_defaults=True):
    """An image that was pulled. `images`: the names that it was asked for by."""

    image_ref: str
    images: list[str] = msgspec.field(default_factory=list)
    node_pods_accessible: bool = False
    secrets: list[PulledSecret] = msgspec.field(default_factory=list)


class PulledImages:
    """The records, in the folder `image_manager` of the kubelet."""

    def __init__(self, root: Path) -> None:
        self._pulling = root / "image_manager" / "pulling"
        self._pulled = root / "image_manager" / "pulled"
        for each in (self._pulling, self._pulled):
            each.mkdir(parents=True, exist_ok=True)
        self.checks: Counter[str] = Counter()
        """Results of `needs_pull`, in upstream's words."""
        self._records: dict[str, PulledRecord] = {}
        for path in self._pulled.glob("*.json"):
            record = state_files.read(path, msgspec.json.Decoder(PulledRecord).decode)
            if record is not None:
                self._records[record.image_ref] = record

    def intend(self, image: str) -> None:
        """A pull begins; raises OSError if that cannot be written down."""
        state_files.write(self._pulling / _name(image), msgspec.json.encode({"image": image}))

    def failed(self, image: str) -> None:
        """It came to nothing."""
        with contextlib.suppress(OSError):
            (self._pulling / _name(image)).unlink(missing_ok=True)

    def succeeded(self, image: str, ref: str, credential: Credential | None) -> None:
        """The image is here, by these credentials (None: all pods may use it)."""
        record = self._records.setdefault(ref, PulledRecord(ref))
        if image not in record.images:
            record.images.append(image)
        if credential is None or not credential.secret[0]:
            record.node_pods_accessible, record.secrets = True, []
        elif not record.node_pods_accessible:
            secret = PulledSecret(*credential.secret, credential.hash)
            record.secrets = [each for each in record.secrets if each.uid != secret.uid] + [secret]
        try:
            state_files.write(self._pulled / _name(ref), msgspec.json.encode(record))
        except OSError as error:  # the intent stays: after a restart the image is pulled once more
            log.error("the record of image %s cannot be written: %s", image, error)
            return
        self.failed(image)

    def needs_pull(self, image: str, ref: str, credentials: Sequence[Credential]) -> bool:
        """Whether a pod with these credentials must pull an image although it is here."""
        record = self._records.get(ref)
        if record is None:
            needed, why = (self._pulling / _name(image)).exists(), "credentialPolicyAllowed"
        else:
            needed = not record.node_pods_accessible and not self._matches(record, credentials)
            why = "credentialRecordFound"
        self.checks["mustAuthenticate" if needed else why] += 1
        return needed

    def count(self) -> int:
        """How many records of images there are."""
        return len(self._records)

    def intents(self) -> int:
        """How many records of pulls under way, or of the time before a restart, there are."""
        with contextlib.suppress(OSError):
            return len(os.listdir(self._pulling))
        return 0

    def keep(self, refs: Iterable[str]) -> None:
        """Forget all images but these: the others have been removed."""
        alive = set(refs)
        for ref in [ref for ref in self._records if ref not in alive]:
            del self._records[ref]
            with contextlib.suppress(OSError):
                (self._pulled / _name(ref)).unlink(missing_ok=True)

    def _matches(self, record: PulledRecord, credentials: Sequence[Credential]) -> bool:
        known = {(each.uid, each.namespace, each.name) for each in record.secrets}
        hashes = {each.credential_hash for each in record.secrets}
        return any(each.secret in known or each.hash in hashes for each in credentials)


def _name(text: str) -> str:
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}.json"
