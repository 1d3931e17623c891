"""The process of `pyb replay`: a control plane on the state of a recording, in virtual time that begins with it.

`python -m pybernetes.simulation.replay_process FILE FOLDER OPTIONS` writes FOLDER/result; FOLDER/pki has
the keys of a cluster. What is left to chance goes
as it went then: names that the server makes up, and which of several equally good nodes a pod gets.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pybernetes.simulation import determinism
from pybernetes.testing import virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    from pybernetes.cluster.recording import Change, Recording, Replayed
    from pybernetes.store.memory import MemoryStore
    from pybernetes.testing.options import ClusterOptions

AFTER = 5.0
"""Virtual seconds after the last input in which consequences count."""


def main() -> int:
    """Replay."""
    determinism.without_chance(["-P", "-m", "pybernetes.simulation.replay_process", *sys.argv[1:]])
    determinism.install()
    file, folder, chosen = sys.argv[1:]
    from pathlib import Path

    from pybernetes.cluster import recording

    made = recording.load(Path(file))
    virtual_time.EPOCH = made.begin
    virtual_time.install(stands_still=True)
    import asyncio

    import msgspec

    from pybernetes.cluster import warm
    from pybernetes.testing.options import ClusterOptions

    warm.load()
    from pybernetes.testing.loop import ClusterLoop

    loop = ClusterLoop()
    loop.autojump = True
    asyncio.set_event_loop(loop)
    options = msgspec.json.decode(chosen, type=ClusterOptions)
    result = loop.run_until_complete(_replay(made, options, Path(folder)))
    (Path(folder) / "result").write_bytes(msgspec.json.encode(result))
    return 0


async def _replay(made: Recording, options: ClusterOptions, folder: Path) -> Replayed:
    import asyncio

    import msgspec

    from pybernetes.cluster.recording import Change, Replayed, attribute
    from pybernetes.store.memory import MemoryStore
    from pybernetes.testing.control_plane import ControlPlane

    _as_then(made)
    store = MemoryStore()
    await store.start()
    for key, value in made.objects.items():
        await store.create(key, msgspec.json.encode(value))
    first = await store.revision()
    loop = asyncio.get_running_loop()
    began = loop.time()
    control_plane = ControlPlane(options, folder / "pki", folder, store)
    await control_plane.start()
    inputs = _Inputs(made, store)
    for each in made.changes:
        if not each.decision:
            await asyncio.sleep(max(0.0, began + each.at - made.begin - loop.time()))
            await inputs.apply(each)
        else:
            inputs.passed(each)
    await asyncio.sleep(max(0.0, began + made.end - made.begin - loop.time()))
    await asyncio.sleep(AFTER)
    changes = []
    watch = store.watch("/registry/", after=first)
    until = await store.revision()
    async for events in watch:
        changes += [Change(0.0, each.revision, each.key) for each in events]
        if events[-1].revision >= until:
            break
    await watch.close()
    attribute(changes, control_plane.server.traces.spans())
    page = await store.range("/registry/")
    objects = {each.key: msgspec.json.decode(each.value) for each in page.entries if each.value[:1] in (b"{", b"[")}
    return Replayed(objects, changes, inputs.skipped)


class _Inputs:
    """Makes the changes of a recording to the store of a replay."""

    def __init__(self, made: Recording, store: MemoryStore) -> None:
        self._store = store
        self._then = dict(made.objects)
        """The stored objects at this moment of the recording."""
        self.skipped = 0

    def passed(self, change: Change) -> None:
        """A decision of then; whether it is made again is not for us to say."""
        if change.value is None:
            self._then.pop(change.key, None)
        else:
            self._then[change.key] = change.value

    async def apply(self, change: Change) -> None:
        """Make a change, as far as what it is about is there."""
        import msgspec

        from pybernetes.cluster.recording import merged

        key, before = change.key, self._then.get(change.key)
        self.passed(change)
        entry = await self._store.get(key)
        if change.value is None:
            if entry is not None:
                await self._store.delete(key, revision=entry.revision)
            return
        if entry is None:
            if before is not None:
                self.skipped += 1
                return
            await self._store.create(key, msgspec.json.encode(await self._with_own_uids(change.value)))
            return
        wanted = merged(msgspec.json.decode(entry.value), before or {}, await self._with_own_uids(change.value))
        wanted["metadata"]["uid"] = msgspec.json.decode(entry.value)["metadata"]["uid"]
        await self._store.update(key, msgspec.json.encode(wanted), revision=entry.revision)

    async def _with_own_uids(self, value: Any) -> Any:
        """The same, whose owners are those of the replay: what a controller makes again has another uid."""
        import msgspec

        owners = (value.get("metadata") or {}).get("ownerReferences") if isinstance(value, dict) else None
        for each in owners or ():
            found = [key for key, then in self._then.items() if _uid(then) == each.get("uid")]
            entry = await self._store.get(found[0]) if found else None
            if entry is not None:
                each["uid"] = _uid(msgspec.json.decode(entry.value))
        return value


def _uid(content: Any) -> str:
    return str((content.get("metadata") or {}).get("uid", "")) if isinstance(content, dict) else ""


def _as_then(made: Recording) -> None:
    """Let what is random be as it was in the recording."""
    from collections import deque

    import numpy as np

    from pybernetes.api import names
    from pybernetes.scheduler.algorithm import Algorithm

    pools: dict[str, deque[str]] = {}
    nodes: dict[str, str] = {}
    for each in made.changes:
        metadata = (each.value or {}).get("metadata") or {} if isinstance(each.value, dict) else {}
        base, name = metadata.get("generateName"), metadata.get("name", "")
        if base and name not in pools.setdefault(base, deque()) and each.key not in made.objects:
            pools[base].append(name)
        if each.key.startswith("/registry/pods/") and each.value and (each.value.get("spec") or {}).get("nodeName"):
            nodes[f"{metadata.get('namespace')}/{name}"] = each.value["spec"]["nodeName"]
    by_chance = names.generate_name

    def generate_name(base: str) -> str:
        known = pools.get(base)
        return known.popleft() if known else by_chance(base)

    names.generate_name = generate_name
    choose = Algorithm._choose

    async def choose_as_then(self: Algorithm, framework: Any, state: Any, pod: Any, rows: Any, result: Any) -> None:
        await choose(self, framework, state, pod, rows, result)
        wanted = nodes.get(f"{pod.namespace}/{pod.name}")
        if wanted is None or result.total is None:
            return
        for index in np.flatnonzero(result.total == result.total.max()):
            if framework.snapshot.info(int(rows[index])).name == wanted:
                result.node_name = wanted

    Algorithm._choose = choose_as_then  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
