"""Wheel and source distribution carry everything; the version is in one place; the files of the house are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import tools

PROJECT = tomllib.loads((tools.ROOT / "pyproject.toml").read_text())["project"]
HOUSE = (
    *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "README.md", ".editorconfig", "mkdocs.yml"),
    *(".pre-commit-config.yaml", ".github/workflows/test.yml", ".github/PULL_REQUEST_TEMPLATE.md", "action.yml"),
    *(".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/feature.yml", "Dockerfile"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of this checkout's files; nothing is fetched."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tools.ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    wanted = ("src/", "docs/", "examples/", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.in")
    for name in listed.stdout.split("\0"):
        if name.startswith(wanted) and (tools.ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(tools.ROOT / name, source / name) if os.stat(tools.ROOT).st_dev == os.stat(folder).st_dev else (
                source / name
            ).write_bytes((tools.ROOT / name).read_bytes())
    for what in ("wheel", "sdist"):
        program = f"from setuptools import build_meta; import sys; build_meta.build_{what}(sys.argv[1])"
        argv = [sys.executable, "-c", program, str(folder)]
        done = subprocess.run(argv, cwd=source, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
    return folder


def data_files() -> set[str]:
    """Files of the package that are no modules, as git has them."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=tools.ROOT, capture_output=True, check=True, text=True)
    return {each.removeprefix("src/") for each in listed.stdout.split() if not each.endswith((".py", ".md"))}


def test_the_wheel_has_every_module_and_data_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    carried = set(zipfile.ZipFile(wheel).namelist())
    assert not data_files() - carried
    modules = {str(each.relative_to(tools.ROOT / "src")) for each in (tools.ROOT / "src").rglob("*.py")}
    assert not modules - carried
    metadata = next(each for each in carried if each.endswith("dist-info/METADATA"))
    assert f"\nVersion: {PROJECT['version']}\n" in zipfile.ZipFile(wheel).read(metadata).decode()


def test_the_source_distribution_builds_the_same(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        carried = {each.partition("/")[2] for each in content.getnames()}
    assert not {f"src/{each}" for each in data_files()} - carried
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs/design.md", "examples/README.md"} <= carried


def test_an_installed_wheel_runs(built: Path, tmp_path: Path) -> None:
    """In a virtual environment whose other packages are those of this one."""
    (wheel,) = built.glob("*.whl")
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False)
    packages = next((folder / "lib").glob("python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(packages)
    ours = Path(sys.executable).parent.parent / "lib" / packages.parent.name / "site-packages"
    # Behind its own packages; `.pth` files, such as that of this checkout's editable installation, are not read there.
    program = f"import sys; sys.path.append({str(ours)!r}); import pybernetes; "
    program += (
        "assert 'venv' in pybernetes.__file__; from pybernetes.cluster.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def pyb(*words: str) -> str:
        argv = [str(folder / "bin" / "python"), "-P", "-c", program, *words]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert pyb("version").startswith(f"pybernetes {PROJECT['version']} (Kubernetes API v1.36")
    assert "--etcd-servers" in pyb("apiserver", "--help")
    assert "type: ClusterIP" in pyb(
        "kubectl", "create", "service", "clusterip", "web", "--tcp=80", "--dry-run=client", "-o=yaml"
    )


def test_the_version_is_in_one_place() -> None:
    version = re.escape(PROJECT["version"])
    package = (tools.ROOT / "src" / "pybernetes").rglob("*.py")
    said = [each for each in package if re.search(rf"__version__|pybernetes[ /]{version}", each.read_text())]
    assert said == []


def test_the_house_is_complete_and_its_yaml_is_yaml() -> None:
    missing = [each for each in HOUSE if not (tools.ROOT / each).is_file()]
    assert missing == []
    for name in HOUSE:
        if name.endswith((".yml", ".yaml")):
            assert yaml.safe_load((tools.ROOT / name).read_text())
    workflow = yaml.safe_load((tools.ROOT / ".github/workflows/test.yml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    assert any(".ci/run" in each.get("run", "") for each in steps)
    assert "## Unreleased" in (tools.ROOT / "CHANGELOG.md").read_text()
