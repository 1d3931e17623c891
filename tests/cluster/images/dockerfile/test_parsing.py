"""Dockerfiles as instructions; every mistake is reported with its line, and nothing else comes of any bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images.dockerfile import parsing, plan
from pybernetes.cluster.images.dockerfile.errors import BuildError


def keywords(text: str) -> list[tuple[int, str, str]]:
    return [(each.line, each.keyword, each.text) for each in parsing.parse(text.encode()).instructions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM a", [(1, "FROM", "a")]),
        ("from a\r\nrun x\r\n", [(1, "FROM", "a"), (2, "RUN", "x")]),
        ("\ufeffFROM a", [(1, "FROM", "a")]),
        ("# comment\n\n  FROM a", [(3, "FROM", "a")]),
        ("FROM a\nRUN one \\\n  two", [(1, "FROM", "a"), (2, "RUN", "one   two")]),
        ("FROM a\nRUN one \\  \n# no\n\n  # no\n two # yes", [(1, "FROM", "a"), (2, "RUN", "one  two # yes")]),
        ("FROM a\nRUN one \\", [(1, "FROM", "a"), (2, "RUN", "one")]),
        ("FROM a\nRUN one \\\n\n", [(1, "FROM", "a"), (2, "RUN", "one")]),
        ("# escape=`\nFROM a\nRUN one `\n c:\\x\\", [(2, "FROM", "a"), (3, "RUN", "one  c:\\x\\")]),
        ("# syntax=docker/dockerfile:1.7\n# escape=\\\nFROM a", [(3, "FROM", "a")]),
        ("# nothing\n# escape=`\nFROM a\nRUN x \\\n y", [(3, "FROM", "a"), (4, "RUN", "x  y")]),
        ("ARG V=1\nFROM a:$V", [(1, "ARG", "V=1"), (2, "FROM", "a:$V")]),
        ("FROM a\nCMD", [(1, "FROM", "a"), (2, "CMD", "")]),
    ],
)
def test_instructions_are_found(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert keywords(text) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no instructions"),
        ("# only\n", "no instructions"),
        ("RUN x", "Dockerfile:1: RUN: no FROM before it"),
        ("ARG A=1", "Dockerfile:1: ARG: no FROM"),
        ("FROM a\nRUNN x", "Dockerfile:2: unknown instruction 'RUNN', is it RUN?"),
        ("FROM a\n\nCOPY --form=x a b", "Dockerfile:3: COPY: unknown flag --form; it takes --from"),
        ("FROM a\nCOPY --chown a b", "--chown wants a value"),
        ("FROM a\nCOPY --from=a --from=b a b", "--from comes twice"),
        ("FROM a\nCOPY --parents a b", "--parents is not supported"),
        ("FROM a\nENV", "Dockerfile:2: ENV: wants an argument"),
        ("FROM a\nRUN", "RUN: wants a command"),
        ("FROM a\nRUN <<E\nx", "Dockerfile:2: RUN: the here-document E does not end"),
        ("# escape=x\nFROM a", "Dockerfile:1: the escape character"),
        ("# escape=\\\n# escape=`\nFROM a", "Dockerfile:2: the directive 'escape' comes twice"),
        ("# syntax=example.com/my/language\nFROM a", "another language"),
        ("FROM a\nRUN x\0y", "Dockerfile:2: a zero byte"),
        ("FROM", "wants an argument"),
    ],
)
def test_mistakes_are_reported_with_their_line(text: str, told: str) -> None:
    with pytest.raises(BuildError) as caught:
        parsing.parse(text.encode())
    assert told in str(caught.value)


def test_what_is_not_utf8_and_what_is_too_long_is_no_dockerfile() -> None:
    with pytest.raises(BuildError, match="Dockerfile:2: not UTF-8"):
        parsing.parse(b"FROM a\nRUN \xff")
    with pytest.raises(BuildError, match="no Dockerfile"):
        parsing.parse(b"#" * (2 << 20))


def test_here_documents_are_read() -> None:
    text = "FROM a\nCOPY <<one <<-'two' /x/\na $A\none\n\tb\n\ttwo\nRUN cat <<E | sh\nx\nE\nRUN echo \"<<no\" <<<no\n"
    _, copy, run, last = parsing.parse(text.encode()).instructions
    assert [(each.name, each.content, each.expands) for each in copy.heredocs] == [
        ("one", "a $A\n", True),
        ("two", "b\n", False),
    ]
    assert [each.content for each in run.heredocs] == ["x\n"]
    assert last.heredocs == ()
    assert last.line == 10


def planned(text: str, **given: str) -> plan.Plan:
    return plan.plan(parsing.parse(text.encode()), given)


def test_stages_have_names_and_numbers() -> None:
    found = planned("ARG V=1\nFROM a:$V AS One\nRUN x\nFROM one\nFROM scratch AS three")
    assert [(each.image, each.name) for each in found.stages] == [("a:1", "one"), ("one", ""), ("scratch", "three")]
    assert found.target("").index == 2
    assert found.target("ONE").index == 0
    assert found.target("1").index == 1
    assert found.stage("three", 2) is None
    with pytest.raises(BuildError, match="no stage 'four'; its stages: one, three"):
        found.target("four")
    assert planned("ARG V=1\nFROM a:$V", V="2").stages[0].image == "a:2"
    assert planned("ARG V=1\nARG W=${V}2\nFROM a:$W").stages[0].image == "a:12"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FROM a b", "IMAGE AS NAME"),
        ("FROM a AS", "IMAGE AS NAME"),
        ("FROM a AS 1x", "no name of a stage"),
        ("FROM a AS x\nFROM b AS X", "Dockerfile:2: FROM: the name 'X' is taken"),
        ("FROM $NOTHING", "is empty"),
        ("FROM --platform=windows/amd64 a", "this machine's"),
        ("ARG 1=2\nFROM a", "no name of an argument"),
        ("ARG A=${\nFROM a", "Dockerfile:1: ARG: no name of a variable"),
    ],
)
def test_mistakes_of_stages_are_reported(text: str, told: str) -> None:
    with pytest.raises(BuildError) as caught:
        planned(text)
    assert told in str(caught.value)


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["FROM a", "FROM a AS b", "RUN <<E", "E", "# escape=`", "COPY --from=b . .", "ARG A=${A:-b}", "\\", "", "#"]
        ),
        st.text(max_size=30),
        st.builds(lambda word, rest: f"{word} {rest}", st.sampled_from(sorted(parsing.FLAGS)), st.text(max_size=20)),
    ),
    max_size=8,
)


@given(LINES)
@example(["FROM a", "RUN a\\", "# x"])
def test_any_text_is_a_plan_or_an_error(lines: list[str]) -> None:
    try:
        plan.plan(parsing.parse("\n".join(lines).encode("utf-8", "replace")), {})
    except ClusterError:
        pass


@given(st.binary(max_size=200))
def test_any_bytes_are_a_plan_or_an_error(content: bytes) -> None:
    try:
        plan.plan(parsing.parse(content), {})
    except ClusterError:
        pass
