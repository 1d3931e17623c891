"""The ordinary run draws the same cases each time; `--soak` draws others, from a seed that it prints."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from plugins import inner_pytest

run = functools.partial(inner_pytest.run, plugin="determinism")

CASES = """
import random
from hypothesis import given, strategies as st
drawn = []

@given(st.lists(st.integers()), st.text())
def test_hypothesis(numbers, text):
    drawn.append((numbers, text))

def test_random(run_seed):
    print("DRAWN", hash(str(drawn)), random.random(), run_seed)
"""


def drawn(output: str) -> str:
    found = re.search("DRAWN .*", output)
    assert found is not None, output
    return found[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_cases.py").write_text(CASES)
    return tmp_path


def test_the_ordinary_run_draws_the_same_cases_each_time_and_keeps_none(folder: Path) -> None:
    first = run(folder, "-s")
    assert drawn(first) == drawn(run(folder, "-s"))
    assert "--seed" not in first
    assert not (folder / ".hypothesis" / "examples").exists()


def test_tests_and_modules_that_came_before_change_nothing(folder: Path) -> None:
    alone = drawn(run(folder, "-s"))
    (folder / "constants.py").write_text("A = 'some constant'; B = 123456789; C = ['another', 987654321]")
    (folder / "test_before.py").write_text("import constants, random\ndef test_before(): random.random()")
    assert drawn(run(folder, "-s")) == alone


def test_a_soak_draws_other_cases_and_its_seed_brings_them_back(folder: Path) -> None:
    first, second = run(folder, "-s", "--soak"), run(folder, "-s", "--soak")
    assert drawn(first) != drawn(second)
    seed = re.search(r"random cases: --seed (\d+)", first)
    assert seed is not None
    again = run(folder, "-s", "--seed", seed[1])
    assert drawn(again) == drawn(first)
    assert again.count(f"random cases: --seed {seed[1]}") == 2


def test_workers_use_the_seed_of_the_run(folder: Path) -> None:
    (folder / "test_cases.py").write_text("def test_it(run_seed, request): assert run_seed == 99")
    assert "1 passed" in run(folder, "-n", "1", "--seed", "99")


def test_a_test_that_lets_chance_or_time_decide_is_refused(folder: Path) -> None:
    (folder / "test_chance.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "@settings(derandomize=False, deadline=200, suppress_health_check=[])\n"
        "@given(st.integers())\n"
        "def test_it(number): pass\n"
    )
    output = run(folder)
    for why in ("derandomize", "deadline", "HealthCheck.too_slow"):
        assert f"test_chance.py::test_it: {why}" in output.replace("suppress_health_check without ", "")
