"""A small operator, run by `kopf run`: keeps a ConfigMap for every Greeting, counts, and cleans up."""

from __future__ import annotations

from typing import Any

import kopf

GROUP = "kopf.example.com"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{GROUP}/finalizer"


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
