"""Reads the configuration: the Corefile syntax of CoreDNS, and those of its plugins that make sense here.

    cluster.local:53 {
        kubernetes cluster.local in-addr.arpa ip6.arpa { pods insecure; ttl 30; fallthrough in-addr.arpa ip6.arpa }
        autopath @kubernetes
    }
    .:53 { forward . /etc/resolv.conf; cache 30; loop; reload }

A plugin that is not known is refused by its name and line, and the configuration before stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from . import pods
from .message import Record, address_record

DEFAULT = """\
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    autopath @kubernetes
    prometheus
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
"""
WITHOUT_EFFECT = frozenset(
    ("errors", "health", "ready", "prometheus", "loop", "reload", "loadbalance", "log", "lameduck", "bufsize")
)
"""Plugins that this server always does, or has another way for."""
DEFAULT_TTL = 5
"""Of the kubernetes plugin, in seconds."""
HOSTS_TTL = 3600
LONGEST_TTL = 3600
"""Seconds for which other servers' answers are kept at most, unless `cache` says less."""
DENIAL_TTL = 30
"""Seconds for which a name that does not exist is kept, at most (upstream servers say less or more)."""
MAX_CONCURRENT = 1000
_CACHE_WITHOUT_EFFECT = frozenset(("prefetch", "servfail"))
"""Options of `cache` for what this server always does, or never."""
_FORWARD_WITHOUT_EFFECT = frozenset(("expire", "health_check", "max_fails", "policy", "prefer_udp"))
"""Options of `forward` that only say how servers are chosen: here in order, those that did not answer last."""


class CorefileError(ValueError):
    """An error in the configuration, with its line."""


@dataclass
class Block:
    """One server block."""

    zones: list[str]
    cluster_zone: str = ""
    pods: str = pods.DISABLED
    ttl: int = DEFAULT_TTL
    forward: list[tuple[str, int]] = field(default_factory=list)
    max_concurrent: int = MAX_CONCURRENT
    longest_ttl: int = LONGEST_TTL
    denial_ttl: int = DENIAL_TTL
    autopath: bool = False
    hosts: dict[tuple[str, int], tuple[Record, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Line:
    number: int
    words: list[str]
    below: list[_Line]


def parse(text: str, read: Callable[[str], str] = lambda path: Path(path).read_text()) -> list[Block]:
    """The server blocks. `read` gives the files that are named: resolv.conf, hosts. `CorefileError` if it is wrong."""
    lines = _lines(iter(_tokens(text)), 0)
    if not lines:
        raise CorefileError("the configuration has no server block")
    blocks = [_block(line, read) for line in lines]
    seen: set[str] = set()
    for line, block in zip(lines, blocks, strict=True):
        for zone in block.zones:
            if zone in seen:
                raise CorefileError(f"line {line.number}: the zone {zone or '.'} has a server block already")
            seen.add(zone)
    return blocks


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Words with their line; a newline (or semicolon) is the word that ends a line."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].replace(";", " \n ").split(" "):
            for part in word.replace("\t", " ").split(" "):
                if part:
                    yield number, part
        yield number, "\n"


def _lines(tokens: Iterator[tuple[int, str]], depth: int) -> list[_Line]:
    if depth > 2:
        raise CorefileError("blocks are nested too deeply")
    lines: list[_Line] = []
    words: list[str] = []
    began = 0

    def end(below: list[_Line]) -> None:
        if words:
            lines.append(_Line(began, list(words), below))
            words.clear()

    for number, word in tokens:
        if word == "{":
            if not words:
                raise CorefileError(f"line {number}: a block without a name")
            end(_lines(tokens, depth + 1))
        elif word == "}":
            if depth == 0:
                raise CorefileError(f"line {number}: a closing brace without a block")
            end([])
            return lines
        elif word == "\n":
            end([])
        else:
            if not words:
                began = number
            words.append(word)
    if depth:
        raise CorefileError("a block is not closed")
    end([])
    return lines


def _block(line: _Line, read: Callable[[str], str]) -> Block:
    block = Block([_zone(word, line.number) for word in line.words])
    for plugin in line.below:
        name, arguments = plugin.words[0], plugin.words[1:]
        if name == "kubernetes":
            _kubernetes(block, plugin, arguments)
        elif name == "forward":
            _forward(block, plugin, arguments, read)
        elif name == "cache":
            _cache(block, plugin, arguments)
        elif name == "autopath":
            if arguments != ["@kubernetes"]:
                raise CorefileError(f"line {plugin.number}: autopath takes @kubernetes, got {' '.join(arguments)!r}")
            block.autopath = True
        elif name == "hosts":
            _hosts(block, plugin, arguments, read)
        elif name not in WITHOUT_EFFECT:
            raise CorefileError(f"line {plugin.number}: the plugin {name!r} is not known here")
    for plugin in line.below:
        if plugin.words[0] == "cache":
            _check_disabled(block, plugin)
    if block.autopath and not block.cluster_zone:
        raise CorefileError(f"line {line.number}: autopath @kubernetes without the plugin kubernetes")
    return block


def _zone(word: str, number: int) -> str:
    name, _, port = word.removeprefix("dns://").partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port[:6]) < 65536):
        raise CorefileError(f"line {number}: {word!r} has no valid port")
    return name.lower().strip(".")


