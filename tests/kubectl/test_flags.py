"""Flags are parsed as pflag parses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl.flags import Flag, FlagError, Flags, duration, split_commas

FLAGS = (
    Flag("output", short="o"),
    Flag("all", "bool", short="A"),
    Flag("tty", "bool", short="t"),
    Flag("stdin", "bool", short="i"),
    Flag("filename", "list", short="f"),
    Flag("set", "array"),
    Flag("dry-run", default="none", no_value="unchanged"),
    Flag("replicas", "int"),
)


def parsed(*argv: str) -> tuple[Flags, list[str]]:
    flags = Flags(FLAGS)
    return flags, flags.parse(argv)


@pytest.mark.parametrize("words", [["-oyaml"], ["-o=yaml"], ["-o", "yaml"], ["--output=yaml"], ["--output", "yaml"]])
def test_a_value_may_be_given_in_every_way_that_pflag_knows(words: list[str]) -> None:
    flags, arguments = parsed("pods", *words, "web")
    assert flags["output"] == "yaml"
    assert arguments == ["pods", "web"]


def test_shorthands_are_grouped_and_everything_after_two_dashes_is_an_argument() -> None:
    flags, arguments = parsed("-it", "-f", "a,b", "-f=c", "--", "ls", "-l")
    assert flags.on("stdin")
    assert flags.on("tty")
    assert flags["filename"] == ["a", "b", "c"]
    assert (arguments, flags.dash) == (["ls", "-l"], 0)


def test_a_flag_with_an_optional_value_does_not_eat_the_next_word() -> None:
    flags, arguments = parsed("--dry-run", "client")
    assert (flags["dry-run"], arguments) == ("unchanged", ["client"])


def test_arrays_keep_their_commas() -> None:
    assert parsed("--set=a,b", "--set", "c")[0]["set"] == ["a,b", "c"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope"], "unknown flag: --nope"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["-tx"], "unknown shorthand flag: 'x' in -x"),
        (["--output"], "flag needs an argument: --output"),
        (["-o"], "flag needs an argument: 'o' in -o"),
        (["--all=2"], 'invalid argument "2" for "-A, --all" flag: strconv.ParseBool: parsing "2": invalid syntax'),
        (["--replicas=x"], 'invalid argument "x" for "--replicas" flag: strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
def test_bad_flags_are_refused_in_the_words_of_pflag(words: list[str], message: str) -> None:
    with pytest.raises(FlagError) as error:
        parsed(*words)
    assert error.value.message == message


def test_durations_and_comma_lists_are_read_as_go_reads_them() -> None:
    assert duration("1h30m") == 5400
    assert duration("1.5s") == 1.5
    assert split_commas('a,"b,c",d') == ["a", "b,c", "d"]
    with pytest.raises(ValueError, match='time: missing unit in duration "5"'):
        duration("5")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["get", "pods"], "Error in configuration: context was not found for specified context: nope"),
        (["rollout", "undo", "deploy/x"], "Error in configuration: context was not found for specified context: nope"),
        (["get", "--raw=/x"], 'error: context "nope" does not exist'),
        (["cluster-info"], 'error: context "nope" does not exist'),
        (["create", "ns", "x"], 'error: context "nope" does not exist'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_context_that_does_not_exist(
    argv: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    assert kubectl.main([*argv, "--context=nope"]) == 1
    assert capsys.readouterr().err.rstrip() == message
