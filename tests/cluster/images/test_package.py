"""Images of Debian packages: real packages of this machine, run in a root of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives, elf, oci, package

needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not a Debian machine")
needs_nginx = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin") is None or os.geteuid() != 0, reason="needs nginx and root"
)


@pytest.mark.parametrize(
    ("version", "want"),
    [
        ("1.22.1-9+deb12u10", "1.22.1"),
        ("5:7.0.15-1~deb12u1", "7.0.15"),
        ("1.8.1+dfsg-2", "1.8.1"),
        ("3.11.2-1+b1", "3.11.2"),
        ("2.36", "2.36"),
        ("1.0-rc1-2", "1.0-rc1"),
        ("2:4.13.13+dfsg-1~deb11u6", "4.13.13"),
    ],
)
def test_the_version_of_the_program_is_the_tag(version: str, want: str) -> None:
    assert package.upstream_version(version) == want
    oci.full_name(f"x:{package.upstream_version(version)}")


def test_a_closure_follows_dependencies_alternatives_and_what_is_provided_but_not_the_base_system() -> None:
    def made(
        name: str, *depends: tuple[str, ...], base: bool = False, provides: tuple[str, ...] = ()
    ) -> package.Package:
        return package.Package(name, "1", base, depends, provides)

    installed = {
        each.name: each
        for each in (
            made("app", ("lib",), ("absent", "other"), ("mail-agent",), ("dpkg",)),
            made("lib", ("app",)),
            made("other"),
            made("postfix", provides=("mail-agent",)),
            made("dpkg", ("tar",), base=True),
            made("tar"),
        )
    }
    assert {each.name for each in package.closure("app", installed)} == {"app", "lib", "other", "postfix"}


@pytest.mark.parametrize(
    ("unit", "want"),
    [
        ("[Service]\nExecStart=/usr/sbin/lighttpd -D -f '/etc/a b'\n", ["/usr/sbin/lighttpd", "-D", "-f", "/etc/a b"]),
        ("[Service]\nType=exec\nExecStart=-/usr/sbin/x\n", ["/usr/sbin/x"]),
        ("[Service]\nType=forking\nExecStart=/usr/sbin/x\n", []),
        ("[Service]\nType=notify\nExecStart=/usr/sbin/x\n", []),
        ("[Service]\nExecStart=/usr/sbin/x $OPTIONS\n", []),
        ("[Service]\nExecStart=/usr/sbin/x -i %i\n", []),
        ("[Service]\n", []),
    ],
)
def test_a_servers_command_is_systemds_if_a_container_can_run_it(unit: str, want: list[str]) -> None:
    assert package.unit_command(unit) == want


def test_what_a_program_links_to_is_read_from_it(tmp_path: Path) -> None:
    found = elf.needs(Path("/bin/sh").resolve())
    assert found is not None
    assert "libc.so.6" in found.libraries
    assert found.interpreter is not None
    assert Path(found.interpreter).exists()
    text = tmp_path / "script"
    text.write_text("#!/bin/sh\n")
    assert elf.needs(text) is None
    broken = tmp_path / "broken"
    broken.write_bytes(Path("/bin/sh").resolve().read_bytes()[:100])
    assert elf.needs(broken) is None


@needs_dpkg
def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(ClusterError, match="no-such-package is not installed; apt-get install no-such-package"):
        package.image("no-such-package")


@needs_dpkg
def test_a_package_without_a_program_of_its_name_asks_for_one() -> None:
    with pytest.raises(ClusterError, match="which program of libc6 shall run"):
        package.image("libc6")
    made, _ = package.image("libc6", ["mine:1"], ["ldconfig", "-p"])
    assert (made.names, made.command) == (["mine:1"], ["ldconfig", "-p"])


@needs_nginx
def test_nginx_runs_in_a_root_of_its_image_alone(tmp_path: Path) -> None:
    made, left_out = package.image("nginx")
    assert made.names[0] == f"nginx:{package.upstream_version(_version('nginx'))}"
    assert left_out == []
    archive = tmp_path / "nginx.tar"
    oci.write(archive, made)
    assert archives.names(archive) == [oci.full_name(name) for name in made.names]
    root = tmp_path / "root"
    _unpack(archive, root)
    ran = subprocess.run(["chroot", root, "nginx", "-t"], capture_output=True, text=True)
    assert "test is successful" in ran.stderr, ran.stderr
    assert (root / "var/www/html").is_dir()
    assert os.readlink(root / "var/log/nginx/access.log") == "/dev/stdout"
    # A shell and tools, for `kubectl exec` and `kubectl cp`.
    if shutil.which("busybox"):
        assert (
            subprocess.run(["chroot", root, "sh", "-c", "tar --help; id -u www-data"], capture_output=True).returncode
            == 0
        )
    # Nothing about people, nothing secret.
    assert not (root / "etc/shadow").exists()
    numbers = [int(line.split(":")[2]) for line in (root / "etc/passwd").read_text().splitlines()]
    assert all(number < 1000 or number == 65534 for number in numbers)


@needs_nginx
def test_modules_that_the_image_has_not_are_not_switched_on_in_it(tmp_path: Path) -> None:
    made, _ = package.image("nginx")
    paths = {entry.path for entry in made.entries}
    for entry in made.entries:
        if entry.link is not None and entry.path.startswith("/etc/nginx/"):
            assert os.path.realpath(entry.path) in paths, entry


def _unpack(archive: Path, root: Path) -> None:
    with tarfile.open(archive) as tar:
        index = json.load(tar.extractfile("index.json"))  # type: ignore[arg-type]
        manifest = json.load(tar.extractfile(_path(index["manifests"][0]["digest"])))  # type: ignore[arg-type]
        member = tar.extractfile(_path(manifest["layers"][0]["digest"]))
        with tarfile.open(fileobj=member, mode="r:gz") as layer:
            layer.extraction_filter = lambda member, path: member  # which Python before 3.11.4 does not know
            layer.extractall(root)


def _path(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _version(name: str) -> str:
    return subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True, check=True
    ).stdout


@needs_dpkg
@pytest.mark.skipif(
    shutil.which("curl") is None or not os.path.exists(package.AUTHORITIES), reason="needs curl and ca-certificates"
)
def test_a_program_that_speaks_tls_knows_whom_to_trust() -> None:
    made, _ = package.image("curl")
    entries = {each.path.lstrip("/"): each for each in made.entries}
    assert entries[package.AUTHORITIES.lstrip("/")].content == Path(package.AUTHORITIES)
    assert entries["usr/lib/ssl/cert.pem"].link == package.AUTHORITIES
