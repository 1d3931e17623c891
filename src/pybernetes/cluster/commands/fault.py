"""`pyb fault`: faults on demand in a running cluster, to see how a controller bears them.

    pyb fault add refuse --status=409 --verb=update --resource=deployments --times=3
    pyb fault add hold --user-agent='my-operator*' --verb=watch     # a stale cache, until `pyb fault clear`
    pyb fault apply faults.yaml                                     # rules of a file; `-` is standard input
    pyb fault list
    pyb fault clear [NAME]

The rules are those of `apiserver/fault_injection/rules.py` (docs/testkit.md). They live in the API server's memory: its
restart ends them. Clusters of `pyb up` and of the test kit take them from their administrators.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, locate

if TYPE_CHECKING:
    from pybernetes.client.config import Config

PATH = "/debug/faults"
ACTIONS = ("refuse", "delay", "drop", "lose", "duplicate", "hold", "end")
_LISTS = {
    "user": "users",
    "user_agent": "userAgents",
    "verb": "verbs",
    "resource": "resources",
    "in_namespace": "namespaces",
    "object": "names",
}
_VALUES = ("status", "seconds", "skip", "times", "probability")


def main(argv: list[str]) -> int:
    """Changes or shows the rules."""
    arguments = _parser().parse_args(argv)
    method, path, body = "GET", PATH, None
    if arguments.verb_of_command == "add":
        method, body = "POST", _rule(arguments)
    elif arguments.verb_of_command == "apply":
        method, body = "POST", _read(arguments.file)
    elif arguments.verb_of_command == "clear":
        from urllib.parse import quote

        method, path = "DELETE", PATH + (f"?name={quote(arguments.rule)}" if arguments.rule else "")
    found = asyncio.run(_ask(settings(arguments), method, path, body))
    for line in table(found["faults"]):
        print(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = flags.Parser(
        prog=f"{program()} fault", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="verb_of_command", required=True, parser_class=flags.Parser
    )
    add = commands.add_parser("add", help="add one rule")
    add.add_argument("action", choices=ACTIONS)
    add.add_argument("--rule", help="its name, to clear it by")
    more = "shell pattern, several times for several"
    for flag in _LISTS:
        add.add_argument(f"--{flag.replace('_', '-')}", action="append", metavar="PATTERN", help=more)
    add.add_argument("--status", type=int, help="of refuse: the code of the answer (503)")
    add.add_argument("--seconds", type=float, help="of delay (1)")
    add.add_argument("--skip", type=int, help="matching requests before the first one that it happens to")
    add.add_argument("--times", type=int, help="how often it happens (again and again)")
    add.add_argument("--probability", type=float, help="of the rest (1)")
    apply = commands.add_parser("apply", help="add the rules of a file")
    apply.add_argument("file", help="YAML or JSON; - is standard input")
    commands.add_parser("list", help="show the rules, and how often each has happened")
    clear = commands.add_parser("clear", help="remove one rule, or all")
    clear.add_argument("rule", nargs="?", default="")
    for each in commands.choices.values():
        add_flags(each)
    return parser


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which cluster is meant."""
    flags.add(parser)
    parser.set_defaults(name=None)
    parser.add_argument("--kubeconfig", help="the cluster and who asks it (default: --name's, else $KUBECONFIG)")


def _rule(arguments: argparse.Namespace) -> dict[str, Any]:
    rule: dict[str, Any] = {"action": arguments.action}
    if arguments.rule:
        rule["name"] = arguments.rule
    rule |= {field: found for flag, field in _LISTS.items() if (found := getattr(arguments, flag))}
    return rule | {name: found for name in _VALUES if (found := getattr(arguments, name)) is not None}


def _read(name: str) -> Any:
    import yaml

    try:
        content = yaml.safe_load(sys.stdin if name == "-" else Path(name).read_text())
    except OSError as error:
        raise ClusterError(f"cannot read {name}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ClusterError(f"{name} is not YAML: {error}") from None
    return content


def settings(arguments: argparse.Namespace) -> Config:
    """The cluster that is meant, and the credentials for it. ClusterError."""
    from pybernetes.client import config

    own = None
    if arguments.name is not None or arguments.data_dir is not None:
        own = str(locate(arguments.name or DEFAULT_NAME, arguments.data_dir).kubeconfig)
    try:
        return config.load(arguments.kubeconfig or own)
    except (config.ConfigError, OSError) as error:
        raise ClusterError(str(error)) from None


def unavailable(server: str) -> str:
    """The error for a server that does not serve these paths."""
    return f"{server} takes no such requests: start its API server with --enable-test-endpoints"


async def _ask(config: Config, method: str, path: str, body: Any) -> dict[str, Any]:
    from pybernetes.api import errors
    from pybernetes.client.client import Client

    payload = b"" if body is None else json.dumps(body).encode()
    async with Client(config) as client:
        try:
            answer = await client.transport.request(method, path, body=payload)
        except errors.NotFound as error:
            raise ClusterError(str(error) if "faults" in str(error) else unavailable(config.server)) from None
        except (errors.APIError, OSError, TimeoutError) as error:
            raise ClusterError(f"{config.server}: {error}") from None
    found: dict[str, Any] = json.loads(answer.body)
    return found


def table(rules: Sequence[dict[str, Any]]) -> list[str]:
    """The rules as lines for people."""
    rows = [("NAME", "ACTION", "HITS", "OF", "RULE")]
    shown = ("name", "action", "hits", "seen")
    for each in rules:
        rest = {key: value for key, value in each.items() if key not in shown}
        text = " ".join(f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in rest.items())
        rows.append((each["name"], each["action"], str(each["hits"]), str(each["seen"]), text))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  ".join([*(row[column].ljust(widths[column]) for column in range(4)), row[4]]).rstrip() for row in rows]
