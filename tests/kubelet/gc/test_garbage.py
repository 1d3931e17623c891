"""What is removed, and what is kept: dead containers, old sandboxes, images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kubelet.observed import observed, pod

from pybernetes.client.clock import JumpingClock
from pybernetes.cri import v1 as cri
from pybernetes.cri.remote import Runtime
from pybernetes.kubelet.gc.containers import ContainerCollector, dead_containers, dead_sandboxes, remove_orphaned_logs
from pybernetes.kubelet.gc.images import ImageCollector
from pybernetes.kubelet.images.pulled import PulledImages
from pybernetes.kubelet.runtime.types import replace

TWO = pod("{containers: [{name: a, image: i}, {name: b, image: i}]}")


def test_of_each_container_the_last_runs_are_kept() -> None:
    state = observed(
        TWO, "a running", "a exited 1", "a exited 1", "a exited 1", "b exited 1", "b exited 1", "b exited 1"
    )
    assert {each.id for each in dead_containers(state, 1, 1000.0, 0.0)} == {"a-0", "a-1", "b-0"}
    assert {each.id for each in dead_containers(state, 0, 1000.0, 0.0)} == {"a-0", "a-1", "a-2", "b-0", "b-1"}
    assert dead_containers(state, 1, 1000.0, 10_000.0) == []


def test_sandboxes_go_when_nothing_is_left_in_them() -> None:
    state = observed(TWO, "a running")
    old = replace(state.sandboxes[0], id="old", ready=False)
    used = replace(state, containers=(*state.containers, replace(state.containers[0], id="x", sandbox_id="old")))
    assert dead_sandboxes(replace(state, sandboxes=(*state.sandboxes, old))) == ["old"]
    assert dead_sandboxes(replace(used, sandboxes=(*state.sandboxes, old))) == []
    assert dead_sandboxes(replace(state, sandboxes=(replace(old), old))) == ["old"]


class FakeRuntime:
    def __init__(self, mountpoint: Path) -> None:
        self.images = {name: cri.Image(id=name, repo_tags=[f"{name}:1"], size=10) for name in ("used", "old", "new")}
        self.images["pinned"] = cri.Image(id="pinned", size=10, pinned=True)
        self._mountpoint = str(mountpoint)

    async def list_images(self) -> Any:
        return SimpleNamespace(images=list(self.images.values()))

    async def list_containers(self) -> Any:
        return SimpleNamespace(containers=[cri.Container(id="c", image_ref="used")])

    async def image_fs_info(self) -> Any:
        usage = cri.FilesystemUsage(fs_id=cri.FilesystemIdentifier(mountpoint=self._mountpoint))
        return cri.ImageFsInfoResponse(image_filesystems=[usage])

    async def remove_image(self, request: Any) -> None:
        del self.images[request.image.image]


async def test_images_go_when_the_disk_is_full_the_longest_unused_first(tmp_path: Path) -> None:
    runtime, clock = FakeRuntime(tmp_path), JumpingClock()
    told: list[str] = []

    def collector(high: int, low: int) -> ImageCollector:
        return ImageCollector(
            cast(Runtime, runtime),
            clock,
            PulledImages(tmp_path),
            lambda *words: told.append(" ".join(words)),
            high=high,
            low=low,
            least_age=120.0,
        )

    await collector(101, 100).collect()
    assert len(runtime.images) == 4
    full = collector(1, 0)
    await full.collect()
    assert len(runtime.images) == 4  # too young
    assert told[0].startswith("Warning FreeDiskSpaceFailed Failed to garbage collect required amount of images.")
    clock.advance(300.0)
    await full.collect()
    assert set(runtime.images) == {"used", "pinned"}


async def test_a_node_under_disk_pressure_removes_all_unused_images(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    subject = ImageCollector(cast(Runtime, runtime), JumpingClock(), PulledImages(tmp_path), lambda *_: None)
    await subject.delete_unused()
    assert set(runtime.images) == {"used", "pinned"}


def test_logs_of_pods_that_are_gone_go_and_links_that_lead_nowhere(tmp_path: Path) -> None:
    pods, links = tmp_path / "pods", tmp_path / "containers"
    for name in ("ns_alive_u1", "ns_gone_u2", "strange"):
        (pods / name / "c").mkdir(parents=True)
        (pods / name / "c" / "0.log").write_text("x")
    links.mkdir()
    (links / "alive.log").symlink_to(pods / "ns_alive_u1" / "c" / "0.log")
    (links / "gone.log").symlink_to(pods / "ns_gone_u2" / "c" / "0.log")
    remove_orphaned_logs(pods, links, {"u1"})
    assert {each.name for each in pods.iterdir()} == {"ns_alive_u1", "strange"}
    assert {each.name for each in links.iterdir()} == {"alive.log"}
    remove_orphaned_logs(tmp_path / "none", tmp_path / "neither", ())


async def test_of_all_dead_containers_together_so_many_are_kept(tmp_path: Path) -> None:
    removed: list[str] = []

    class Removing:
        async def remove_container(self, request: Any) -> None:
            removed.append(request.container_id)

    state = observed(TWO, "a running", "a exited 1", "a exited 1", "b running", "b exited 1", "b exited 1")
    for keep, in_all, expected in (
        (1, -1, {"a-0", "b-0"}),
        (2, 1, {"a-0", "b-0", "b-1"}),
        (2, 0, {"a-0", "a-1", "b-0", "b-1"}),
    ):
        removed.clear()
        subject = ContainerCollector(
            cast(Runtime, Removing()), JumpingClock(), lambda: [state], None, keep=keep, keep_in_all=in_all
        )
        await subject.collect()
        assert set(removed) == expected, (keep, in_all)
    removed.clear()
    await subject.collect(all_dead=True)
    assert set(removed) == {"a-0", "a-1", "b-0", "b-1"}
