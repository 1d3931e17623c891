"""Chains and rules of the nat table, as iptables keeps them: one look, one change.

Debian's plugins start iptables ten to twenty times for a port; here the table is read once (`iptables-save`), what is
missing is worked out (`plan`, pure), and put in at once (`iptables-restore`), so that no packet sees half of it. Names
and rules are those of the binaries, so that each can take down what the other set up.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .errors import INVALID_NETWORK_CONFIG, CNIError

Rule = tuple[str, ...]

_LONGEST_CHAIN = 28
_LONGEST_COMMENT = 255
_OWNER = re.compile(r'name: "([^"]*)" id: "([^"]*)"')
# Locked between reading and writing, as two plugins at once would both see a chain missing and put a jump to it in.
# The namespace itself is what is changed, and it can be locked like a file.
_NAMESPACE = "/proc/thread-self/ns/net"


def chain_name(network: str, container_id: str, prefix: str = "") -> str:
    """The name of a container's own chain."""
    import hashlib  # 3 ms that a pod without rules need not pay

    digest = hashlib.sha512((network + container_id).encode()).hexdigest()
    return f"CNI-{prefix}{digest}"[:_LONGEST_CHAIN]


def comment(text: str) -> str:
    """A comment, cut to what iptables takes."""
    return text if len(text) <= _LONGEST_COMMENT else text[: _LONGEST_COMMENT - 2] + "..."


@dataclass(frozen=True)
class Chain:
    """A desired chain, with its rules and the rules elsewhere that lead to it.

    `own` chains are one container's: whatever is in them or leads to them from before is replaced. Of the others only
    what is missing is put in.
    """

    name: str
    rules: Sequence[Rule] = ()
    entries: Sequence[tuple[str, Rule]] = ()  # (chain, match): the jump is added
    prepend: bool = False
    own: bool = False


@dataclass(frozen=True)
class Table:
    """A table as `iptables-save` printed it."""

    chains: frozenset[str]
    rules: tuple[tuple[str, str], ...]  # chain, the rest of the line

    @staticmethod
    def parse(saved: str) -> Table:
        """Reads the form of `iptables-save`."""
        chains, rules = set(), []
        for line in saved.splitlines():
            if line.startswith(":"):
                chains.add(line[1:].split(" ", 1)[0])
            elif line.startswith("-A "):
                _, chain, rest = line.split(" ", 2)
                rules.append((chain, rest))
        return Table(frozenset(chains), tuple(rules))

    def has(self, chain: str, rule: Rule) -> bool:
        """Whether the chain has this rule, in whatever order its conditions are printed."""
        wanted = _canonical(rule)
        return any(of == chain and wanted == _canonical(tuple(shlex.split(rest))) for of, rest in self.rules)

    def leading_to(self, chain: str) -> list[tuple[str, str]]:
        """The rules that jump to a chain."""
        return [(of, rest) for of, rest in self.rules if rest.endswith(f"-j {chain}")]


def plan(table: Table, chains: Sequence[Chain], name: str = "nat") -> str:
    """The input of `iptables-restore --noflush` that puts the chains in place; empty if all is as it should be."""
    declared, lines = [], []
    for chain in chains:
        if chain.own or chain.name not in table.chains:
            declared.append(f":{chain.name} - [0:0]")  # makes it, or empties it
        for rule in chain.rules:
            if chain.own or not table.has(chain.name, rule):
                lines.append(f"-A {chain.name} {shlex_join(rule)}")
        if chain.own:
            lines += [f"-D {of} {rest}" for of, rest in table.leading_to(chain.name)]
        for entry, match in chain.entries:
            rule = (*match, "-j", chain.name)
            if chain.own or not table.has(entry, rule):
                lines.append(f"{'-I' if chain.prepend else '-A'} {entry} {shlex_join(rule)}")
    return _script(name, declared, lines)


def removal(table: Table, names: Sequence[str]) -> str:
    """The input of `iptables-restore --noflush` that removes chains and what leads to them; empty if none is there."""
    lines = []
    for name in names:
        if name in table.chains:
            lines += [f"-D {of} {rest}" for of, rest in table.leading_to(name)]
            lines += [f"-F {name}", f"-X {name}"]
    return _script("nat", [], lines)


def owners(table: Table, network: str, prefix: str = "") -> dict[str, str]:
    """The chains of a network's containers, and whose they are, from the comments of what leads to them."""
    found = {}
    for _, rest in table.rules:
        words = shlex.split(rest)
        chain = words[-1] if words[-2:-1] == ["-j"] else ""
        said = _OWNER.search(words[words.index("--comment") + 1]) if "--comment" in words else None
        if said and said[1] == network and chain == chain_name(network, said[2], prefix):
            found[chain] = said[2]
    return found


