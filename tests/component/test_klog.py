"""Log lines look as klog writes them, and `-v` decides which are shown."""

from __future__ import annotations

import io
import logging
import re

import pytest

from pybernetes.client.keys import Key
from pybernetes.component import klog


@pytest.fixture
def written() -> tuple[logging.Logger, io.StringIO]:
    log, out = logging.Logger("klog-test"), io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(klog.Formatter())
    log.addHandler(handler)
    return log, out


def test_a_structured_line_has_klogs_form(written: tuple[logging.Logger, io.StringIO]) -> None:
    log, out = written
    log.setLevel(klog.level_of(2))
    klog.info(
        log, 2, 'SyncLoop "ADD"', source="api", pods=[Key("default", "web")], need=3, ok=True, err=None, node={"a": 1}
    )
    line = out.getvalue()
    head = r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_klog\.py:\d+\] "
    rest = r'"SyncLoop \\"ADD\\"" source="api" pods=\["default/web"\] need=3 ok=true err="<nil>" node=\{"a":1\}\n'
    assert re.fullmatch(head + rest, line), line


def test_text_of_others_cannot_make_a_line_of_its_own(written: tuple[logging.Logger, io.StringIO]) -> None:
    log, out = written
    log.setLevel(klog.level_of(0))
    klog.error(log, ValueError("a\nI0101 forged"), "failed", pod="x\ny")
    log.warning("plain %s", "a\nI0101 forged")
    lines = out.getvalue().splitlines()
    assert [each[0] for each in lines] == ["E", "W", "\t"]
    assert lines[0].endswith('"failed" err="a\\nI0101 forged" pod="x\\ny"')


def test_text_of_others_does_not_steer_a_terminal(written: tuple[logging.Logger, io.StringIO]) -> None:
    log, out = written
    log.setLevel(klog.level_of(0))
    text = "\x1b]0;title\a \r forged \0 \x7f \x9b2J \tä"
    log.warning("plain %s", text)
    klog.error(log, ValueError(text), "failed")
    try:
        raise ValueError(text)
    except ValueError:
        log.exception("broken")
    assert not set(out.getvalue()) & {chr(each) for each in (*range(9), *range(11, 32), *range(127, 160))}
    assert out.getvalue().splitlines()[0].endswith("plain \\x1b]0;title\\x07 \\x0d forged \\x00 \\x7f \\x9b2J \tä")


@pytest.mark.parametrize("verbosity", range(12))
def test_v_decides_what_is_shown(written: tuple[logging.Logger, io.StringIO], verbosity: int) -> None:
    log, out = written
    log.setLevel(klog.level_of(verbosity))
    for each in range(11):
        klog.info(log, each, f"v{each}")
    log.info("i2")
    log.debug("d4")
    shown = re.findall(r"\] \"?(\w\d+)", out.getvalue())
    expected = [f"v{each}" for each in range(11) if each <= verbosity]
    assert shown == expected + ["i2"] * (verbosity >= 2) + ["d4"] * (verbosity >= 4)
    assert klog.verbosity_of(klog.level_of(verbosity)) == min(verbosity, 10)


def test_a_level_below_all_of_klogs_is_shown_with_the_highest_verbosity() -> None:
    assert klog.verbosity_of(1) == 10
    assert klog.verbosity_of(logging.CRITICAL) == 0
