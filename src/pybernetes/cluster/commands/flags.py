"""Shared by the commands: the flags that name a cluster, and usage errors in plain words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import NoReturn

from pybernetes.cluster.cli import closest, program
from pybernetes.cluster.layout import DEFAULT_NAME


class Parser(argparse.ArgumentParser):
    """Names the flag or word that was probably meant."""

    def error(self, message: str) -> NoReturn:
        super().error(message + _suggestion(message, self._option_string_actions))


def _suggestion(message: str, options: Iterable[str]) -> str:
    if unknown := re.match(r"unrecognized arguments: (--[^\s=]+)", message):
        return closest(unknown[1], options)
    if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)$", message):
        return closest(choice[1], [word.strip("' ") for word in choice[2].split(",")])
    return ""


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with --name and --data-dir."""
    result = Parser(prog=f"{program()} {command}", description=description, allow_abbrev=False)
    add(result)
    return result


def add(result: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Adds --name and --data-dir; `again` to a subcommand, whose parser then leaves what stood before it."""
    name, folder = (argparse.SUPPRESS, argparse.SUPPRESS) if again else (DEFAULT_NAME, None)
    result.add_argument("--name", default=name, help=f"name of the cluster (default: {DEFAULT_NAME})")
    result.add_argument(
        "--data-dir", default=folder, metavar="DIR", help="where it keeps everything (default: ~/.pybernetes/NAME)"
    )


def command(words: str, name: str) -> str:
    """The command line for a command on a cluster: `./pyb down --name NAME`, without --name for the default one."""
    return f"`{program()} {words}{'' if name == DEFAULT_NAME else f' --name {name}'}`"


def count(text: str) -> int:
    """The value of a flag that counts."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; 0, 1, 2 and so on are")
    return int(text)


def port(text: str) -> int:
    """The value of a flag that is a port."""
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; 1 to 65535 are, and 0 is any free one")
    return int(text)
