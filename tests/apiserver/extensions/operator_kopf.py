"""A small operator, run by `kopf run`: greets, counts, cleans up, and has a say in what may be greeted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kopf

GROUP = "kopf.example.com"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{GROUP}/finalizer"
    certificate = os.environ["HOOK_CERTIFICATE"]
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", host="127.0.0.1", certfile=certificate, pkeyfile=certificate, cadata=_public(certificate)
    )
    settings.admission.managed = f"auto.{GROUP}"


def _public(file: str) -> bytes:
    return Path(file).read_bytes().partition(b"-----BEGIN EC")[0]


@kopf.on.mutate(GROUP, "v1", "greetings")
def polite(spec: kopf.Spec, patch: kopf.Patch, warnings: list[str], **_: Any) -> None:
    if spec.get("words") == "hey":
        patch.spec["words"] = "hello"
        warnings.append("be polite")


@kopf.on.validate(GROUP, "v1", "greetings")
def decent(spec: kopf.Spec, **_: Any) -> None:
    if "damn" in spec.get("words", ""):
        raise kopf.AdmissionError("no such words", code=418)


@kopf.on.create(GROUP, "v1", "greetings")
def created(spec: kopf.Spec, name: str, patch: kopf.Patch, **_: Any) -> dict[str, str]:
    patch.status["phase"] = "Greeted"
    return {"said": f"{spec['words']}, {name}"}


@kopf.on.update(GROUP, "v1", "greetings", field="spec.words")
def changed(old: str, new: str, patch: kopf.Patch, **_: Any) -> None:
    patch.status["changed"] = f"{old} -> {new}"


@kopf.timer(GROUP, "v1", "greetings", interval=0.2)
def tick(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["ticks"] = int(status.get("ticks", 0)) + 1


@kopf.on.delete(GROUP, "v1", "greetings")
def deleted(name: str, logger: kopf.Logger, **_: Any) -> None:
    logger.info("farewell to %s", name)
