"""The `traceparent` header, by the rules and examples of W3C's Trace Context."""

from __future__ import annotations

import pytest

from pybernetes.trace import context

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_header_names_trace_and_span_and_whether_it_is_recorded() -> None:
    assert context.parse(f"00-{TRACE}-{SPAN}-01") == context.SpanContext(TRACE, SPAN, True)
    assert context.parse(f"00-{TRACE}-{SPAN}-00") == context.SpanContext(TRACE, SPAN, False)


def test_a_later_version_may_say_more() -> None:
    assert context.parse(f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like") is not None
    assert context.parse(f"00-{TRACE}-{SPAN}-01-what-the-future-will-be-like") is None


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN[:-1]}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n00",
    ],
)
def test_what_is_malformed_is_no_context(header: str) -> None:
    assert context.parse(header) is None


def test_a_formatted_header_is_read_again() -> None:
    header = context.format_header(context.new_trace(), context.new_span())
    assert len(header) == context.LENGTH
    assert context.parse(header) is not None
