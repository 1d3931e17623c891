"""Every status code has a first line, also those that have no name."""

from __future__ import annotations

import pytest

from pybernetes.net.http import _HEAD, status_line


@pytest.mark.parametrize("code", range(400, 600))
def test_every_code_of_an_error_can_be_sent(code: int) -> None:
    number, reason = status_line(code)
    assert _HEAD[code].startswith(b"HTTP/1.1 %d %b\r\n" % (code, reason))
    assert (number, bool(reason)) == (code, True)


def test_codes_without_a_name_have_the_words_that_go_uses() -> None:
    assert status_line(404) == (404, b"Not Found")
    assert status_line(450) == (450, b"status code 450")


@pytest.mark.parametrize("code", [-1, 0, 99, 1000, 2**40])
def test_what_is_no_code_is_a_fault(code: int) -> None:
    assert status_line(code)[0] == 500
    assert _HEAD[code].startswith(b"HTTP/1.1 500 ")
    assert code not in dict(_HEAD)
