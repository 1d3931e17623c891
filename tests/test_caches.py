"""Every module-level container that functions add to, and every unbounded cache: what bounds it.

Such a container lives as long as its process. If its keys come from requests or objects, it must have a bound of its
own; if not, the table says what they are. The lists are found in the source, so that a new one has to be thought about.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pybernetes
from pybernetes.api import quantity, scheme, times
from pybernetes.api.protobuf import messages
from pybernetes.apiserver.counters import MOST, Counter, Histogram

SOURCE = Path(pybernetes.__file__).parent

CONTAINERS = {
    "api.cel.callestimates._BY_OVERLOAD": "functions of CEL, by decorators",
    "api.managedfields.created._STRUCTS": "classes of kinds, and the fields that their endpoints reset",
    "api.quantity._canonical": "_CACHE_SIZE texts of _CACHED_LENGTH characters",
    "api.quantity._parsed": "_CACHE_SIZE texts of _CACHED_LENGTH characters",
    "api.scheme._BY_KIND": "resources that are built in",
    "api.scheme._BY_PLURAL": "resources that are built in",
    "api.scheme._GROUPS": "groups that are built in",
    "api.times._micro_times": "_CACHE_SIZE texts of _CACHED_LENGTH characters",
    "api.times._times": "_CACHE_SIZE texts of _CACHED_LENGTH characters",
    "apiserver.authz.metrics.ALLOWED": "authorizers of the configuration; `retire` takes the others out",
    "apiserver.authz.metrics.DENIED": "authorizers of the configuration; `retire` takes the others out",
    "apiserver.authz.metrics._kept": "_KEPT times",
    "apiserver.authz.metrics._retired": "_RETIRED counts",
    "apiserver.metrics.COLLECTORS": "parts of the server, once each",
    "apiserver.subresources.body._decoders": "classes of kinds",
    "component.tasks.failures": "names of tasks, from code",
    "net.tls_handshakes._failed": "_MOST handshakes",
    "net.tls_handshakes._loaded": "one library",
    "scheduler.framework.podinfo._affinities": "_KEPT specs",
    "scheduler.framework.podinfo._known": "_KEPT specs",
    "simulation.determinism._unseeded": "one for each scheduler that starts, in a process of one run",
}

UNBOUNDED = {
    "api.admissionregistration.expressions.environment": "three flags",
    "api.cel.kinds.type_of_kind": "classes of kinds",
    "api.managedfields.created._object": "classes of kinds, and the fields that their endpoints reset",
    "api.managedfields.kinds.node_of": "classes of kinds",
    "api.managedfields.resetfields.for_request": "built-in resources and their subresources; for_custom is the others'",
    "api.schema.fields": "classes of kinds",
    "api.schema.fields_by_wire": "classes of kinds",
    "api.scheme._conversion": "versions of built-in kinds; raises for others",
    "api.scheme.decoder": "built-in resources",
    "api.scheme.stored_decoder": "built-in resources",
    "apiserver.admission.pod_security.checks._judges": "levels, and minor versions up to our own",
    "apiserver.openapi.descriptions._module": "modules of kinds",
    "apiserver.printers.lookup.find": "built-in resources; custom ones bring their own printer",
    "apiserver.verbs.patch._decoder": "classes of kinds",
    "client.codec._list_decoder": "classes of kinds",
    "client.codec.decoder": "classes of kinds",
    "client.keys._decoder": "classes of kinds",
    "client.keys.resource_of": "classes of kinds",
    "kubelet.dra.plugin.proto": "versions of the drivers' interface that the kubelet knows",
}

_WORTH = re.compile(
    r"^\w+(: [^=\n]+)? = ([{\[]|\w*(Counter|Dict|dict|deque|list|set)\b)|_cache\(|@cache|(import|from) .*metrics", re.M
)
_ADDING = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}
_MAKERS = {"Counter", "OrderedDict", "defaultdict", "deque", "dict", "list", "set"}
_LITERALS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Every module that has a container or a cache at all, which most have not."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if _WORTH.search(text):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            found.append((name, ast.parse(text)))
    return tuple(found)


def made_by(value: ast.expr) -> str:
    """The name of what is called, without type arguments and modules."""
    if not isinstance(value, ast.Call):
        return ""
    function = value.func
    if isinstance(function, ast.Subscript):
        function = function.value
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def containers(module: ast.Module, collections: set[str]) -> set[str]:
    """The names of a module's containers."""
    found = set()
    for node in module.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if value is not None and (isinstance(value, _LITERALS) or made_by(value) in collections):
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def functions(within: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Functions and methods; those inside of a function are its own."""
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def added_to(module: ast.Module) -> Iterator[str]:
    """The names, or attributes of modules, that functions add to and that are not their own."""
    for function in functions(module):
        inner = list(ast.walk(function))
        own = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in inner if isinstance(node, ast.arg)}
        own -= {name for node in inner if isinstance(node, ast.Global) for name in node.names}
        for node in inner:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                target = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
                target = node.func.value
            else:
                continue
            if isinstance(target, ast.IfExp):
                yield from (each.id for each in (target.body, target.orelse) if isinstance(each, ast.Name))
            elif isinstance(target, ast.Name) and target.id not in own:
                yield target.id
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                yield f".{target.attr}"


def passed_on(module: ast.Module) -> Iterator[str]:
    """Names that are passed to a function that adds to what it is given: `_remember` of times."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and made_by(node) == "_remember":
            yield from (each.id for each in node.args[:1] if isinstance(each, ast.Name))


@cache
def growing() -> set[str]:
    trees = dict(modules())
    found: dict[str, set[str]] = {}
    for name, module in trees.items():
        # Counters of our own have a bound (below); those of the library have not.
        ours = {alias.asname or alias.name for node in module.body if isinstance(node, ast.ImportFrom)
                and (node.module or "").endswith("counters") for alias in node.names}  # fmt: skip
        found[name] = containers(module, _MAKERS - ours)
    result = set()
    for name, module in trees.items():
        imported = {
            alias.asname or alias.name
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for target in [*added_to(module), *passed_on(module)]:
            if target in found[name]:
                result.add(f"{name}.{target}")
            elif target.removeprefix(".") in imported or target.startswith("."):
                bare = target.removeprefix(".")
                result |= {
                    f"{other}.{bare}" for other, names in found.items() if bare in names and bare.strip("_").isupper()
                }
    return result


@cache
def unbounded() -> set[str]:
    found = set()
    for name, module in modules():
        for node in ast.walk(module):
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                continue
            for each in node.decorator_list:
                plain = isinstance(each, ast.Name) and each.id == "cache"
                without = made_by(each) == "lru_cache" and "None" in ast.unparse(each)
                if plain or without:
                    found.add(f"{name}.{node.name}")
    return found


def test_every_container_that_grows_is_known_with_its_bound() -> None:
    assert growing() - set(CONTAINERS) == set(), "say what bounds it, or bound it"


def test_the_table_has_nothing_that_is_gone() -> None:
    assert set(CONTAINERS) - growing() == set()
    assert set(UNBOUNDED) - unbounded() == set()


def test_every_cache_without_a_bound_is_known_with_what_bounds_its_keys() -> None:
    assert unbounded() - set(UNBOUNDED) == set(), "use lru_cache with a size, or say what bounds the keys"


def test_text_from_clients_is_remembered_up_to_a_length_and_a_number() -> None:
    for number in range(times._CACHE_SIZE + 10):
        times.canonical_time(f"2024-01-01T00:00:00.{number}Z")
        quantity.parse(f"{number}.5")
        quantity.canonicalize(f"{number}.25")
    long = "2024-01-01T00:00:00." + "1" * 1000 + "Z"
    assert times.canonical_time(long) == "2024-01-01T00:00:00Z"
    quantity.parse("1" * 100)
    quantity.canonicalize("1" * 100)
    for known in (times._times, quantity._parsed, quantity._canonical):
        assert len(known) <= times._CACHE_SIZE
        assert max(map(len, known)) <= 64


@pytest.mark.parametrize("cached", [scheme.type_for, messages.message])
def test_names_from_bodies_are_remembered_up_to_a_number(cached: object) -> None:
    for number in range(5000):
        cached("v1", f"Kind{number}")  # type: ignore[operator]
    info = cached.cache_info()  # type: ignore[attr-defined]
    assert info.currsize <= info.maxsize


def test_labels_of_metrics_that_are_names_of_objects_are_bounded() -> None:
    counter, histogram = Counter("c", "", ("name",)), Histogram("h", "", ("name",), (1.0,))
    for number in range(MOST + 100):
        counter.add(f"policy-{number}")
        histogram.observe(0.5, f"policy-{number}")
    assert (len(counter._counts), len(histogram._series)) == (MOST, MOST)
