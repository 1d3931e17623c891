"""Other orders of the tests, to find those that lean on one that ran before: `--reverse` and `--shuffle SEED`."""

from __future__ import annotations

import random
from itertools import groupby

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reverse", action="store_true", help="run the tests in the reverse order")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the files, and the tests in each, in this order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files stay together: their fixtures are made once."""
    if config.option.shuffle is not None:
        dice = random.Random(config.option.shuffle)
        files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
        dice.shuffle(files)
        for group in files:
            dice.shuffle(group)
        items[:] = [item for group in files for item in group]
    if config.option.reverse:
        items.reverse()
