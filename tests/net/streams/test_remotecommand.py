"""How a command ended, from what servers of any age say on the error stream."""

from __future__ import annotations

import pytest

from pybernetes.net.streams.remotecommand import SUCCESS, failure, result_of

FAILED = b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'


def test_success_is_success() -> None:
    assert result_of(b'{"metadata":{},"status":"Success"}', with_status=True) == SUCCESS
    assert result_of(b"", with_status=True) == SUCCESS
    assert result_of(b"", with_status=False) == SUCCESS


def test_an_exit_code_is_reported_as_upstream_tells_it() -> None:
    found = result_of(FAILED, with_status=True)
    assert found["reason"] == "NonZeroExitCode"
    assert found["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert found["message"] == "command terminated with non-zero exit code: command terminated with exit code 3"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"{", "error stream protocol error: "),
        (b"[]", "error stream protocol error: unknown error"),
        (b'{"status":"Odd"}', "error stream protocol error: unknown error"),
        (b'{"status":"Failure","message":"oh no"}', "oh no"),
        (b'{"status":"Failure","reason":"NonZeroExitCode"}', "error stream protocol error: no ExitCode cause given"),
        (
            b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}',
            "no",
        ),
    ],
)
def test_what_else_is_said_is_a_failure(said: bytes, message: str) -> None:
    found = result_of(said, with_status=True)
    assert found["status"] == "Failure"
    assert found["reason"] == "InternalError"
    assert message in found["message"]


def test_old_servers_say_it_in_words() -> None:
    assert result_of(b"boom", with_status=False) == failure("error executing remote command: boom")
