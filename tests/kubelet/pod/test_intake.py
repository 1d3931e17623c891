"""Pods on the way from their source to their worker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubelet.observed import pod
from waiting import wait_for

from pybernetes.kubelet.pod.intake import PodIntake
from pybernetes.kubelet.pod.manager import PodManager
from pybernetes.kubelet.pod.refusal import PodRefused

ONE = "{containers: [{name: a, image: i}]}"


async def test_a_pod_whose_allocation_cannot_be_written_does_not_stop_the_others() -> None:
    taken: list[str] = []
    failures = [OSError("No space left on device")]

    def save() -> None:
        if failures:
            raise failures.pop()

    async def devices(_: Any) -> None: ...

    allocation = SimpleNamespace(add=lambda _: None, save=save, retry=list)
    workers = SimpleNamespace(get=lambda _: None, update=lambda pod, **_: taken.append(pod.metadata.uid))
    parts = (PodManager(), workers, None, allocation, None, devices, None)
    intake = PodIntake(*cast(Any, parts))
    running = asyncio.create_task(intake.run())
    try:
        for uid in ("one", "two"):
            intake.added(pod(ONE, uid=uid, name=uid))
            await wait_for(lambda uid=uid: uid in taken or running.done(), f"pod {uid} is taken")
            await asyncio.sleep(0)
        assert not running.done()
        assert not failures
    finally:
        running.cancel()


async def test_a_pod_that_was_put_back_while_it_ended_is_admitted_like_a_new_one() -> None:
    admitted: list[str] = []

    async def devices(_: Any) -> None: ...

    allocation = SimpleNamespace(add=lambda pod: admitted.append(pod.metadata.uid), save=lambda: None, retry=list)
    workers = SimpleNamespace(get=lambda _: None, update=lambda pod, **_: None)
    pods = PodManager()
    intake = PodIntake(*cast(Any, (pods, workers, None, allocation, None, devices, None)))
    running = asyncio.create_task(intake.run())
    try:
        static = pod(ONE, uid="static", name="static")
        intake.restart(static)
        pods.set(static)
        intake.restart(static)
        await wait_for(lambda: admitted or running.done(), "it is admitted")
        assert admitted == ["static"]
    finally:
        running.cancel()


async def test_a_device_plugin_that_does_not_answer_holds_up_its_pod_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.kubelet.pod.intake.PATIENCE", 0.01)
    taken: list[str] = []
    answers = {"allocated": asyncio.Event(), "refused": asyncio.Event(), "plain": asyncio.Event()}
    answers["plain"].set()

    async def devices(pod: Any) -> None:
        await answers[pod.metadata.uid].wait()
        if pod.metadata.uid == "refused":
            raise PodRefused("UnexpectedAdmissionError", "Allocate failed")

    allocation = SimpleNamespace(add=lambda _: None, save=lambda: None, retry=list)
    workers = SimpleNamespace(
        get=lambda _: None, update=lambda pod, rejected=False: taken.append(f"{pod.metadata.uid} {rejected}")
    )
    silent = SimpleNamespace(set=lambda *_: None, event=lambda *_: None)
    intake = PodIntake(*cast(Any, (PodManager(), workers, silent, allocation, silent, devices, None)))
    running = asyncio.create_task(intake.run())
    try:
        for uid in answers:
            intake.added(pod(ONE, uid=uid, name=uid))
        await wait_for(lambda: taken == ["plain False"], "the pod without devices is taken")
        assert {each.metadata.uid for each in cast(Any, intake.active())} == {"allocated", "refused"}
        intake.added(pod(ONE, uid="refused", name="refused"))  # shown once more: it is not asked for twice
        answers["refused"].set()
        await wait_for(lambda: taken[1:] == ["refused True"], "the refused one is")
        answers["allocated"].set()
        await wait_for(lambda: taken[2:] == ["allocated False"], "and the one that has its devices")
        assert intake.active() == []
    finally:
        running.cancel()
