"""Which texts have a format, as upstream's server was seen to decide."""

from __future__ import annotations

import time

import pytest

from pybernetes.api.apiextensions.formats import CHECKS, has_format

CASES = {
    "byte": ("YQ== YWI= YWJj ////", " YQ YQ= -_8= ===="),
    "cidr": ("10.0.0.1/8 10.0.0.0/08 010.0.0.0/8 2001:db8::/32", "10.0.0.0 10.0.0.0/33 10.0.0.0/-1 ::/129"),
    "date": ("2024-01-01 0000-01-01 9999-12-31", "2024-1-1 2024-02-30 2024-13-01 20240101"),
    "date-time": (
        "2024-01-01T00:00:00Z 2024-01-01t00:00:00z 2024-01-01T00:00:00,5Z 2024-01-01T00:00:00-99:99",
        "2024-01-01 2024-01-01T00:00:00 2024-01-01T24:00:00Z 2024-01-01T23:59:60Z 2024-01-01T00:00:00+0200",
    ),
    "duration": ("1s 1h30m -1s 1_day 2_weeks 5_minutes P1D 1d2h 1µs 10_Nanoseconds", "1 1y PT s 1_fortnight"),
    "email": (
        'a@b a@b.c "a_b"@c.d A_<a@b.c> <a@b.c> a@[1.2.3.4] a+tag@b.co é@b.c a@b.c_(x)',
        " @b a@ a@@b a@b. a_b@c.d a@b.c,_d@e.f a@b_c a.@b.c .a@b.c a..b@c.d",
    ),
    "hostname": ("a a-b a- host.name a+b YQ== $ münchen.de", " a_b -a a--b 2024-01-01 .a a..b a.1 *.a"),
    "ipv4": ("1.2.3.4 01.2.3.4 ::ffff:1.2.3.4", "1.2.3 1.2.3.256 1.2.3.4.5 ::1"),
    "ipv6": (":: ::1 ::ffff:1.2.3.4", "1.2.3.4 1::2::3 fe80::1%eth0"),
    "mac": (
        "00:11:22:33:44:55 00-11-22-33-44-55 0011.2233.4455 001122334455 00:11:22:33:44:55:66:77 4111111111111111",
        "00:11:22:33:44 00-11:22:33:44:55 00:11:22:33:44:5g 00:11:22:33:44:55:66 00:11:22:33:44:55:66:77:88",
    ),
    "ssn": ("123-45-6789 123_45_6789", "123456789 123-456789 12-345-6789"),
    "uri": ("http://a http://a/b?c#d //a/b /a mailto:a@b http://[::1]:80 file:///x", " a/b http://a_b /%zz ?x #x"),
}


@pytest.mark.parametrize("name", CASES)
def test_texts_have_the_formats_that_upstream_finds(name: str) -> None:
    good, bad = ([text.replace("_", " ") for text in texts.split(" ")] for texts in CASES[name])
    assert [text for text in good if not has_format(text, name)] == []
    assert [text for text in bad if has_format(text, name)] == []


def test_an_address_may_be_long() -> None:
    assert has_format(f"{'a' * 5000}@b.c", "email")


@pytest.mark.parametrize("name", CHECKS)
def test_no_text_takes_long(name: str) -> None:
    started = time.process_time()
    for text in ("x", "a.", "1 ", '"', "a@", "0:", "(", " ", "\\", "a-", '"\\', "<", "a <", "1µ"):
        has_format(text * 4000, name)
        has_format(text * 20000 + "@", name)
    assert time.process_time() - started < 2
