"""One leads, the others wait, and take over when it stops; on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock
from pybernetes.client.leaderelection import LeaderElector, LeadershipLost

Connect = Callable[[], Client]


class Candidate:
    """An elector that runs, with a clock of its own that a test can move."""

    def __init__(self, client: Client, lock: str, name: str) -> None:
        self.clock = JumpingClock()
        self.heard: list[str] = []
        self.elector = LeaderElector(
            client, self.clock, name=lock, namespace="default", identity=name, on_new_leader=self.heard.append
        )
        self.leading = asyncio.Event()
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leading.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.clear()

    async def kill(self) -> None:
        """As if the process died: no release."""

        async def nothing() -> None:
            pass

        self.elector._release = nothing  # type: ignore[method-assign]
        await self.stop()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def until_leading(self, step: float = 0.0) -> None:
        async with asyncio.timeout(30):
            while not self.leading.is_set():
                await asyncio.sleep(0.01)
                if step:
                    self.clock.advance(step)


async def lease(client: Client, name: str) -> Lease:
    return await client.get(Lease, name, "default")


async def test_the_first_leads_and_the_lease_says_so(connect: Connect) -> None:
    async with connect() as client:
        one = Candidate(client, "first", "one")
        await one.until_leading()
        found = (await lease(client, "first")).spec
        assert (found.holder_identity, found.lease_duration_seconds, found.lease_transitions) == ("one", 15, 0)
        assert found.acquire_time == found.renew_time
        assert one.elector.is_leader
        assert one.heard == ["one"]
        one.clock.advance(2)
        async with asyncio.timeout(30):
            while (await lease(client, "first")).spec.renew_time == found.renew_time:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await lease(client, "first")).spec.acquire_time == found.acquire_time
        await one.stop()


async def test_who_stops_releases_and_another_takes_over_at_once(connect: Connect) -> None:
    async with connect() as client:
        one = Candidate(client, "release", "one")
        await one.until_leading()
        two = Candidate(client, "release", "two")
        async with asyncio.timeout(30):
            while two.elector.leader != "one":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await one.stop()
        assert not (await lease(client, "release")).spec.holder_identity
        two.clock.advance(5)  # its next try
        await two.until_leading()
        found = (await lease(client, "release")).spec
        assert (found.holder_identity, found.lease_transitions) == ("two", 1)
        assert two.heard[0] == "one"
        assert two.heard[-1] == "two"
        await two.stop()


async def test_the_lease_of_the_dead_is_taken_after_its_duration_and_not_before(connect: Connect) -> None:
    async with connect() as client:
        one = Candidate(client, "dead", "one")
        await one.until_leading()
        await one.kill()
        two = Candidate(client, "dead", "two")
        async with asyncio.timeout(30):
            while two.elector.leader != "one":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for _ in range(2):
            two.clock.advance(6)
            await asyncio.sleep(0.05)
            assert not two.leading.is_set()
        await two.until_leading(step=1.0)
        assert (await lease(client, "dead")).spec.lease_transitions == 1
        await two.stop()


async def test_who_cannot_renew_stops_leading(connect: Connect) -> None:
    async with connect() as client:
        one = Candidate(client, "lost", "one")
        await one.until_leading()

        async def refuse(*_: object, **__: object) -> Lease:
            raise errors.InternalError("no")

        client_of_one = one.elector._client
        client_of_one.update = client_of_one.get = refuse  # type: ignore[method-assign,assignment]
        async with asyncio.timeout(30):
            while one.leading.is_set():
                one.clock.advance(2)
                await asyncio.sleep(0.01)
        with pytest.raises(LeadershipLost):
            await one.task


async def test_whose_lease_was_taken_stops_at_once(connect: Connect) -> None:
    async with connect() as client:
        one = Candidate(client, "stolen", "one")
        await one.until_leading()
        await client.patch(Lease, "stolen", {"spec": {"holderIdentity": "thief"}}, "default")
        one.clock.advance(2.5)
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(one.task, 30)
        assert (await lease(client, "stolen")).spec.holder_identity == "thief", "it is not ours to release"


async def test_when_the_work_ends_so_does_the_lead(connect: Connect) -> None:
    async with connect() as client:

        async def fail() -> None:
            raise RuntimeError("the work failed")

        elector = LeaderElector(client, JumpingClock(), name="work", namespace="default", identity="x")
        with pytest.raises(RuntimeError, match="the work failed"):
            await elector.run(fail)
        assert not (await lease(client, "work")).spec.holder_identity


@pytest.mark.parametrize(("lease_duration", "renew", "retry"), [(10, 10, 2), (15, 2, 2)])
async def test_times_that_make_no_sense_are_refused(
    connect: Connect, lease_duration: float, renew: float, retry: float
) -> None:
    async with connect() as client:
        with pytest.raises(ValueError, match="must be greater"):
            LeaderElector(
                client,
                JumpingClock(),
                name="x",
                namespace="default",
                identity="x",
                lease_duration=lease_duration,
                renew_deadline=renew,
                retry_period=retry,
            )


async def test_a_lease_with_odd_contents_is_taken_when_it_has_expired(connect: Connect) -> None:
    async with connect() as client:
        body = {
            "metadata": {"name": "odd"},
            "spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 1, "leaseTransitions": 2**31 - 1},
        }
        await client.call("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", body)
        one = Candidate(client, "odd", "one")
        await one.until_leading(step=1)
        found = (await lease(client, "odd")).spec
        assert (found.holder_identity, found.lease_transitions) == ("one", 2**31 - 1)
        await one.stop()


async def test_an_unexpected_error_in_an_attempt_is_not_the_end_of_the_election(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect() as client:
        attempt, failures = LeaderElector._try_once, [RuntimeError("a mistake"), RuntimeError("another")]

        async def broken(self: LeaderElector) -> bool:
            if failures:
                raise failures.pop()
            return await attempt(self)

        monkeypatch.setattr(LeaderElector, "_try_once", broken)
        one = Candidate(client, "unexpected", "one")
        await one.until_leading(step=1)
        assert not failures
        await one.stop()
