"""Makes an image of an installed Debian package, so that a machine without a network has real images.

In it are the files of the package and of the packages it depends on, but for the base system, documentation and what
are not world-readable; the libraries that any of its programs link to; its configuration as it is on this machine; and
busybox, if there is one, for a shell and the small tools.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import builtin, oci
from pybernetes.cluster.images.collected import Collected, base, library_cache

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""The machine's trusted CAs: a package's script makes the file, so that it belongs to no package."""
TLS_LIBRARIES = ("libssl.so", "libgnutls.so")
# The base system serves maintainer scripts and logins, which a container has not.
BASE = {"required", "important"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a server runs in a container, where its package says that only to systemd."""

    command: Sequence[str]
    ports: Sequence[str] = ()
    copies: dict[str, str] = field(default_factory=dict)  # what its installation copies: target -> source
    links: dict[str, str] = field(default_factory=dict)
    folders: Sequence[str] = ()
    environment: Sequence[str] = ()
    stop_signal: str = ""


_NGINX = Recipe(
    command=["nginx", "-g", "daemon off;"],
    ports=["80/tcp"],
    copies={"var/www/html/index.nginx-debian.html": "/usr/share/nginx/html/index.html"},
    links={"var/log/nginx/access.log": "/dev/stdout", "var/log/nginx/error.log": "/dev/stderr"},
    stop_signal="SIGQUIT",
)
RECIPES = {
    "nginx": _NGINX,
    "nginx-light": _NGINX,
    "redis-server": Recipe(command=["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"], ports=["6379/tcp"]),
    "apache2": Recipe(
        command=["apache2", "-D", "FOREGROUND"],
        ports=["80/tcp"],
        copies={"var/www/html/index.html": "/usr/share/apache2/default-site/index.html"},
        links={"var/log/apache2/access.log": "/dev/stdout", "var/log/apache2/error.log": "/dev/stderr"},
        folders=["run/apache2", "run/lock/apache2"],
        environment=[
            *("APACHE_RUN_USER=www-data", "APACHE_RUN_GROUP=www-data", "APACHE_LOG_DIR=/var/log/apache2", "LANG=C"),
            *("APACHE_RUN_DIR=/run/apache2", "APACHE_LOCK_DIR=/run/lock/apache2"),
            "APACHE_PID_FILE=/run/apache2/apache2.pid",
        ],
        stop_signal="SIGWINCH",
    ),
    "haproxy": Recipe(command=["haproxy", "-W", "-db", "-f", "/etc/haproxy/haproxy.cfg"], stop_signal="SIGUSR1"),
    "memcached": Recipe(command=["memcached", "-u", "nobody"], ports=["11211/tcp"]),
}


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package, as dpkg knows it."""

    name: str
    version: str
    base: bool
    depends: tuple[tuple[str, ...], ...]  # each with its alternatives
    provides: tuple[str, ...]


def image(name: str, names: Sequence[str] = (), command: Sequence[str] = ()) -> tuple[oci.Image, list[str]]:
    """The image of a package, and the files that were left out because they are not world-readable."""
    installed = _installed()
    if name not in installed:
        raise ClusterError(f"the package {name} is not installed; apt-get install {name}")
    chosen = closure(name, installed)
    collected = Collected()
    for package in chosen:
        collected.add_all(_files_of(package))
    recipe = RECIPES.get(name, Recipe(()))
    for path in _configuration(chosen, collected):
        collected.add_tree(path)
    for owner in _owners(collected.interpreters()):
        collected.add_all(_dpkg("-L", owner).splitlines())
    collected.add_libraries(library_cache())
    start = list(command) or list(recipe.command) or _unit_command(name) or [_program(name, chosen, collected)]
    entries = [*base(), *(oci.folder(path) for path in recipe.folders)]
    entries += [oci.link(path, target) for path, target in recipe.links.items()]
    entries += [oci.file(path, Path(source)) for path, source in recipe.copies.items() if os.path.isfile(source)]
    if any(os.path.basename(path).startswith(TLS_LIBRARIES) for path in collected.paths):
        collected.add(AUTHORITIES)
        entries += [oci.folder("usr/lib/ssl"), oci.link("usr/lib/ssl/cert.pem", AUTHORITIES)]  # where OpenSSL looks
    entries += collected.entries()
    busybox = builtin.busybox_program()
    if busybox is not None:
        entries += _shell(busybox)
    version = upstream_version(installed[name].version)
    made = oci.Image(
        names=list(names) or [f"{name}:{version}", f"{name}:latest"],
        entries=entries,
        command=start,
        environment=(oci.PATH, *recipe.environment),
        ports=recipe.ports,
        stop_signal=recipe.stop_signal,
        labels={"org.opencontainers.image.title": name, "org.opencontainers.image.version": installed[name].version},
    )
    return made, collected.unreadable


def closure(name: str, installed: dict[str, Package]) -> list[Package]:
    """The package and all it depends on, without the base system."""
    found = {name: installed[name]}
    todo = [name]
    while todo:
        for alternatives in installed[todo.pop()].depends:
            for each in _providers(alternatives, installed):
                if each.name not in found and not each.base:
                    found[each.name] = each
                    todo.append(each.name)
                break
    return list(found.values())


def upstream_version(version: str) -> str:
    """The version of the program in a Debian version, in letters a tag may have: `1:1.22.1-9+deb12u10` is `1.22.1`."""
    plain = version.partition(":")[2] or version
    return (
        re.sub(r"[^A-Za-z0-9_.-]", "-", re.sub(r"([~+](dfsg|ds|debian|really).*)?(-[^-]*)?$", "", plain, count=1))
        or "latest"
    )


def _providers(alternatives: Iterable[str], installed: dict[str, Package]) -> Iterator[Package]:
    for name in alternatives:
        if name in installed:
            yield installed[name]
        else:
            yield from (package for package in installed.values() if name in package.provides)


def _installed() -> dict[str, Package]:
    wanted = ("Package", "Version", "db:Status-Status", "Essential", "Priority", "Depends", "Pre-Depends", "Provides")
    fields = "\\t".join(f"${{{name}}}" for name in wanted) + "\\n"
    found = {}
    for line in _dpkg("-W", f"-f={fields}").splitlines():
        name, version, status, essential, priority, *relations = line.split("\t")
        if status == "installed":
            depends, before, provides = relations
            found[name] = Package(
                name,
                version,
                essential == "yes" or priority in BASE,
                tuple(_alternatives(f"{before}, {depends}")),
                tuple(name for names in _alternatives(provides) for name in names),
            )
    return found


def _alternatives(relation: str) -> Iterator[tuple[str, ...]]:
    for part in relation.split(","):
        names = [re.split(r"[\s(:]", word.strip(), maxsplit=1)[0] for word in part.split("|")]
        if any(names):
            yield tuple(name for name in names if name)


def _files_of(package: Package) -> list[str]:
    return [path for path in _dpkg("-L", package.name).splitlines() if path.startswith("/") and path != "/."]


def _owners(programs: Iterable[str]) -> set[str]:
    """The packages of programs, which Debian may know by either side of the merged /usr."""
    found = set()
    for program in sorted(programs):
        for path in (program, f"/usr{program}", program.removeprefix("/usr")):
            result = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
            if result.returncode == 0:
                found.add(result.stdout.split(":")[0].split(",")[0])
                break
    return found


def _dpkg(*words: str) -> str:
    try:
        result = subprocess.run(["dpkg-query", *words], capture_output=True, text=True)
    except FileNotFoundError:
        raise ClusterError("dpkg-query is not installed: images are made of Debian packages") from None
    if result.returncode != 0:
        raise ClusterError(f"dpkg-query {' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


def _configuration(packages: Iterable[Package], collected: Collected) -> list[str]:
    """The folders below /etc that are a package's own, by their names: there is more in them than it brought."""
    stems = {package.name.split("-")[0] for package in packages if not package.name.startswith("lib")}
    return [f"/etc/{stem}" for stem in sorted(stems) if f"/etc/{stem}" in collected.paths]


def _unit_command(name: str) -> list[str]:
    """The command of the package's systemd unit, if it is simple: no variables, no daemon in the background."""
    for path in _dpkg("-L", name).splitlines():
        if path.endswith((f"/{name}.service", f"/{name.removesuffix('-server')}.service")) and os.path.exists(path):
            return unit_command(Path(path).read_text())
    return []


def unit_command(unit: str) -> list[str]:
    """The command of a systemd unit that a container can run as it is, else nothing."""
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    command = settings.get("ExecStart", "").lstrip("-@:+!")
    if settings.get("Type", "simple") not in ("simple", "exec") or any(mark in command for mark in "$%\\"):
        return []
    return shlex.split(command)


def _program(name: str, packages: Sequence[Package], collected: Collected) -> str:
    """The program that a container of the image runs."""
    stems = {
        name,
        name.removesuffix("-server"),
        *(package.name for package in packages if name.startswith(package.name)),
    }
    for path, state in collected.paths.items():
        folder, _, program = path.rpartition("/")
        if folder in ("/usr/bin", "/usr/sbin") and program in stems and state.st_mode & stat.S_IXOTH:
            return program
    raise ClusterError(f"which program of {name} shall run? Say it: --command PROGRAM [ARGUMENT ...]")


def _shell(busybox: Path) -> list[oci.Entry]:
    commands = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    return [
        oci.file("usr/bin/busybox", busybox, 0o755),
        *builtin.busybox_commands(busybox, "usr/bin", commands),
    ]
