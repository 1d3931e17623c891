"""Volumes that are folders: emptyDir, hostPath, groups, parts of volumes. Mounts are real, so root is needed."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import (
    Container,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    Pod,
    PodSecurityContext,
    PodSpec,
    ResourceRequirements,
    Volume,
    VolumeMount,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import parse
from pybernetes.client.clock import FakeClock
from pybernetes.component.removal import remove_tree
from pybernetes.cri.mounting import bind, is_mount_point, mounts, unmount
from pybernetes.kubelet.error_text import why
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.service_account_tokens import Tokens
from pybernetes.kubelet.volumes import empty_dir, host_path, subpath
from pybernetes.kubelet.volumes.contents import nested_mount_points
from pybernetes.kubelet.volumes.host import Host, fs_user
from pybernetes.kubelet.volumes.ownership import set_group
from pybernetes.kubelet.volumes.safeopen import make_folders_beneath

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
ALLOCATABLE = {"memory": parse("1Gi")}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    clock = FakeClock()
    facts = NodeFacts("node-1", allocatable=ALLOCATABLE)
    yield Host(tmp_path / "kubelet", facts, None, None, Tokens(None, clock), lambda *_: None)
    for each in reversed(mounts(tmp_path)):
        unmount(each.path)
    assert not mounts(tmp_path)


def _pod(*, group: int | None = None, limits: list[str] | None = None, **spec: Any) -> Pod:
    containers = [
        Container(name=f"c{number}", resources=ResourceRequirements(limits={"memory": limit}))
        for number, limit in enumerate(limits or [])
    ]
    context = PodSecurityContext(fs_group=group)
    spec.setdefault("containers", containers)
    return Pod(
        metadata=ObjectMeta(name="web", namespace="shop", uid="u1"), spec=PodSpec(security_context=context, **spec)
    )


async def _empty(host: Host, pod: Pod, **source: Any) -> Path:
    volume = Volume(name="data", empty_dir=EmptyDirVolumeSource(**source))
    return (await empty_dir.set_up(host, pod, volume)).path


def _type_and_size(path: Path) -> tuple[str, int]:
    found = os.statvfs(path)
    return mounts(path)[0].type, found.f_blocks * found.f_frsize


async def test_an_empty_dir_is_open_to_all_and_keeps_its_files(host: Host) -> None:
    path = await _empty(host, _pod())
    assert path == host.root / "pods/u1/volumes/kubernetes.io~empty-dir/data"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o777
    _touch(path / "file")
    os.chmod(path, 0o700)  # what its users do with it is theirs
    assert await _empty(host, _pod()) == path
    assert os.listdir(path) == ["file"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


async def test_an_unfinished_empty_dir_is_finished(host: Host) -> None:
    path = host.root / "pods/u1/volumes/kubernetes.io~empty-dir/data"
    _make(path, 0o700)
    assert await _empty(host, _pod()) == path
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o777


@root_only
@pytest.mark.parametrize(
    ("limits", "size_limit", "expected"),
    [
        ([], None, 1 << 30),
        ([], "64Mi", 64 << 20),
        ([], "2Gi", 1 << 30),
        (["32Mi", "16Mi"], None, 48 << 20),
        (["32Mi", "16Mi"], "8Mi", 8 << 20),
        (["32Mi"], "64Mi", 32 << 20),
    ],
)
async def test_memory_is_as_large_as_the_least_of_all_limits(
    host: Host, limits: list[str], size_limit: str | None, expected: int
) -> None:
    path = await _empty(host, _pod(limits=limits), medium="Memory", size_limit=size_limit)
    assert _type_and_size(path) == ("tmpfs", expected)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o1777
    _touch(path / "file")
    await _empty(host, _pod(limits=limits), medium="Memory", size_limit=size_limit)
    assert os.listdir(path) == ["file"]
    assert len(mounts(path)) == 1


@root_only
async def test_after_a_reboot_memory_is_mounted_again(host: Host) -> None:
    path = await _empty(host, _pod(), medium="Memory")
    unmount(path)
    await _empty(host, _pod(), medium="Memory")
    assert is_mount_point(path)


async def test_an_unknown_medium_is_refused(host: Host) -> None:
    with pytest.raises(ValueError, match=r'^unknown storage medium "Tape"$'):
        await _empty(host, _pod(), medium="Tape")


async def test_huge_pages_must_be_asked_for(host: Host) -> None:
    with pytest.raises(ValueError, match="medium HugePages: hugePages storage requested, but there is no resource"):
        await _empty(host, _pod(), medium="HugePages")
    requests = ResourceRequirements(requests={"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"})
    two = _pod(containers=[Container(name="c", resources=requests)])
    with pytest.raises(ValueError, match="can't be used if container requests multiple huge page sizes"):
        await _empty(host, two, medium="HugePages")


@root_only
async def test_an_empty_dir_belongs_to_the_group(host: Host) -> None:
    for medium, mode in ((None, 0o2777), ("Memory", 0o3777)):
        found = os.stat(await _empty(host, _pod(group=4711), medium=medium))
        assert found.st_gid == 4711
        assert stat.S_IMODE(found.st_mode) == mode


@root_only
def test_a_group_gets_what_the_owner_has_and_links_are_not_followed(tmp_path: Path) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    outside.write_text("x")
    outside.chmod(0o600)
    (volume / "d").mkdir(parents=True)
    (volume / "d" / "file").write_text("x")
    (volume / "d" / "file").chmod(0o600)
    (volume / "link").symlink_to(outside)
    (volume / "folder-link").symlink_to(tmp_path)
    set_group(volume, 4711, read_only=False)
    assert (outside.stat().st_gid, stat.S_IMODE(outside.stat().st_mode)) == (os.getegid(), 0o600)
    assert tmp_path.stat().st_gid != 4711
    file, folder = (volume / "d" / "file").stat(), (volume / "d").stat()
    assert (file.st_gid, stat.S_IMODE(file.st_mode)) == (4711, 0o660)
    assert folder.st_gid == 4711
    assert folder.st_mode & 0o2770 == 0o2770
    assert (volume / "link").lstat().st_gid == 4711
    set_group(volume, 4712, read_only=True)
    assert stat.S_IMODE((volume / "d" / "file").stat().st_mode) == 0o660
    (volume / "d" / "file").chmod(0o400)
    set_group(volume, 4712, read_only=True)
    assert stat.S_IMODE((volume / "d" / "file").stat().st_mode) == 0o440


@root_only
def test_only_on_mismatch_looks_at_the_topmost_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.chown(tmp_path, -1, 4711)
    tmp_path.chmod(0o2770)
    set_group(tmp_path, 4711, read_only=False, only_on_mismatch=True)
    assert (tmp_path / "file").stat().st_gid != 4711
    tmp_path.chmod(0o770)
    set_group(tmp_path, 4711, read_only=False, only_on_mismatch=True)
    assert (tmp_path / "file").stat().st_gid == 4711


@pytest.fixture
def things(tmp_path: Path) -> Path:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("dir")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "type", "wrong"),
    [
        ("dir", "Directory", None),
        ("link", "Directory", None),
        ("file", "Directory", "a directory"),
        ("none", "Directory", "a directory"),
        ("file", "File", None),
        ("dir", "File", "a file"),
        ("socket", "Socket", None),
        ("file", "Socket", "a socket file"),
        ("file", "CharDevice", "a character device"),
        ("file", "BlockDevice", "a block device"),
        ("file", "DirectoryOrCreate", "a directory"),
        ("dir", "FileOrCreate", "a file"),
        ("none", "", None),
    ],
)
async def test_host_paths_are_what_they_should_be(
    host: Host, things: Path, name: str, type: str, wrong: str | None
) -> None:
    path = str(things / name)
    volume = Volume(name="v", host_path=HostPathVolumeSource(path=path, type=type))
    if wrong is None:
        assert str((await host_path.set_up(host, _pod(), volume)).path) == path
        return
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        await host_path.set_up(host, _pod(), volume)
    assert str(caught.value) == f"hostPath type check failed: {path} is not {wrong}"


async def test_host_paths_are_made_if_the_type_says_so(host: Host, tmp_path: Path) -> None:
    for path, type in ((tmp_path / "a/b", "DirectoryOrCreate"), (tmp_path / "a/b/c", "FileOrCreate")):
        await host_path.set_up(
            host, _pod(), Volume(name="v", host_path=HostPathVolumeSource(path=str(path), type=type))
        )
        assert stat.S_ISDIR(os.stat(path).st_mode) == (type == "DirectoryOrCreate")
    with pytest.raises(ValueError, match=r"invalid HostPath `/a/../b`: must not contain '..'"):
        await host_path.set_up(host, _pod(), Volume(name="v", host_path=HostPathVolumeSource(path="/a/../b")))
    with pytest.raises(ValueError, match="Odd is an invalid volume type"):
        host_path.check_type("/", "Odd")
    with pytest.raises(ValueError, match="hostPath type check failed"):
        host_path.check_type("/dev/null", "BlockDevice")
    host_path.check_type("/dev/null", "CharDevice")


@root_only
def test_a_part_of_a_volume_is_bound_and_made_like_the_volume(host: Host, tmp_path: Path) -> None:
    volume, pod = tmp_path / "volume", tmp_path / "pod"
    volume.mkdir()
    volume.chmod(0o2775)
    place = subpath.prepare(pod, "data", volume, "main", 3, "a/b")
    assert place == pod / "volume-subpaths/data/main/3"
    (place / "file").write_text("x")
    assert (volume / "a/b/file").read_text() == "x"
    assert stat.S_IMODE((volume / "a").stat().st_mode) == 0o2775
    assert subpath.prepare(pod, "data", volume, "main", 3, "a/b") == place
    assert len(mounts(pod)) == 1
    (volume / "a/b").rename(volume / "a/c")
    (volume / "a/b").mkdir()
    assert subpath.prepare(pod, "data", volume, "main", 3, "a/b") == place
    assert os.listdir(place) == []
    assert len(mounts(pod)) == 1


@root_only
def test_a_part_may_be_a_file_or_a_link_inside(host: Host, tmp_path: Path) -> None:
    volume, pod = tmp_path / "volume", tmp_path / "pod"
    (volume / "..data").mkdir(parents=True)
    (volume / "..data/key").write_text("value")
    (volume / "key").symlink_to("..data/key")
    place = subpath.prepare(pod, "data", volume, "main", 0, "key")
    assert place.read_text() == "value"
    (volume / "d/e").mkdir(parents=True)
    (volume / "d/up").symlink_to("../..data")
    assert (subpath.prepare(pod, "data", volume, "main", 1, "d/up") / "key").read_text() == "value"
    subpath.prepare(pod, "data", volume, "main", 2, "d/up/new")
    assert (volume / "..data/new").is_dir()


@root_only
@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("/etc", "out"),
        ("/etc", "out/new"),
        ("../..", "out"),
        ("../outside", "out/new/deep"),
        ("/proc/self/root/etc", "out"),
        ("loop", "loop"),
    ],
)
def test_no_link_leads_out_of_a_volume(host: Host, tmp_path: Path, link: str, path: str) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    volume.mkdir()
    outside.mkdir()
    (volume / path.split("/")[0]).symlink_to(link)
    with pytest.raises(OSError):  # noqa: PT011
        subpath.prepare(tmp_path / "pod", "data", volume, "main", 0, path)
    assert not mounts(tmp_path / "pod")
    assert os.listdir(outside) == []


def test_a_file_in_the_way_of_a_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_folders_beneath(tmp_path, "file/x", 0o755)


@root_only
def test_a_read_only_bind_cannot_be_written_to(host: Host, tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    target.mkdir()
    bind(str(source), target, read_only=True)
    with pytest.raises(OSError, match="Read-only file system"):
        (target / "x").touch()
    (source / "x").touch()
    assert is_mount_point(target)
    assert not is_mount_point(source)


def test_places_for_volumes_in_volumes() -> None:
    def pod(*paths: tuple[str, str]) -> Pod:
        mounts = [VolumeMount(name=name, mount_path=path) for name, path in paths]
        return Pod(spec=PodSpec(containers=[Container(name="c", volume_mounts=mounts)]))

    assert nested_mount_points(pod(("a", "/dir"), ("b", "/dir/nested"), ("c", "/dir/nested/deep")), "a") == ["nested"]
    assert nested_mount_points(pod(("a", "/dir"), ("b", "/dir/nested"), ("c", "/dir/nested.x")), "a") == [
        "nested",
        "nested.x",
    ]
    assert nested_mount_points(pod(("a", "/dir/"), ("b", "/dirx"), ("c", "/dir/x/y")), "a") == ["x/y"]
    assert nested_mount_points(pod(("a", "/dir"), ("b", "/dir/x")), "b") == []


def test_the_one_user_of_all_containers() -> None:
    def user(of_pod: int | None, *own: int | None) -> int | None:
        from pybernetes.api.core.v1 import SecurityContext

        containers = [Container(name="c", security_context=SecurityContext(run_as_user=each)) for each in own]
        context = PodSecurityContext(run_as_user=of_pod)
        return fs_user(Pod(spec=PodSpec(containers=containers, security_context=context)))

    assert user(None, 5, 5) == 5
    assert user(None, 5, 6) is None
    assert user(None, 5, None) is None
    assert user(5, None, 5) == 5
    assert user(5, None, 6) is None


def _touch(path: Path) -> None:
    path.touch()


def _make(path: Path, mode: int) -> None:
    path.mkdir(parents=True, mode=mode)


def test_errors_are_in_the_words_of_kubernetes() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        os.listdir("/nope")
    assert why(caught.value) == "/nope: no such file or directory"
    assert why(ValueError("wrong")) == "wrong"
    assert why(TimeoutError()) == "TimeoutError"


def test_a_group_is_set_in_a_tree_deeper_than_pythons_stack(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    deepest = top.joinpath(*["d"] * 1500)
    os.makedirs(top)
    folder = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    set_group(top, os.getegid(), read_only=False)
    assert os.stat(deepest).st_mode & stat.S_ISGID
    assert os.stat(top).st_mode & stat.S_ISGID
    remove_tree(top)
