"""Makes the ordinary run draw the same cases every time; random cases belong to `--soak`, which prints its seed.

Three things draw cases: hypothesis, the module `random`, and tests with a generator of their own (the fixture
`run_seed`). In the ordinary run all three are fixed, and what they draw depends on the test alone: not on the tests
that ran before it in the same worker, not on the clock, not on a database of earlier examples. With `--soak` or
`--seed N` they follow one seed, which is printed at the beginning and the end of the run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

FIXED_SEED = 7
ORDINARY, RANDOM = "ordinary", "random"

# How long an example takes says more about the machine's other work than about the code: no deadline, and no health
# check that measures time.
settings.register_profile(
    ORDINARY,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(RANDOM, settings.get_profile(ORDINARY), derandomize=False)
# Test modules are imported after this one, and `@settings(...)` inherits what is loaded at that time.
settings.load_profile(ORDINARY)

# hypothesis also draws constants out of the project's modules that happen to be imported: another set in each worker.
_NO_CONSTANTS = providers.Constants()
providers._get_local_constants = lambda: _NO_CONSTANTS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also run the long tests, with random cases")
    parser.addoption("--seed", type=int, help="draw random cases from this seed, as --soak does from one it prints")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Chooses the seed in the first process; workers receive it with the options."""
    if config.option.seed is None and config.option.soak:
        config.option.seed = random.SystemRandom().randrange(1 << 32)
    if config.option.seed is not None:
        settings.load_profile(RANDOM)
        config.option.hypothesis_seed = str(config.option.seed)  # read by hypothesis' own plugin


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    _print_seed(session.config)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(config: pytest.Config) -> None:
    _print_seed(config)


def _print_seed(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if config.option.seed is not None and reporter is not None and not hasattr(config, "workerinput"):
        reporter.write_line(f"random cases: --seed {config.option.seed}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips long tests, and refuses tests whose own hypothesis settings bring back chance or the clock."""
    for item in items:
        if item.get_closest_marker("soak") and not config.option.soak:
            item.add_marker(pytest.mark.skip(reason="a long test: ./pyb test --soak"))
    bad = [f"{item.nodeid}: {why}" for item in items for why in unsteady(item)]
    if bad:
        raise pytest.UsageError("hypothesis settings that decide by chance or time:\n" + "\n".join(bad))


def unsteady(item: pytest.Item) -> Iterator[str]:
    """What in the hypothesis settings of a test lets the same commit give another result."""
    function = getattr(item, "obj", None)
    if not getattr(function, "is_hypothesis_test", False):
        return
    stateful = getattr(getattr(item, "cls", None), "settings", None)
    found = stateful or getattr(function, "_hypothesis_internal_use_settings", settings.default)
    if found.derandomize != settings.default.derandomize:
        yield "derandomize"
    if found.database is not None:
        yield "database"
    if found.deadline is not None:
        yield "deadline"
    if HealthCheck.too_slow not in found.suppress_health_check:
        yield "suppress_health_check without HealthCheck.too_slow"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives `random` a state that depends on the test alone; back-off and names in this process follow it."""
    random.seed(f"{item.config.option.seed}:{item.nodeid}")


@pytest.fixture(scope="session")
def run_seed(request: pytest.FixtureRequest) -> int:
    """The seed for a test's own generator: always the same, or that of `--soak`."""
    seed = request.config.option.seed
    return FIXED_SEED if seed is None else int(seed)
