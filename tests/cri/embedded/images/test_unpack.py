"""Hostile layers: nothing outside of the layer's folder is touched, and nothing grows without an end."""

from __future__ import annotations

import io
import os
import stat
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybernetes.component.removal import remove_tree
from pybernetes.cri.embedded.images.unpack import UnsafeArchive, unpack
from pybernetes.cri.embedded.images.usage import measure

if os.geteuid() != 0:
    pytest.skip("needs root: owners and whiteouts", allow_module_level=True)

ROOM = 10 << 20


class Tar:
    """A layer in the making."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self._tar = tarfile.open(fileobj=self.out, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def add(self, name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", link: str = "", **also: int) -> Tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, link, len(content)
        for key, value in also.items():
            setattr(info, key, value)
        self._tar.addfile(info, io.BytesIO(content))
        return self

    def link(self, name: str, target: str) -> Tar:
        return self.add(name, tarfile.SYMTYPE, link=target)

    def hard(self, name: str, target: str) -> Tar:
        return self.add(name, tarfile.LNKTYPE, link=target)

    def stream(self) -> io.BytesIO:
        self._tar.close()
        return io.BytesIO(self.out.getvalue())


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder beside the layer's, that must be the same after each test."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "layer").mkdir()
    yield tmp_path / "outside"
    assert {each.name for each in tmp_path.iterdir()} == {"outside", "layer"}
    assert {each.name for each in (tmp_path / "outside").iterdir()} == {"secret"}
    found = (tmp_path / "outside" / "secret").stat()
    assert (tmp_path / "outside" / "secret").read_text() == "secret"
    assert (found.st_nlink, found.st_mode & 0o7777, found.st_uid) == (1, 0o644, 0)


def run(outside: Path, tar: Tar, most_bytes: int = ROOM, most_entries: int = 10_000) -> Path:
    layer = outside.parent / "layer"
    unpack(tar.stream(), layer, most_bytes=most_bytes, most_entries=most_entries)
    return layer


@pytest.mark.parametrize(
    "name", ["../outside/x", "a/../../outside/x", "..", "a/..", "./../x", "/../outside/x", "a/b/../../../x", "x" * 5000]
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE])
def test_paths_that_lead_out_are_refused(outside: Path, name: str, kind: bytes) -> None:
    with pytest.raises(UnsafeArchive):
        run(outside, Tar().add(name, kind, link="x"))


def test_an_absolute_path_is_one_in_the_layer(outside: Path) -> None:
    layer = run(outside, Tar().add(f"{outside}/secret", content=b"mine"))
    assert (layer / str(outside).lstrip("/") / "secret").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "target", ["{outside}", "../outside", "../../../../../../../..{outside}", "/proc/self/root{outside}"]
)
def test_files_written_through_links_stay_in_the_layer(outside: Path, target: str) -> None:
    target = target.format(outside=outside)
    tar = Tar().link("out", target).add("out/secret", content=b"mine").add("out/new", content=b"new")
    try:
        layer = run(outside, tar)
    except (UnsafeArchive, OSError):
        return
    assert (layer / "out" / "secret").read_bytes() == b"mine"


def test_a_chain_of_links_does_not_lead_out(outside: Path) -> None:
    tar = Tar().add("a", tarfile.DIRTYPE).link("a/b", "..").link("c", "a/b/..").link("d", "c/../outside")
    tar.add("d/secret", content=b"mine")
    try:
        run(outside, tar)
    except (UnsafeArchive, OSError):
        pass


def test_a_file_in_place_of_a_link_replaces_the_link_and_not_its_target(outside: Path) -> None:
    layer = run(outside, Tar().link("x", f"{outside}/secret").add("x", content=b"mine", mode=0o600, uid=7))
    assert not (layer / "x").is_symlink()
    assert (layer / "x").read_bytes() == b"mine"


def test_a_folder_in_place_of_a_link_replaces_the_link(outside: Path) -> None:
    layer = run(outside, Tar().link("x", str(outside)).add("x", tarfile.DIRTYPE, mode=0o700, uid=7))
    assert not (layer / "x").is_symlink()
    assert (layer / "x").stat().st_uid == 7


def test_a_link_in_place_of_a_folder_does_not_get_the_folders_mode(outside: Path) -> None:
    run(outside, Tar().add("x", tarfile.DIRTYPE, mode=0o777, uid=7).link("x", str(outside)))
    assert outside.stat().st_uid == 0


@pytest.mark.parametrize(
    "target", ["../outside/secret", "{outside}/secret", "out/secret", "/etc/passwd", "nothing", "a", ""]
)
def test_hard_links_lead_to_files_of_the_layer_only(outside: Path, target: str) -> None:
    tar = Tar().add("a", tarfile.DIRTYPE).link("out", str(outside)).hard("stolen", target.format(outside=outside))
    with pytest.raises(UnsafeArchive, match=r"hard link|leads out"):
        run(outside, tar)


def test_a_hard_link_to_a_link_is_not_followed(outside: Path) -> None:
    tar = Tar().link("out", f"{outside}/secret").hard("x", "out").add("x", content=b"mine")
    with pytest.raises(UnsafeArchive, match="no file"):
        run(outside, tar)


def test_a_hard_link_in_the_layer_is_one(outside: Path) -> None:
    layer = run(outside, Tar().add("a", content=b"1").hard("b", "/a").hard("a", "a"))
    assert (layer / "a").stat().st_ino == (layer / "b").stat().st_ino


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_device_nodes_are_left_out(outside: Path, kind: bytes) -> None:
    layer = run(outside, Tar().add("dev/sda", kind, devmajor=8, devminor=0).add("ok"))
    assert not (layer / "dev" / "sda").exists()
    assert (layer / "ok").exists()


def test_whiteouts_become_overlayfs_ones_and_hide_nothing_else(outside: Path) -> None:
    layer = run(outside, Tar().add("a/.wh.gone").add("b/.wh..wh..opq"))
    found = (layer / "a" / "gone").lstat()
    assert stat.S_ISCHR(found.st_mode)
    assert found.st_rdev == 0
    assert os.getxattr(layer / "b", "trusted.overlay.opaque") == b"y"
    for name in (".wh.", ".wh..", ".wh...", "a/.wh..."):
        with pytest.raises(UnsafeArchive, match="whiteout"):
            run(outside, Tar().add(name))


def test_a_whiteout_in_a_linked_folder_removes_nothing_outside(outside: Path) -> None:
    try:
        run(outside, Tar().link("out", str(outside)).add("out/.wh.secret"))
    except UnsafeArchive:
        pass


def test_what_aufs_left_in_old_images_is_not_seen(outside: Path) -> None:
    tar = Tar().add("", tarfile.DIRTYPE, mtime=5).add(".wh..wh.aufs").add(".wh..wh.orph", tarfile.DIRTYPE, mode=0o700)
    tar.add(".wh..wh.orph/deep/file").add(".wh..wh.plnk/", tarfile.DIRTYPE).add(".wh..wh.plnk/9.7", content=b"linked")
    tar.add(".wh..wh.plnk/deep/file").add(".wh..wh.plnk/.wh..wh..opq").add("a/.wh..wh.more/file")
    tar.hard("one", ".wh..wh.plnk/9.7").hard("two", "/.wh..wh.plnk/9.7").add("a/.wh..wh..opq")
    layer = run(outside, tar)
    assert sorted(os.listdir(layer)) == ["a", "one", "two"]
    assert os.listdir(layer / "a") == []
    assert os.getxattr(layer / "a", "trusted.overlay.opaque") == b"y"
    found = (layer / "one").stat()
    assert ((layer / "one").read_bytes(), found.st_nlink) == (b"linked", 2)
    assert found.st_ino == (layer / "two").stat().st_ino
    assert layer.stat().st_mtime == 5


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_what_aufs_left_leads_nowhere(outside: Path, kind: bytes) -> None:
    tar = Tar().add("a").add(".wh..wh.plnk", kind, link="a" if kind == tarfile.LNKTYPE else str(outside))
    layer = run(outside, tar.add(".wh..wh.plnk/secret", content=b"mine").add(".wh..wh.plnk/.wh.secret"))
    assert os.listdir(layer) == ["a"]


@pytest.mark.parametrize(
    "name",
    ["trusted.overlay.redirect", "trusted.overlay.opaque", "user.overlay.opaque", "security.selinux", "system.x"],
)
def test_attributes_that_steer_the_kernel_are_not_taken_over(outside: Path, name: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("x")
        info.type = tarfile.DIRTYPE
        info.pax_headers = {f"SCHILY.xattr.{name}": "/etc", "SCHILY.xattr.user.mine": "1"}
        tar.addfile(info)
    layer = outside.parent / "layer"
    unpack(io.BytesIO(out.getvalue()), layer, most_bytes=ROOM)
    assert name not in os.listxattr(layer / "x")


def test_more_bytes_than_there_is_room_are_refused_before_they_are_written(outside: Path) -> None:
    tar = Tar().add("a", content=b"a" * 5000).add("b", content=b"b" * 6000)
    with pytest.raises(UnsafeArchive, match="more than 10000 bytes"):
        run(outside, tar, most_bytes=10_000)
    assert not (outside.parent / "layer" / "b").exists()


def test_a_file_that_says_it_is_huge_is_refused(outside: Path) -> None:
    header = bytearray(tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + struct.pack(">QH", 1 << 50, 0)[:8].rjust(11, b"\0")
    header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]
    with pytest.raises(UnsafeArchive, match="a layer of more than"):
        unpack(io.BytesIO(bytes(header) + b"\0" * 10240), outside.parent / "layer", most_bytes=ROOM)


def test_more_entries_than_any_image_has_are_refused(outside: Path) -> None:
    tar = Tar()
    for number in range(101):
        tar.add(f"f{number}")
    with pytest.raises(UnsafeArchive, match="more than 100 entries"):
        run(outside, tar, most_entries=100)


def test_folders_that_no_entry_tells_of_count_too(outside: Path) -> None:
    with pytest.raises(UnsafeArchive, match="more than 100 entries"):
        run(outside, Tar().add("a/" * 60 + "x").add("b/" * 60 + "x"), most_entries=100)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_headers_that_would_fill_the_memory_are_refused(outside: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 1 << 33

    class Endless(io.RawIOBase):
        """8 GB, which a gzip of 8 MB can have."""

        head = info.tobuf(tarfile.GNU_FORMAT)
        given = 0

        def read(self, size: int = -1) -> bytes:
            data = (self.head + bytes(size))[:size] if not self.given else bytes(size)
            self.given += size
            assert self.given < 64 << 20, "reads on"
            return data

    with pytest.raises(UnsafeArchive, match="header"):
        unpack(Endless(), outside.parent / "layer", most_bytes=ROOM)  # type: ignore[arg-type]


def test_a_map_of_a_sparse_file_that_would_fill_the_memory_is_refused(outside: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x"}
        body = b"99999999\n" + b"1\n" * 1000
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    with pytest.raises(UnsafeArchive, match="sparse"):
        unpack(io.BytesIO(out.getvalue()), outside.parent / "layer", most_bytes=ROOM)


def test_paths_that_nest_without_an_end_are_refused_and_can_be_removed(outside: Path) -> None:
    with pytest.raises(UnsafeArchive, match="nest"):
        run(outside, Tar().add("d/" * 2000 + "x"))
    # links make it deeper than any path is long
    tar = Tar()
    for number in range(10):
        tar.add(f"l{number}/" + "d/" * 100, tarfile.DIRTYPE).link(
            f"l{number}/" + "d/" * 100 + "next", f"/l{number + 1}"
        )
    layer = run(outside, tar)
    remove_tree(layer)
    assert not layer.exists()
    layer.mkdir()


@pytest.mark.parametrize(("name", "kept"), [("d", ["d"]), (".wh..wh.plnk", [])])
def test_a_tree_that_links_made_deeper_than_pythons_stack_makes_room_for_another_entry(
    outside: Path, name: str, kept: list[str]
) -> None:
    tar = Tar().add(f"{name}/first").link("s0", name)
    for number in range(3):
        deep = f"s{number}" + "/d" * 400
        tar.add(f"{deep}/", tarfile.DIRTYPE).link(f"s{number + 1}", deep)
    layer = outside.parent / "layer"
    try:
        run(outside, tar.add(name, content=b"mine"))
        assert [each for each in os.listdir(layer) if not (layer / each).is_symlink()] == kept
    finally:
        remove_tree(layer)  # deeper than pytest can remove, if it is still there
        layer.mkdir()


def test_a_tree_deeper_than_a_path_is_long_is_measured_and_removed(outside: Path) -> None:
    layer = outside.parent / "layer"
    deep = "import os\nfor _ in range(5000):\n os.mkdir('d' * 50); os.chdir('d' * 50)\nopen('end', 'w').close()"
    subprocess.run([sys.executable, "-c", deep], cwd=layer, check=True)
    os.symlink(outside, layer / "link")
    assert measure(layer).inodes > 50
    remove_tree(layer)
    assert not layer.exists()
    layer.mkdir()


def test_removing_a_link_leaves_what_it_leads_to(outside: Path) -> None:
    link = outside.parent / "layer" / "link"
    link.symlink_to(outside)
    remove_tree(link)
    assert not link.is_symlink()
    remove_tree(link)  # not there: fine


def test_owners_modes_and_times_are_kept(outside: Path) -> None:
    tar = (
        Tar()
        .add("d", tarfile.DIRTYPE, mode=0o555, uid=5, gid=6, mtime=7)
        .add("d/f", mode=0o4755, uid=8, gid=9, mtime=10)
    )
    layer = run(outside, tar)
    folder, file = (layer / "d").stat(), (layer / "d" / "f").stat()
    assert (folder.st_mode & 0o7777, folder.st_uid, folder.st_gid, folder.st_mtime) == (0o555, 5, 6, 7)
    assert (file.st_mode & 0o7777, file.st_uid, file.st_gid, file.st_mtime) == (0o4755, 8, 9, 10)


@pytest.mark.parametrize(
    ("key", "value"),
    [("uid", "-7"), ("uid", str(1 << 40)), ("mtime", "inf"), ("mtime", "nan"), ("mtime", "1e300"), ("size", "-5")],
)
def test_invalid_numbers_are_reported(outside: Path, key: str, value: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("x")
        info.pax_headers = {key: value}
        tar.addfile(info)
    with pytest.raises(ValueError, match=r"not a layer|NaN|-5 bytes|7"):
        unpack(io.BytesIO(out.getvalue()), outside.parent / "layer", most_bytes=ROOM)


@pytest.mark.parametrize("name", ["n" * 300, "a/" + "n" * 300 + "/b"])
def test_names_that_no_file_system_has_are_reported(outside: Path, name: str) -> None:
    with pytest.raises(UnsafeArchive, match="cannot be made"):
        run(outside, Tar().add(name))


def test_links_that_go_round_in_circles_are_reported(outside: Path) -> None:
    with pytest.raises(UnsafeArchive, match="cannot be made"):
        run(outside, Tar().link("a", "b").link("b", "a").add("a/x"))


@pytest.mark.parametrize("body", [b"x" * 10240, b"\x1f\x8b" + b"0" * 600])
def test_an_invalid_tar_is_reported(outside: Path, body: bytes) -> None:
    with pytest.raises(ValueError, match="not a layer"):
        unpack(io.BytesIO(body), outside.parent / "layer", most_bytes=ROOM)


names = st.lists(
    st.sampled_from(["a", "b", "..", ".", "", "out", "secret", ".wh.a", ".wh..wh..opq", ".wh..wh.plnk"]), max_size=4
).map("/".join)
kinds = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
targets = st.one_of(names, st.sampled_from(["/", "../outside", "/proc/self/cwd", "../outside/secret", "../.."]))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(entries=st.lists(st.tuples(names, kinds, targets, st.sampled_from([0o755, 0o4777, 0])), max_size=8))
def test_no_layer_touches_what_is_outside(outside: Path, entries: list[tuple[str, bytes, str, int]]) -> None:
    layer = outside.parent / "layer"
    remove_tree(layer)
    layer.mkdir()
    tar = Tar()
    for name, kind, target, mode in entries:
        content = b"mine" if kind == tarfile.REGTYPE else b""
        tar.add(name, kind, content, target if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else "", mode=mode, uid=7)
    try:
        run(outside, tar)
    except (ValueError, OSError):
        pass
    assert (outside / "secret").read_text() == "secret"
    assert (outside / "secret").stat().st_uid == outside.stat().st_uid == 0
    assert os.listdir(outside) == ["secret"]
