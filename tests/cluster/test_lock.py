"""`pyb lock`: what is asked for in pyproject.toml, pinned with hashes for every supported Python and machine."""

from __future__ import annotations

import http.server
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator

import pytest

import tools
from pybernetes.cluster.commands import lock
from pybernetes.cluster.commands.lock import Package
from pybernetes.cluster.errors import ClusterError

CHOSEN = "a" * 64


def package(name: str, *needs: str) -> Package:
    return Package(name, "1.0", list(needs), CHOSEN)


def test_the_lock_belongs_to_the_requirements_of_the_project() -> None:
    project = tomllib.loads((tools.ROOT / "pyproject.toml").read_text())
    assert lock.is_current(tools.ROOT, project), "pyproject.toml asks for other packages: run `./pyb lock`"
    project["project"]["dependencies"].append("another>=1")
    assert not lock.is_current(tools.ROOT, project)


@pytest.mark.parametrize("path", [lock.RUN, lock.TEST], ids=str)
def test_every_line_pins_a_version_with_hashes_and_names_no_host(path: str) -> None:
    text = (tools.ROOT / path).read_text()
    assert "//" not in text
    entries = [entry for entry in text.partition("\n\n")[2].replace("\\\n", "").splitlines() if entry]
    assert entries
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+]+( +--hash=sha256:[0-9a-f]{64})+", entry), entry


def test_the_two_files_share_no_package_and_the_run_has_its_build_tool() -> None:
    run, test = (
        set(re.findall("^([a-z0-9-]+)==", (tools.ROOT / path).read_text(), re.M)) for path in (lock.RUN, lock.TEST)
    )
    assert not run & test
    assert {"setuptools", "msgspec"} <= run
    assert {"pytest", "ruff", "mypy"} <= test


def test_the_lock_names_all_that_its_packages_need() -> None:
    """pip installs the lock without looking for dependencies: one that is missing there is missing here."""
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_packages_that_any_supported_python_needs_belong_to_the_closure() -> None:
    packages = {
        "app": package("app", "old; python_version < '3.10'", "middle; python_version < '3.12'", "arm[fast]>=2"),
        "arm": package("arm", "new; python_version >= '3.13'", "speed; extra == 'fast'", "win; os_name == 'nt'"),
        "speed": package("speed", "app"),
    }
    assert lock.closure(["app>=1"], packages) == {"app", "middle", "arm", "new", "speed"}
    assert lock.closure(["arm"], packages) == {"arm", "new"}


def test_what_another_python_needs_is_resolved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"app": package("app", "new; python_version >= '3.13'"), "new": package("new")}
    monkeypatch.setattr(lock, "_pip_report", lambda asked: [known[each] for each in asked])
    assert set(lock.resolve(["app"])) == {"app", "new"}


@pytest.fixture
def index() -> Iterator[tuple[str, list[str]]]:
    """An index of one package, and the names of its files."""
    files: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            links = [f'<a href="../f/{file}#sha256={chr(97 + n) * 64}">{file}</a>' for n, file in enumerate(files)]
            self.send_response(200)
            self.end_headers()
            self.wfile.write("\n".join(links).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple", files
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_wheels_of_the_version_are_pinned_and_nothing_else(index: tuple[str, list[str]]) -> None:
    url, files = index
    files += [
        "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        "x-1.0-cp312-abi3-manylinux_2_17_x86_64.whl",
        "x-1.0-cp311-abi3-manylinux_2_17_aarch64.whl",
        "x-1.0-cp314-cp314-macosx_11_0_arm64.whl",
        "x-1.0-cp310-cp310-manylinux_2_17_x86_64.whl",
        "x-1.1-py3-none-any.whl",
        "x-1.0.tar.gz",
    ]
    lines = lock.pin(package("x"), url).split(" \\\n")
    assert lines == ["x==1.0", *(f"    --hash=sha256:{letter * 64}" for letter in "abcd")]


def test_a_machine_without_a_wheel_and_a_file_from_elsewhere_are_errors(index: tuple[str, list[str]]) -> None:
    url, files = index
    files.append("x-1.0-cp311-abi3-manylinux_2_17_x86_64.whl")
    with pytest.raises(ClusterError, match=r"x 1.0 has no wheel for Python 3.11 on aarch64"):
        lock.pin(package("x"), url)
    with pytest.raises(ClusterError, match="not on the index"):
        lock.pin(package("x")._replace(chosen="f" * 64), url)
