"""`--reverse` and `--shuffle SEED` run the same tests in another order."""

from __future__ import annotations

import functools
from pathlib import Path

from plugins import inner_pytest

run = functools.partial(inner_pytest.run, plugin="order")


def test_the_order_is_reversed_or_shuffled_by_a_seed(tmp_path: Path) -> None:
    for file in "abc":
        names = "".join(f"def test_{number}(): print('RAN', '{file}{number}')\n" for number in range(4))
        (tmp_path / f"test_{file}.py").write_text(names)

    def order(*arguments: str) -> list[str]:
        return [line.split()[-1] for line in run(tmp_path, "-s", *arguments).splitlines() if "RAN" in line]

    usual = order()
    assert usual == [f"{file}{number}" for file in "abc" for number in range(4)]
    assert order("--reverse") == usual[::-1]
    shuffled = order("--shuffle", "3")
    assert shuffled != usual
    assert sorted(shuffled) == usual
    assert order("--shuffle", "3") == shuffled != order("--shuffle", "4")
    assert [name[0] for name in shuffled[::4]] == [name[0] for name in shuffled[3::4]]  # a file stays together
