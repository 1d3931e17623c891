"""`./pyb mutate [PATH]`: breaks the code at random places and tells which breaks no test notices.

Each place is broken in a copy of the checkout, and the tests nearest to the module run there, until the first fails;
if none does, those that are farther away (not with `--near`).
The draw follows the seed: the same seed and commit break the same places. A failure counts only if the test that
failed passes without the break.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from nearest import farther_tests, nearest_tests
from sites import Site, sites

CAUGHT, SURVIVED, UNCLEAR, UNTESTED = "caught", "SURVIVED", "unclear", "UNTESTED"
NO_TESTS = 5  # pytest's exit code for files without a test
LIMIT = 600.0
"""Seconds for the tests of one place; what makes them hang is noticed."""
PARTS = ("src", "tests", "tools", "requirements", "pyproject.toml", "pyb", "bench", "docs", "README.md")


class Result(NamedTuple):
    """What became of one place."""

    site: Site
    outcome: str
    by: str
    seconds: float


def main(root: Path, argv: Sequence[str]) -> int:
    """Draws, runs and reports; fails if a break was not noticed."""
    parser = argparse.ArgumentParser(prog="pyb mutate", description=__doc__)
    parser.add_argument("path", nargs="?", default="src/pybernetes", help="a file or folder of src/")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="places to break")
    parser.add_argument("--skip", type=int, default=0, help="go on behind so many places of the same draw")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--near", action="store_true", help="only the nearest tests: quicker, and more survive")
    parser.add_argument("--list", action="store_true", help="only print the places")
    options = parser.parse_args(argv)
    drawn = draw(root, Path(options.path), options.seed, options.skip + options.count)[options.skip :]
    if options.list:
        for site in drawn:
            print(f"{site.path}:{site.line}: {site.what}\n{diff(root, site)}")
        return 0
    results = []
    with tempfile.TemporaryDirectory(prefix="pyb-mutate-") as folder:
        root = copy(root, Path(folder) / "original")  # the checkout may be edited meanwhile
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(copy(root, Path(folder) / str(number)))
        with ThreadPoolExecutor(options.jobs) as pool:
            for result in pool.map(lambda site: attempt(root, copies, site, near=options.near), drawn):
                results.append(result)
                show(root, result)
    caught = sum(result.outcome == CAUGHT for result in results)
    judged = sum(result.outcome != UNCLEAR for result in results)
    print(f"seed {options.seed}: {caught} of {judged} breaks caught ({100 * caught / max(1, judged):.0f} %)")
    return 0 if caught == judged else 1


def draw(root: Path, path: Path, seed: int, count: int) -> list[Site]:
    """So many places, each equally likely."""
    given = path if path.is_absolute() else root / path
    files = sorted(given.rglob("*.py")) if given.is_dir() else [given]
    found = [site for file in files for site in sites(file.relative_to(root), file.read_text())]
    random.Random(seed).shuffle(found)
    good = (site for site in found if site.compiles((root / site.path).read_text()))
    return list(itertools.islice(good, count))


def copy(root: Path, to: Path) -> Path:
    """A copy of the checkout for one worker."""
    to.mkdir()
    for name in PARTS:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        elif (root / name).exists():
            shutil.copy2(root / name, to / name)
    if (root / ".cache").exists():
        (to / ".cache").symlink_to(root / ".cache")
    return to


def attempt(root: Path, copies: SimpleQueue[Path], site: Site, *, near: bool = False) -> Result:
    """Break one place in a copy, and see whether a test notices."""
    began = time.monotonic()
    rounds = [nearest_tests(root, site.path), [] if near else farther_tests(root, site.path)]
    rounds = [tests for tests in rounds if tests]
    if not rounds:
        return Result(site, UNTESTED, "", 0.0)
    checkout = copies.get()
    file = checkout / site.path
    try:
        file.write_text(site.apply((root / site.path).read_text()))
        failed = next((failed for tests in rounds if (failed := first_failure(checkout, tests)) is not None), None)
        shutil.copy2(root / site.path, file)
        if failed is None:
            return Result(site, SURVIVED, ", ".join(itertools.chain(*rounds)), time.monotonic() - began)
        if "::" in failed and first_failure(checkout, [failed]) is not None:
            return Result(site, UNCLEAR, f"{failed} fails without it too", time.monotonic() - began)
        return Result(site, CAUGHT, failed, time.monotonic() - began)
    finally:
        shutil.copy2(root / site.path, file)
        copies.put(checkout)


def first_failure(checkout: Path, tests: Sequence[str]) -> str | None:
    """The first test that fails, or what else went wrong; None if all pass."""
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-n", "0", "--no-header", "-p", "no:cacheprovider"]
    # Our own plugin of pytest is part of what is broken here.
    command += ["-p", "no:pybernetes"]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(
        [*command, "--time-limit", "60", *tests],
        **{"cwd": checkout, "env": environment, "stdin": subprocess.DEVNULL, "start_new_session": True},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"},
    )
    try:
        output = process.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        return "the tests hang"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    if process.returncode in (0, NO_TESTS):
        return None
    found = re.search(r"^(?:FAILED|ERROR) (tests/\S+?::.+?)(?: - |$)", output, re.M)
    return found[1] if found else f"pytest's exit code {process.returncode}"


def diff(root: Path, site: Site) -> str:
    """The break as a patch."""
    source = (root / site.path).read_text()
    lines = difflib.unified_diff(source.splitlines(), site.apply(source).splitlines(), lineterm="", n=2)
    return "\n".join("    " + line for line in list(lines)[2:])


def show(root: Path, result: Result) -> None:
    """One line for what was noticed, the patch for what was not."""
    site = result.site
    print(f"{result.outcome:8} {site.path}:{site.line} ({site.what}, {result.seconds:.0f} s) {result.by}", flush=True)
    if result.outcome in (SURVIVED, UNTESTED):
        print(diff(root, site), flush=True)
