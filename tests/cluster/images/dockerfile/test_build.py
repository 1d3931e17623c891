"""Real builds on Debian's static busybox: what each instruction makes of the image."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cluster.images.dockerfile.bench import Bench

from pybernetes.cluster.commands import image
from pybernetes.cluster.errors import ClusterError


def test_an_image_stands_on_its_base_and_tells_its_history(bench: Bench) -> None:
    bench.put("a.txt", "hello")
    made = bench.build("FROM busybox\nCOPY a.txt /data/\nENV A=b\nRUN cat /data/a.txt > /out\n")
    assert made.names == ("docker.io/library/made:1",)
    assert [sorted(each) for each in made.layers[1:]] == [["data", "data/a.txt"], ["out"]]
    assert made.contents["out"] == b"hello"
    assert made.document["rootfs"]["type"] == "layers"
    assert len(made.document["rootfs"]["diff_ids"]) == 3
    told = [(each["created_by"], each.get("empty_layer", False)) for each in made.document["history"]]
    assert told[-3:] == [("COPY a.txt /data/", False), ("ENV A=b", True), ("RUN cat /data/a.txt > /out", False)]
    assert len([each for each in made.document["history"] if not each.get("empty_layer")]) == 3


def test_settings_are_those_of_the_dockerfile(bench: Bench) -> None:
    made = bench.build(
        'FROM busybox\nARG NAME=joe\nENV X=1 Y="a b" Z=${NAME}\nENV OLD the rest\nLABEL a=b "c d"=$X\nUSER 1000:50\n'
        "WORKDIR /srv\nWORKDIR app/$X\nEXPOSE 80 53/udp 7000-7001\nVOLUME /var/x [\nVOLUME [\"/a b\", \"/c\"]\n"
        'STOPSIGNAL SIGUSR1\nSHELL ["/bin/ash", "-ec"]\nENTRYPOINT ["/run", "$X"]\nCMD echo $X\n'
        "HEALTHCHECK --interval=1m30s --retries=3 CMD true\nMAINTAINER me\nONBUILD RUN true\n".replace(" [\n", "\n"),
        "--label", "e=f", "--label", "a=c", "--build-arg", "NAME=ann",
    )  # fmt: skip
    config = made.config
    assert config["Env"][1:] == ["X=1", "Y=a b", "Z=ann", "OLD=the rest"]
    assert config["Labels"] == {"a": "c", "c d": "1", "e": "f"}
    assert config["User"] == "1000:50"
    assert config["WorkingDir"] == "/srv/app/1"
    assert list(config["ExposedPorts"]) == ["53/udp", "7000/tcp", "7001/tcp", "80/tcp"]
    assert config["Volumes"] == {"/var/x": {}, "/a b": {}, "/c": {}}
    assert config["StopSignal"] == "SIGUSR1"
    assert config["Entrypoint"] == ["/run", "$X"]
    assert config["Cmd"] == ["/bin/ash", "-ec", "echo $X"]
    assert config["Healthcheck"] == {"Test": ["CMD-SHELL", "true"], "Interval": 90 * 10**9, "Retries": 3}
    assert config["OnBuild"] == ["RUN true"]
    assert made.document["author"] == "me"
    assert "Kubernetes does not run it" in made.said
    assert "MAINTAINER is old" in made.said
    entries = {name: (each.uid, each.gid) for layer in made.layers[1:] for name, each in layer.items()}
    assert entries == dict.fromkeys(("srv", "srv/app", "srv/app/1"), (1000, 50))


def test_an_entrypoint_takes_an_inherited_command_away_and_no_other(bench: Bench) -> None:
    assert "Cmd" not in bench.build('FROM busybox\nENTRYPOINT ["/x"]').config
    assert bench.build('FROM busybox\nCMD ["a"]\nENTRYPOINT ["/x"]').config["Cmd"] == ["a"]


def test_a_second_build_takes_all_from_the_cache_and_gives_the_same_image(bench: Bench) -> None:
    bench.put("a", "1")
    unique = "RUN cat /proc/sys/kernel/random/uuid >"
    text = f"FROM busybox\n{unique} /t\nCOPY a /a\n{unique} /u\n"
    first = bench.build(text)
    (bench.context / "a").touch()
    second = bench.build(text)
    assert second.said.count("(cached)") == 3
    assert second.document == first.document
    bench.put("a", "2")
    third = bench.build(text)
    assert third.said.count("(cached)") == 1
    assert third.contents["t"] == first.contents["t"]
    assert third.contents["u"] != first.contents["u"]
    fourth = bench.build(text, "--no-cache")
    assert "(cached)" not in fourth.said
    assert fourth.contents["t"] != first.contents["t"]


def test_what_a_step_depends_on_is_part_of_its_key(bench: Bench) -> None:
    bench.put("a", "1")
    bench.build("FROM busybox\nARG V\nCOPY a /a\nRUN echo $V > /v", "--build-arg", "V=1")
    changed = bench.build("FROM busybox\nARG V\nCOPY a /a\nRUN echo $V > /v", "--build-arg", "V=2")
    assert changed.said.count("(cached)") == 1
    assert changed.contents["v"] == b"2\n"
    bench.put("a", "1", 0o755)
    assert bench.build("FROM busybox\nCOPY a /a").said.count("(cached)") == 0
    assert bench.build("FROM busybox\nENV A=1\nCOPY a /a").said.count("(cached)") == 0


def test_without_commands_the_same_files_make_the_same_bytes(bench: Bench) -> None:
    bench.put("dir/a", "1")
    bench.put("dir/sub/b", "2")
    for folder in ("dir/sub", "dir"):
        os.utime(bench.context / folder, (5, 5))
    text = "FROM busybox\nWORKDIR /x/y\nCOPY dir .\nCOPY dir/a /bin/\nENV A=b"
    first = bench.build(text, "--no-cache").archive.read_bytes()
    assert bench.build(text, "--no-cache").archive.read_bytes() == first


def test_no_time_is_later_than_it_is_asked_for(bench: Bench) -> None:
    bench.put("a", "1")
    made = bench.build("FROM busybox\nCOPY a /a\nRUN touch /b", "--build-arg", "SOURCE_DATE_EPOCH=1000000")
    assert {each.mtime for layer in made.layers[1:] for each in layer.values()} == {1000000}
    assert made.document["created"] == "1970-01-12T13:46:40Z"


def test_what_a_command_removes_links_and_changes_is_in_its_layer(bench: Bench) -> None:
    bench.put("d/keep", "k")
    made = bench.build(
        "FROM busybox\nCOPY d /d\nRUN rm -r /d /etc/group && mkdir /d && echo n > /d/new && echo x > /one"
        " && ln /one /two"
        " && ln -s one /three && chown 5:6 /one && chmod 4755 /one && mkfifo /pipe && mkdir -m 1770 /box\n"
    )
    layer = made.layers[-1]
    assert layer["etc/.wh.group"].size == 0
    assert "d/.wh..wh..opq" in layer or "d/.wh.keep" in layer
    assert "d/keep" not in layer
    one, two = sorted((layer["one"], layer["two"]), key=lambda each: each.islnk())
    assert (two.islnk(), two.linkname) == (True, one.name)
    assert (one.mode, one.uid, one.gid) == (0o4755, 5, 6)
    assert (layer["three"].issym(), layer["three"].linkname) == (True, "one")
    assert layer["pipe"].isfifo()
    assert layer["box"].mode == 0o1770
    assert not {"proc", "sys", "dev", "etc/hosts", "etc/resolv.conf"} & set(layer)


def test_a_command_that_writes_nothing_makes_no_layer(bench: Bench) -> None:
    made = bench.build("FROM busybox\nRUN true")
    assert len(made.layers) == 1
    assert made.document["history"][-1]["empty_layer"] is True


def test_file_capabilities_come_through(bench: Bench) -> None:
    if shutil.which("setcap") is None:
        pytest.skip("not installed: setcap")
    path = bench.put("prog", "x", 0o755)
    os.system(f"setcap cap_net_raw+ep {path}")
    made = bench.build("FROM scratch\nCOPY --chown=7 prog /prog")
    assert "SCHILY.xattr.security.capability" in made.layers[0]["prog"].pax_headers


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("COPY a /x", ["x"]),
        ("COPY a /x/", ["x", "x/a"]),
        ("COPY a /etc", ["etc", "etc/a"]),
        ("COPY a b /x/", ["x", "x/a", "x/b"]),
        ("COPY dir /x", ["x", "x/c", "x/sub", "x/sub/d"]),
        ("COPY dir /x/", ["x", "x/c", "x/sub", "x/sub/d"]),
        ("COPY dir/sub/ dir/c /x/", ["x", "x/c", "x/d"]),
        ("COPY ? /x/", ["x", "x/a", "x/b"]),
        ("COPY [ab] /x/", ["x", "x/a", "x/b"]),
        ("COPY */c /x/", ["x", "x/c"]),
        ("COPY d* /x", ["x", "x/c", "x/sub", "x/sub/d"]),
        ('COPY ["with blank", "/x y"]', ["x y"]),
        ("COPY ../../a /x", ["x"]),
        ("COPY /a /x", ["x"]),
        ("COPY link /x", ["x"]),
        ("COPY $F /x", ["x"]),
        ("COPY . /x", ["x", "x/a", "x/b", "x/dir", "x/dir/c", "x/dir/sub", "x/dir/sub/d", "x/link", "x/with blank"]),
        ("COPY --exclude=sub dir /x", ["x", "x/c"]),
        ("ADD a /x/y/z", ["x", "x/y", "x/y/z"]),
        ("WORKDIR /w\nCOPY a .", ["w", "w/a"]),
        ("WORKDIR /w\nCOPY a ./", ["w", "w/a"]),
        ("WORKDIR /w\nCOPY a b2/c", ["w", "w/b2", "w/b2/c"]),
        ("COPY <<one <<two /x/\n1\none\n2\ntwo", ["x", "x/one", "x/two"]),
        ("COPY <<one /x\n1\none", ["x"]),
        ("COPY --link a /x", ["x"]),
    ],
)
def test_sources_are_copied_where_docker_copies_them(bench: Bench, line: str, expected: list[str]) -> None:
    for path in ("a", "b", "dir/c", "dir/sub/d", "with blank"):
        bench.put(path, path)
    bench.put(".dockerignore", "Dockerfile\n.dockerignore")
    os.symlink("dir/c", bench.context / "link")
    made = bench.build(f"FROM busybox\nENV F=a\n{line}")
    assert sorted({name for layer in made.layers[1:] for name in layer}) == expected


def test_links_are_kept_in_folders_and_followed_when_they_are_named(bench: Bench) -> None:
    bench.put("real", "content")
    (bench.context / "d").mkdir()
    os.symlink("../real", bench.context / "d" / "l")
    os.link(bench.context / "real", bench.context / "d" / "h1")
    os.link(bench.context / "real", bench.context / "d" / "h2")
    made = bench.build("FROM scratch\nCOPY d/l /one\nCOPY d /two")
    assert made.contents["one"] == b"content"
    assert made.layers[1]["two/l"].linkname == "../real"
    assert made.layers[1]["two/h2"].linkname == "two/h1"


def test_owners_and_modes(bench: Bench) -> None:
    bench.put("d/a", "1", 0o640)
    bench.put("d/run", "1", 0o755)
    os.chown(bench.context / "d" / "a", 1234, 1234)
    made = bench.build(
        "FROM busybox AS one\nCOPY d /plain\nCOPY --chown=5 d /five\n"
        "COPY --chown=nobody:nogroup --chmod=600 d/a /named\n"
        "RUN chown 9:8 /plain/a\nFROM scratch\nCOPY --from=one /plain /plain\nCOPY --from=0 /five /five\n"
        "COPY --from=one /named /named"
    )
    got = {name: (each.uid, each.gid, each.mode) for layer in made.layers for name, each in layer.items()}
    assert got["plain/a"] == (9, 8, 0o640)
    assert got["plain/run"] == (0, 0, 0o755)
    assert (got["five"][:2], got["five/a"][:2]) == ((0, 0), (5, 5))  # of a folder only what is in it is copied
    own = bench.build("FROM scratch\nCOPY --chown=5 --chmod=u=rwX,go= d /five").layers[0]
    assert {name: (each.uid, each.mode) for name, each in own.items()} == {
        "five": (5, 0o755),
        "five/a": (5, 0o600),
        "five/run": (5, 0o700),
    }
    assert got["named"] == (65534, 65534, 0o600)


def test_copies_go_into_folders_that_are_there_without_changing_them(bench: Bench) -> None:
    bench.put("d/sub/a", "new")
    made = bench.build(
        "FROM busybox\nRUN mkdir -p /t/sub && chmod 700 /t/sub && chown 3:3 /t/sub && echo old > /t/sub/a"
        " && echo o > /t/o && ln -s /t /l && ln -s o /t/lo\nCOPY d /l/\nCOPY d/sub/a /t/lo\n"
        "RUN cat /t/sub/a /t/o > /out && ls -l /t >> /out"
    )
    assert (made.layers[2]["t/sub"].mode, made.layers[2]["t/sub"].uid) == (0o700, 3)
    assert made.contents["out"].startswith(b"newnew")
    assert re.search(rb"lo -> o", made.contents["out"])


def test_unused_stages_are_not_built(bench: Bench) -> None:
    text = (
        "FROM busybox AS one\nRUN echo 1 > /one\nFROM busybox AS broken\nRUN false\n"
        "FROM one AS two\nRUN cat /one > /two\n"
        "FROM scratch\nCOPY --from=two /two /\nCOPY --from=busybox /bin/busybox /bb\n"
    )
    made = bench.build(text)
    assert made.contents["two"] == b"1\n"
    assert [sorted(each) for each in made.layers] == [["two"], ["bb"]]
    assert made.config == {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    assert len(bench.build(text, "--target", "two").layers) == 3
    with pytest.raises(ClusterError, match=r"Dockerfile:4: RUN: the command ended with code 1"):
        bench.run(text, "--target", "broken")


def test_arguments_have_scopes(bench: Bench) -> None:
    made = bench.build(
        "ARG OUTER=o\nARG BASE=busybox\nFROM $BASE AS one\nARG OUTER\nARG INNER=i\nARG TARGETARCH\n"
        "ENV SET=env\nARG SET=arg\n"
        'RUN echo "$OUTER $INNER $SET $BASE. $TARGETARCH" > /one\nFROM one\nRUN echo "$INNER" > /two\n'
        'FROM busybox\nCOPY --from=one /one /\nCOPY --from=1 /two /\nRUN echo "$OUTER$INNER." > /three\n',
        "--build-arg", "INNER=given", "--build-arg", "NOBODY=x",
    )  # fmt: skip
    assert re.fullmatch(rb"o given env \. (amd64|arm64)\n", made.contents["one"])
    assert made.contents["two"] == b"given\n"
    assert made.contents["three"] == b".\n"
    assert "--build-arg NOBODY: no ARG asks for it" in made.said


def test_commands_run_as_their_user_in_their_folder_alone(bench: Bench) -> None:
    made = bench.build(
        "FROM busybox\nRUN mkdir -m 777 /w\nWORKDIR /w\nUSER nobody\nENV A=b\n"
        "RUN id -u > id && pwd > pwd && echo $A$HOME > env && ps > ps && hostname > host\n"
        "RUN cat /proc/self/status > st\n"
        'RUN ["sh", "-c", "echo exec > exec"]\nRUN --network=none ip -o link > links\n'
        "RUN cat <<E > doc\none $A\nE\nRUN <<E\necho two $A > script\nE\n"
        "RUN <<E\n#!/bin/busybox ash\necho $0 > shebang\nE\n"
    )
    contents = {name.removeprefix("w/"): text.decode() for name, text in made.contents.items() if name.startswith("w/")}
    assert (contents["id"], contents["pwd"], contents["env"]) == ("65534\n", "/w\n", "b/home\n")
    assert [line.split()[0] for line in contents["ps"].splitlines()][:2] == ["PID", "1"]
    assert len(contents["ps"].splitlines()) <= 3
    assert contents["host"] == "build\n"
    assert "Seccomp:\t2" in contents["st"]
    assert "CapEff:\t0000000000000000" in contents["st"]
    assert contents["exec"] == "exec\n"
    assert [line.split(": ")[1] for line in contents["links"].splitlines()] == ["lo"]
    assert (contents["doc"], contents["script"]) == ("one b\n", "two b\n")
    assert contents["shebang"].startswith("/dev/pipes/")


def test_output_of_commands_is_shown_without_control_characters(bench: Bench) -> None:
    said = bench.run("FROM busybox\nRUN echo out; echo err >&2; printf '\\033[2Jx'; printf 'no end'")
    assert "    out\n" in said
    assert "    err\n" in said
    assert "\x1b" not in said
    assert "no end\n" in said


def test_mounts_of_commands_leave_no_layer(bench: Bench) -> None:
    bench.put("req", "wanted")
    bench.put("secret", "hidden")
    bench.put(".dockerignore", "secret")
    text = (
        "FROM busybox AS one\nRUN echo 1 > /one\nFROM busybox\n"
        "RUN --mount=type=bind,target=/ctx --mount=type=bind,from=one,source=/one,target=/mnt/one"
        " ls /ctx > /l; cat /mnt/one > /o\n"
        "RUN --mount=type=cache,target=/cache cat /cache/n > /c 2>/dev/null; echo x >> /cache/n\n"
        "RUN --mount=type=tmpfs,target=/t touch /t/x\n"
        "RUN --mount=target=/ctx,rw --mount=from=one,target=/mnt/one,rw touch /ctx/x /mnt/one/x; "
        "! touch /ctx/../mnt/one/one/x 2>/dev/null\n"
    )
    first = bench.build(text, "--no-cache")
    assert first.contents["l"].split() == [b"Dockerfile", b"req"]
    assert first.contents["o"] == b"1\n"
    names = {name for layer in first.layers[1:] for name in layer}
    assert names == {"l", "o", "c"}
    assert bench.build(text, "--no-cache").contents["c"] == first.contents["c"] + b"x\n"


def test_triggers_of_a_base_run_after_from(bench: Bench) -> None:
    bench.put("a", "1")
    bench.run("FROM busybox\nONBUILD COPY a /a\nONBUILD RUN cat /a > /b")
    image.main(["export", "--data-dir", str(bench.data), "made:1", str(bench.context / "base.tar")])
    # Another name: the base must not be the image that is built on it.
    bench.run("FROM busybox\nONBUILD COPY a /a\nONBUILD RUN cat /a > /b", "-t", "base:1")
    made = bench.build("FROM made:1\nRUN cat /b > /c")
    assert made.contents["c"] == b"1"
    assert "OnBuild" not in made.config
    staged = bench.build("FROM busybox AS base\nONBUILD RUN echo 2 > /two\nFROM base\nRUN cat /two > /three")
    assert staged.contents["three"] == b"2\n"
    assert "OnBuild" not in staged.config


def tar(path: Path, mode: str = "w:gz") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name in ("x", "dir/y"):
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid, info.mode = 1, 7, 8, 0o640
            archive.addfile(info, io.BytesIO(b"1"))


def test_archives_are_unpacked_by_add_and_not_by_copy(bench: Bench) -> None:
    for name, mode in (("a.tgz", "w:gz"), ("a.txz", "w:xz"), ("a.bz", "w:bz2"), ("a.tar", "w")):
        tar(bench.context / name, mode)
    bench.put("not.tar.gz", "nothing")
    assert sorted(bench.build("FROM scratch\nADD --unpack=false a.tgz /").contents) == ["a.tgz"]
    made = bench.build(
        "FROM scratch\nADD a.tgz /one\nADD a.txz a.bz /two/\nADD --chown=9 a.tar /three/\n"
        "COPY a.tgz /\nADD not.tar.gz /"
    )
    assert sorted(made.layers[0]) == ["one", "one/dir", "one/dir/y", "one/x"]
    assert (made.layers[0]["one/x"].uid, made.layers[0]["one/x"].mode) == (7, 0o640)
    assert sorted(made.layers[1]) == ["two", "two/dir", "two/dir/y", "two/x"]
    assert made.layers[2]["three/x"].uid == 9
    assert sorted(made.layers[3]) == ["a.tgz"]
    assert sorted(made.layers[4]) == ["not.tar.gz"]


def test_urls_are_loaded_by_add(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "f.txt").write_text("from afar")

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **others: object) -> None:
            super().__init__(*args, directory=str(tmp_path / "web"), **others)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/f.txt"
        made = bench.build(f"FROM scratch\nADD {url} /x/")
        assert made.contents["x/f.txt"] == b"from afar"
        assert stat.S_IMODE(made.layers[0]["x/f.txt"].mode) == 0o600
        tar(tmp_path / "web" / "a.tar")
        assert sorted(bench.build(f"FROM scratch\nADD {url[:-5]}a.tar /").contents) == ["a.tar"]  # loaded, not unpacked
        unpacked = bench.build(f"FROM scratch\nADD --unpack=true {url[:-5]}a.tar /x")
        assert sorted(unpacked.contents) == ["x/dir/y", "x/x"]
        with pytest.raises(ClusterError, match=r"Dockerfile:2: ADD: .* is sha256:[0-9a-f]{64}, not sha256:0"):
            bench.run(f"FROM scratch\nADD --checksum=sha256:0 {url} /x/")
        with pytest.raises(ClusterError, match="404"):
            bench.run(f"FROM scratch\nADD {url}x /x/")
        server.shutdown()
    with pytest.raises(ClusterError, match="repositories of git are not loaded"):
        bench.run("FROM scratch\nADD https://example.com/x.git /x/")


def test_a_dockerfile_may_be_elsewhere_and_bring_its_own_ignore_file(bench: Bench, tmp_path: Path) -> None:
    bench.put("a", "1")
    bench.put("b", "2")
    bench.put(".dockerignore", "a")
    (tmp_path / "My.dockerfile").write_text("FROM scratch\nCOPY [ab] /x/")
    (tmp_path / "My.dockerfile.dockerignore").write_text("b")
    made = bench.build("FROM nothing", "-f", str(tmp_path / "My.dockerfile"))
    assert sorted(made.contents) == ["x/a"]


def test_a_list_that_is_no_json_is_a_shell_command_with_a_warning(bench: Bench) -> None:
    made = bench.build("FROM busybox\nCMD ['a', 'b']")
    assert made.config["Cmd"] == ["/bin/sh", "-c", "['a', 'b']"]
    assert re.search(r"warning: .*Dockerfile:2: it looks like a list, but is no JSON", made.said)


def test_several_names_are_one_image(bench: Bench) -> None:
    made = bench.build("FROM busybox", "-t", "localhost:5000/other/x:2")
    assert made.names == ("docker.io/library/made:1", "localhost:5000/other/x:2")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FROM busybox\nRUN exit 7", "Dockerfile:2: RUN: the command ended with code 7"),
        ("FROM busybox\nRUN sh -c 'kill -9 $$'; exit $?", r"code 137 \(killed by signal 9\)"),
        ('FROM busybox\nRUN ["nothing"]', 'RUN: exec: "nothing": executable file not found'),
        ("FROM scratch\nRUN x", 'RUN: exec: "/bin/sh": stat /bin/sh: no such file'),
        ("FROM busybox\nUSER nobody2\nRUN x", "RUN: unable to find user nobody2"),
        ("FROM busybox\nCOPY missing /x", "Dockerfile:2: COPY: 'missing' is not there"),
        ("FROM busybox\nCOPY a b /x", "must end with /"),
        ("FROM busybox\nCOPY a", "at least one source"),
        ("FROM busybox\nCOPY a /bin", None),
        ("FROM busybox\nCOPY dir /etc/passwd", "'/etc/passwd' is not a folder"),
        ("FROM busybox\nCOPY a /dev/../bin/", None),
        ("FROM busybox\nCOPY a /etc/passwd/x", "'/etc/passwd' is not a folder"),
        ("FROM busybox\nCOPY dir/../dir/f /etc/", "is a folder already, and a file cannot take its place"),
        ("FROM busybox AS x\nCOPY --from=later /a /a\nFROM busybox AS later\nFROM x", "comes only later"),
        ("FROM busybox\nCOPY --from=7 /a /a", "no stage 7 before"),
        ("FROM busybox\nCOPY --chown=joe a /a", "unable to find user joe"),
        ("FROM busybox\nCOPY --chmod=u+z a /a", "no mode"),
        ("FROM busybox\nCOPY dir/* /a", "several sources need a folder"),
        ("FROM busybox\nADD --unpack=maybe a /a", "true or false"),
        ("FROM busybox\nADD http://127.0.0.1:1/ /a/", "names no file"),
        ("FROM busybox\nCOPY --chmod=77777 a /a", "no mode"),
        ("FROM busybox\nCOPY --exclude=[ a /a", "bracket"),
        ("FROM busybox\nEXPOSE eighty", "no port"),
        ("FROM busybox\nEXPOSE 70000", "no port"),
        ("FROM busybox\nSTOPSIGNAL SIGNOTHING", "no signal"),
        ("FROM busybox\nSHELL /bin/sh", "wants a list"),
        ("FROM busybox\nHEALTHCHECK sometimes", "wants NONE"),
        ("FROM busybox\nHEALTHCHECK --interval=5 CMD x", "no duration"),
        ("FROM busybox\nUSER $NOTHING", "no user"),
        ("FROM busybox\nWORKDIR $NOTHING", "empty"),
        ('FROM busybox\nENV A="${B:?say B}"', "ENV: B: say B"),
        ('FROM busybox\nENV A="x', "double quote"),
        ("FROM busybox\nONBUILD FROM x", "may not be triggered"),
        ("FROM busybox\nONBUILD NOTHING x", "unknown instruction"),
        ("FROM busybox\nRUN --mount=type=secret,id=x true", "type=secret is not supported"),
        ("FROM busybox\nRUN --mount=target=/ true", "cannot be the root"),
        ("FROM busybox\nRUN --mount=type=cache true", "target=PATH"),
        ("FROM busybox\nRUN --network=mine true", "it is one of"),
        ("FROM busybox\nRUN touch /.wh.x", "cannot be in an image"),
        ("FROM localhost:1/nothing", "Dockerfile:1: FROM: failed to pull"),
        ("FROM Bad//Name", "Dockerfile:1: FROM:"),
        ("FROM busybox\nADD --checksum=sha256:1 a /a", "--checksum is for sources that are URLs"),
    ],
)
def test_mistakes_are_one_line_with_their_place(bench: Bench, text: str, told: str | None) -> None:
    bench.put("a", "1")
    bench.put("dir/x", "1")
    bench.put("dir/f", "1")
    if told and "folder already" in told:
        text = text.replace("busybox\n", "busybox\nRUN mkdir /etc/f\n")
    if told is None:
        bench.run(text)
        return
    with pytest.raises(ClusterError, match=told) as caught:
        bench.run(text)
    assert "\n" not in str(caught.value)
    assert not list((bench.data / "images").glob(".build*"))
    assert not list((bench.data / "build" / "work").iterdir())


def test_flags_that_are_wrong_are_reported(bench: Bench, tmp_path: Path) -> None:
    def run(*words: str) -> None:
        image.main(["build", "--data-dir", str(bench.data), *words])

    with pytest.raises(ClusterError, match="needs a name"):
        run(str(bench.context))
    with pytest.raises(ClusterError, match="invalid image name 'UP'"):
        run("-t", "UP", str(bench.context))
    with pytest.raises(ClusterError, match="is no folder"):
        run("-t", "a", str(tmp_path / "absent"))
    with pytest.raises(ClusterError, match="Dockerfile: No such file"):
        run("-t", "a", str(bench.context))
    with pytest.raises(ClusterError, match="give a folder"):
        run("-t", "a", "https://example.com/x.git")
    with pytest.raises(ClusterError, match="no stage 'x'"):
        bench.run("FROM busybox", "--target", "x")
    with pytest.raises(ClusterError, match="not NAME=VALUE"):
        bench.run("FROM busybox", "--build-arg", "=x")
    with pytest.raises(ClusterError, match="not UTF-8"):
        bench.run("FROM busybox", "--label", "a=\udcff")