def _kubernetes(block: Block, plugin: _Line, zones: list[str]) -> None:
    own = [each.lower().strip(".") for each in zones if not each.endswith(".arpa")]
    if len(own) != 1:
        raise CorefileError(f"line {plugin.number}: kubernetes takes one zone besides reverse zones, got {len(own)}")
    block.cluster_zone, block.pods = own[0], pods.DISABLED
    for option in plugin.below:
        name, arguments = option.words[0], option.words[1:]
        if name == "pods":
            if arguments not in ([pods.INSECURE], [pods.VERIFIED], [pods.DISABLED]):
                raise CorefileError(f"line {option.number}: pods takes insecure, verified or disabled")
            block.pods = arguments[0]
        elif name == "ttl":
            block.ttl = _number(option, arguments, LONGEST_TTL)
        elif name != "fallthrough":
            raise CorefileError(f"line {option.number}: kubernetes has no option {name!r} here")


def _number(line: _Line, arguments: list[str], most: int) -> int:
    text = arguments[0] if len(arguments) == 1 else ""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise CorefileError(f"line {line.number}: {line.words[0]} takes a number from 0 to {most}")
    return int(text)


def _forward(block: Block, plugin: _Line, arguments: list[str], read: Callable[[str], str]) -> None:
    if len(arguments) < 2:
        raise CorefileError(f"line {plugin.number}: forward takes a zone and servers")
    if block.forward:
        raise CorefileError(f"line {plugin.number}: a server block has one forward")
    zone = arguments[0].lower().strip(".")
    if zone and not all(each == zone or each.endswith(f".{zone}") for each in block.zones):
        raise CorefileError(f"line {plugin.number}: forward for {zone} alone takes a server block of its own")
    for option in plugin.below:
        name = option.words[0]
        if name == "max_concurrent":
            block.max_concurrent = _number(option, option.words[1:], 100_000) or 100_000
        elif name not in _FORWARD_WITHOUT_EFFECT:
            raise CorefileError(f"line {option.number}: forward has no option {name!r} here")
    for word in arguments[1:]:
        if word.startswith("tls://"):
            raise CorefileError(f"line {plugin.number}: forwarding by TLS is not supported: {word}")
        block.forward += nameservers(read(word)) if word.startswith("/") else [_server(plugin, word)]


