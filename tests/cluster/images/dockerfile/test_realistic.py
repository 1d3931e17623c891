"""Images are what the Dockerfiles of `realistic` say; and what builds do with archives, triggers, changes, mistakes."""

from __future__ import annotations

import io
import os
import tarfile

import pytest
from cluster.images.dockerfile.bench import Bench, Result
from cluster.images.dockerfile.realistic import CASES, Case

from pybernetes.cluster.errors import ClusterError


def final(made: Result) -> dict[str, tarfile.TarInfo]:
    """The entries of the finished image."""
    found: dict[str, tarfile.TarInfo] = {}
    for layer in made.layers:
        for path in layer:
            folder, _, name = path.rpartition("/")
            if name.startswith(".wh."):
                gone = folder if name == ".wh..wh..opq" else os.path.join(folder, name.removeprefix(".wh."))
                found = {
                    each: entry
                    for each, entry in found.items()
                    if not each.startswith(f"{gone}/") and (each != gone or name == ".wh..wh..opq")
                }
        found |= {path: entry for path, entry in layer.items() if not path.rpartition("/")[2].startswith(".wh.")}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_images_are_what_their_dockerfiles_say(bench: Bench, case: Case) -> None:
    for path, content in case.context.items():
        bench.put(path, content)
    made = bench.build(case.dockerfile, *case.flags)
    assert {key: made.config.get(key) for key in case.config} == case.config
    entries = final(made)
    found = {path: made.contents[path].decode() if path in entries else None for path in case.files}
    assert found == case.files
    assert {path: (entries[path].uid, entries[path].gid, entries[path].mode) for path in case.modes} == case.modes
    assert case.said in made.said


def test_triggers_wait_for_the_next_image_and_are_not_inherited_further(bench: Bench) -> None:
    bench.put("app.txt", "app")
    bench.run("FROM busybox\nONBUILD ARG X=1\nONBUILD COPY app.txt /app/\nONBUILD RUN echo $X > /x\n", "-t", "parent:1")
    child = bench.build("FROM parent:1\nRUN cat /app/app.txt > /seen\n", "--build-arg", "X=2")
    assert (child.contents["seen"], child.contents["x"]) == (b"app", b"2\n")
    assert not child.config.get("OnBuild")


def test_archives_of_all_packings_are_unpacked_where_add_says(bench: Bench) -> None:
    for suffix in ("tar", "tar.gz", "tar.bz2", "tar.xz"):
        with tarfile.open(bench.context / f"a.{suffix}", f"w:{suffix.partition('.')[2]}") as tar:
            info = tarfile.TarInfo("dir/file")
            info.size, info.uid, info.mode = 1, 77, 0o640
            tar.addfile(info, io.BytesIO(b"x"))
    bench.put("notes.tar.gz", "no archive")
    made = bench.build(
        "FROM scratch\n" + "".join(f"ADD a.{suffix} /{suffix}/\n" for suffix in ("tar", "tar.gz", "tar.bz2", "tar.xz"))
        + "ADD notes.tar.gz /plain/\nCOPY a.tar /copied/\n"
    )  # fmt: skip
    entries = final(made)
    for suffix in ("tar", "tar.gz", "tar.bz2", "tar.xz"):
        found = entries[f"{suffix}/dir/file"]
        assert (found.uid, found.mode) == (77, 0o640)
    assert made.contents["plain/notes.tar.gz"] == b"no archive"
    assert "copied/a.tar" in entries


def test_a_rebuild_after_a_change_begins_where_the_change_is(bench: Bench) -> None:
    text = "FROM busybox\nCOPY deps /deps\nRUN cat /deps > /installed\nCOPY src /src\nRUN cat /src/a > /built\n"
    bench.put("deps", "1")
    bench.put("src/a", "1")
    bench.build(text)
    bench.put("src/a", "2")
    second = bench.build(text)
    assert second.said.count("(cached)") == 2
    assert (second.contents["built"], second.contents["installed"]) == (b"2", b"1")
    bench.put("src/new", "")
    assert bench.build(text).said.count("(cached)") == 2
    (bench.context / "src/new").unlink()
    assert bench.build(text).said.count("(cached)") == 4


@pytest.mark.parametrize(
    ("dockerfile", "told"),
    [
        ("FROM busybox\nCOPY ../missing /\n", "'../missing' is not there"),
        ("FROM busybox\nCOPY --from=none /x /\n", "none"),
        ("FROM busybox\nCOPY --from=1 /x /\n", "1"),
        ("FROM busybox\nRUN exit 7\n", "ended with code 7"),
        ("FROM busybox\nUSER nobody-here\nRUN true\n", "nobody-here"),
        ("FROM busybox\nENV A\n", "NAME=VALUE"),
        ("FROM busybox\nRUNN x\n", "is it RUN?"),
        ("FROM busybox\nCOPY a b c\n", "must end with /"),
        ("FROM busybox\nARG 1x=2\n", "no name of an argument"),
        ("FROM busybox\nRUN <<EOF\nno end\n", "does not end"),
        ("FROM busybox\nEXPOSE http\n", "no port"),
        ('FROM busybox\nENV A="${B:?is needed}"\n', "B: is needed"),
        ("FROM ${IMAGE}\n", "is empty"),
        ("FROM busybox AS 1st\n", "no name of a stage"),
        ("FROM busybox\nONBUILD FROM x\n", "may not be triggered"),
        ("FROM busybox\nRUN --mount=type=secret,id=x true\n", "secret"),
        ("FROM busybox\nHEALTHCHECK --interval=soon CMD x\n", "no duration"),
        ("FROM busybox\nSHELL /bin/sh\n", "wants a list"),
        ("FROM busybox\nADD --checksum=sha256:00 x /\n", "checksum"),
    ],
)
def test_mistakes_are_reported_in_one_line_with_their_place(bench: Bench, dockerfile: str, told: str) -> None:
    for name in ("a", "b", "x"):
        bench.put(name)
    with pytest.raises(ClusterError) as caught:
        bench.run(dockerfile)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
