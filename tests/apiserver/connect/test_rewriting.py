"""Redirects and links of proxied servers."""

from __future__ import annotations

import pytest

from pybernetes.apiserver.connect.rewriting import Rewriter, clean, joined

HERE = "/api/v1/namespaces/default/pods/web/proxy"


@pytest.fixture
def rewriter() -> Rewriter:
    return Rewriter(HERE, "10.1.2.3:8080", "api.example:6443")


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("/", f"{HERE}/"),
        ("/a/b?c=d#e", f"{HERE}/a/b?c=d#e"),
        ("/a/", f"{HERE}/a/"),
        ("http://10.1.2.3:8080/a", f"{HERE}/a"),
        ("https://api.example:6443/a", f"https://api.example:6443{HERE}/a"),
        ("http://elsewhere/a", "http://elsewhere/a"),
        ("//elsewhere/a", "//elsewhere/a"),
        ("relative", "relative"),
        ("../up", "../up"),
        ("#part", "#part"),
        ("", ""),
        ("mailto:a@b", "mailto:a@b"),
        (f"{HERE}/already", f"{HERE}/already"),
        ("http://[bad", "http://[bad"),
    ],
)
def test_links(rewriter: Rewriter, link: str, becomes: str) -> None:
    assert rewriter.url(link) == becomes


@pytest.mark.parametrize(
    ("page", "becomes"),
    [
        ('<a href="/x">x</a>', f'<a href="{HERE}/x">x</a>'),
        ("<IMG SRC=/i.png>", f'<img src="{HERE}/i.png">'),
        ("<img src='/i.png' alt='a>b'/>", f'<img src="{HERE}/i.png" alt="a&gt;b"/>'),
        ('<a href="/x?a=1&amp;b=2">', f'<a href="{HERE}/x?a=1&amp;b=2">'),
        ('<p title="/x">/x</p>', '<p title="/x">/x</p>'),
        ("<input disabled>", '<input disabled="">'),
        ('<!-- <a href="/x"> -->', '<!-- <a href="/x"> -->'),
        ("<script>a<b; '<a href=\"/x\">'</script><hr>", "<script>a<b; '<a href=\"/x\">'</script><hr>"),
        ("1 < 2 <3", "1 < 2 <3"),
        ("<a href=", "<a href="),
    ],
)
def test_pages(rewriter: Rewriter, page: str, becomes: str) -> None:
    assert rewriter.page(page) == becomes


@pytest.mark.parametrize(
    ("path", "becomes"),
    [("/a/../b", "/b"), ("/../..", "/"), ("//a//b", "/a/b"), ("/a/./b", "/a/b"), ("", "")],
)
def test_paths_do_not_lead_out(path: str, becomes: str) -> None:
    assert clean(path) == becomes


def test_a_slash_at_the_end_stays() -> None:
    assert joined("/a", "b/") == "/a/b/"
    assert joined("", "/") == "/"
    assert joined("/a", "/../b") == "/b"