def _cache(block: Block, plugin: _Line, arguments: list[str]) -> None:
    """`cache [TTL] [ZONES]`, with `success CAPACITY [TTL [MINTTL]]` and `denial` likewise below.

    The capacity is always ours, and no answer is kept for longer than its server allows, which MINTTL could ask for.
    """
    if arguments and not arguments[0].isdigit():
        arguments = ["", *arguments]
    for word in arguments[1:]:
        zone = word.lower().strip(".")
        if zone and not all(each == zone or each.endswith(f".{zone}") for each in block.zones):
            raise CorefileError(f"line {plugin.number}: cache for {zone} alone takes a server block of its own")
    if arguments and arguments[0]:
        block.longest_ttl = block.denial_ttl = _longest(plugin, arguments[0])
    for option in plugin.below:
        name, numbers = option.words[0], option.words[1:]
        if name in ("success", "denial"):
            found = [_longest(option, each) for each in numbers]
            if not 1 <= len(found) <= 3:
                raise CorefileError(f"line {option.number}: {name} takes a capacity, a TTL and a least TTL")
            if len(found) > 1 and name == "success":
                block.longest_ttl = found[1]
            elif len(found) > 1:
                block.denial_ttl = found[1]
        elif name != "disable" and name not in _CACHE_WITHOUT_EFFECT:
            raise CorefileError(f"line {option.number}: cache has no option {name!r} here")


def _check_disabled(block: Block, plugin: _Line) -> None:
    """`cache { disable success|denial ZONES }`: names of the cluster are never kept, of others they always are."""
    for option in plugin.below:
        if option.words[0] == "disable":
            zones, own = [each.lower().strip(".") for each in option.words[2:]], block.cluster_zone
            if not zones or not own or not all(each == own or each.endswith(f".{own}") for each in zones):
                raise CorefileError(
                    f"line {option.number}: cache has no option 'disable' here but for the cluster's zone"
                )


def _longest(line: _Line, text: str) -> int:
    return min(_number(line, [text], 10**9 - 1), LONGEST_TTL)


def _server(plugin: _Line, word: str) -> tuple[str, int]:
    word = word.removeprefix("dns://")
    host, port = word, "53"
    if word.startswith("["):
        host, _, port = word[1:].partition("]")
        port = port.removeprefix(":") or "53"
    elif word.count(":") == 1:
        host, _, port = word.partition(":")
    try:
        return str(ip_address(host)), int(port) if port.isdigit() and len(port) < 6 else int("")
    except ValueError:
        raise CorefileError(f"line {plugin.number}: {word!r} is no address of a server") from None


def _hosts(block: Block, plugin: _Line, arguments: list[str], read: Callable[[str], str]) -> None:
    ttl = HOSTS_TTL
    for each in plugin.below:
        if each.words[0] == "ttl":
            ttl = _number(each, each.words[1:], 65535)
    lines: Iterable[list[str]] = [each.words for each in plugin.below if each.words[0] not in ("fallthrough", "ttl")]
    if arguments and arguments[0].startswith("/"):
        lines = [*lines, *(line.partition("#")[0].split() for line in read(arguments[0]).splitlines())]
    for words in lines:
        for name in words[1:]:
            try:
                record = address_record(name.lower().rstrip("."), ttl, words[0])
            except ValueError:
                raise CorefileError(f"line {plugin.number}: {words[0]!r} is no address") from None
            key = (record.name, record.type)
            block.hosts[key] = (*block.hosts.get(key, ()), record)


def nameservers(resolv_conf: str) -> list[tuple[str, int]]:
    """The servers that a resolv.conf names."""
    found = []
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            try:
                found.append((str(ip_address(words[1].partition("%")[0])), 53))
            except ValueError:
                continue
    return found


def search_domains(resolv_conf: str) -> list[str]:
    """The search path that a resolv.conf names; its last `search` or `domain` line counts."""
    found: list[str] = []
    for line in resolv_conf.splitlines():
        words = line.split()
        if words and words[0] in ("search", "domain"):
            found = [each.lower().strip(".") for each in words[1:]]
    return [each for each in found if each]