def missing(table: Table, chain: Chain) -> str:
    """The first part of a chain that is missing, as a message; empty if the chain is complete."""
    if chain.name not in table.chains:
        return f"chain {chain.name} not found in iptables table nat"
    for rule in chain.rules:
        if not table.has(chain.name, rule):
            return f"rule {shlex_join(rule)} in chain {chain.name} not found in table nat"
    for entry, match in chain.entries:
        if not table.has(entry, (*match, "-j", chain.name)):
            return f"rule {shlex_join(match)} in chain {entry} not found in table nat"
    return ""


class Nat:
    """The nat table of one IP version, in the namespace of the caller."""

    name = "nat"

    def __init__(self, version: int) -> None:
        self.version = version
        self._program = "ip6tables" if version == 6 else "iptables"

    def usable(self) -> bool:
        """Whether the table can be read at all: a machine need not have both versions."""
        try:
            self.read()
        except CNIError:
            return False
        return True

    def read(self) -> Table:
        """The table as it is now."""
        return Table.parse(self._run("-save", "-t", self.name))

    def ensure(self, chains: Sequence[Chain]) -> None:
        """Puts chains in place."""
        with turn():
            self._apply(plan(self.read(), chains, self.name))

    def remove(self, names: Sequence[str]) -> None:
        """Removes chains and what leads to them."""
        with turn():
            self._apply(removal(self.read(), names))

    def remove_rules(self, chain: str, rules: Sequence[Rule]) -> None:
        """Removes rules of a chain, each as often as it is there."""
        with turn():
            table = self.read()
            gone = [_canonical(rule) for rule in rules]
            lines = [
                f"-D {of} {rest}"
                for of, rest in table.rules
                if of == chain and _canonical(tuple(shlex.split(rest))) in gone
            ]
            self._apply(_script(self.name, [], lines))

    def sweep(self, network: str, prefix: str, valid: set[str]) -> None:
        """Removes the chains of containers of the network that are not (any longer) valid."""
        with turn():
            table = self.read()
            gone = [chain for chain, owner in owners(table, network, prefix).items() if owner not in valid]
            self._apply(removal(table, gone))

    def _apply(self, script: str) -> None:
        if script:
            self._run("-restore", "--noflush", "-w", "5", stdin=script)

    def _run(self, suffix: str, *args: str, stdin: str = "") -> str:
        import subprocess

        argv = [self._program + suffix, *args]
        try:
            done = subprocess.run(
                argv, input=stdin, capture_output=True, text=True, check=False, env=os.environ | {"PATH": _path()}
            )
        except FileNotFoundError:
            raise CNIError(f"failed to locate iptables: {argv[0]} is not installed") from None
        if done.returncode != 0:
            raise CNIError(f"running {' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()}")
        return done.stdout


class Filter(Nat):
    """The filter table of one IP version."""

    name = "filter"


def shlex_join(rule: Rule) -> str:
    """A rule in the form of `iptables-restore`, which knows double quotes and backslashes only."""
    return " ".join(_quoted(word) for word in rule)


def _quoted(word: str) -> str:
    if not isinstance(word, str) or not word.isprintable():
        raise CNIError(f"cannot be part of a rule: {word!r}", INVALID_NETWORK_CONFIG)
    if word and not set(word) & set(" \t\"'\\"):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _canonical(rule: Rule) -> list[str]:
    """A rule's words without their order, and without what iptables adds or renames when it prints."""
    renamed = {"--destination-ports": "--dports", "--destination-port": "--dport"}
    words, skip = [], False
    for index, word in enumerate(rule):
        if skip:
            skip = False
            continue
        if word == "-m" and index + 1 < len(rule) and rule[index + 1] in ("tcp", "udp", "sctp"):
            skip = True
            continue
        previous = rule[index - 1] if index else ""
        if previous in ("-s", "-d"):
            word = _network(word)
        words.append(renamed.get(word, word))
    return sorted(map(str, words))


def _network(text: str) -> str:
    """Addresses as iptables keeps them: with the length of their prefix and without host bits."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return text


def _script(table: str, declared: list[str], lines: list[str]) -> str:
    if not declared and not lines:
        return ""
    return "\n".join([f"*{table}", *declared, *lines, "COMMIT", ""])


def installed() -> bool:
    """Whether this machine has the iptables programs."""
    import shutil

    return shutil.which("iptables-restore", path=_path()) is not None


def _path() -> str:
    """Plugins get their caller's environment, which need not name the folders of system programs."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


@contextmanager
def turn() -> Iterator[None]:
    """While it lasts no other plugin changes the packet rules of this network namespace."""
    fd = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
