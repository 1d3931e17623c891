"""The language: what expressions mean, how they fail, what their errors say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.cel.ast import CompileError
from pybernetes.api.cel.environment import Environment
from pybernetes.api.cel.types import DYN
from pybernetes.api.cel.values import CostLimitExceeded, Duration, EvaluationError, Timestamp, UInt

OBJECT: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web", "a.b/c": "x"}},
    "spec": {
        "replicas": 3,
        "containers": [{"name": "a", "image": "r/a:1"}, {"name": "b", "image": "r/b:2"}],
        "no": None,
    },
}
ENVIRONMENT = Environment({"object": DYN})


def value(expression: str) -> Any:
    return ENVIRONMENT.compile(expression).evaluate({"object": OBJECT})[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7u / 2u", UInt(3)),
        ("1.5 * 2.0", 3.0),
        ("1.0 / 0.0", math.inf),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2]", [1, 2]),
        ("{'a': 1}.a", 1),
        ("{'a': 1}['a']", 1),
        ("true ? 1 : 2", 1),
        ("1 < 2 && 2 < 3 || false", True),
        ("!true", False),
        ("2 in [1, 2]", True),
        ("'a' in {'a': 1}", True),
        ("1 < 1.5", True),
        ("2u > 1", True),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == 'a'", False),
        ("dyn(true) == 1", False),
        ("[1, 2] == [1, 2]", True),
        ("{'a': [1]} == {'a': [1]}", True),
        ("null == null", True),
        (r"'\u00fc\n\x41\101'", "ü\nAA"),
        (r"r'\d'", r"\d"),
        ("'''a\nb'''", "a\nb"),
        ("b'\\xff'", b"\xff"),
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("1e3", 1000.0),
        ("size('äö')", 2),
        ("size(b'ab') + size([1]) + size({1: 2})", 4),
        ("type(1) == int && type('') == string && type(type(1)) == type", True),
        ("string(1.5) + string(2u) + string(true) + string(b'x')", "1.52truex"),
        ("int('42') + int(2.9) + int(3u)", 47),
        ("double('1.5')", 1.5),
        ("bool('true')", True),
        ("duration('90m')", Duration(5400 * 10**9)),
        ("string(duration('90m'))", "5400s"),
        ("timestamp('2020-01-02T03:04:05.5Z')", Timestamp(1577934245500000000)),
        ("string(timestamp('2020-01-02T03:04:05+01:00'))", "2020-01-02T03:04:05+01:00"),
        ("timestamp('2020-01-02T03:04:05Z') + duration('1h') > timestamp('2020-01-02T03:04:05Z')", True),
        ("timestamp('2020-01-02T23:04:05Z').getDate('Europe/Berlin')", 3),
        ("timestamp('2020-01-02T03:04:05Z').getDayOfWeek()", 4),
        ("duration('3661s').getMinutes()", 61),
        ("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", True),
        ("'abc'.matches('^[a-c]+$')", True),
        ("has(object.spec.replicas) && !has(object.spec.nope)", True),
        ("object.spec.no == null", True),
        ("object.spec.containers.all(c, c.image.startsWith('r/'))", True),
        ("object.spec.containers.exists(c, c.name == 'b')", True),
        ("object.spec.containers.exists_one(c, c.name == 'b')", True),
        ("object.spec.containers.map(c, c.name)", ["a", "b"]),
        ("object.spec.containers.map(c, c.name == 'b', c.image)", ["r/b:2"]),
        ("object.spec.containers.filter(c, c.name == 'b').size()", 1),
        ("object.metadata.labels.all(k, object.metadata.labels[k] != '')", True),
        ("object.metadata.labels['a.b/c']", "x"),
        ("[1, 2].all(i, v, i < v)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[3, 4].transformList(i, v, i + v)", [3, 5]),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10)", {"b": 20}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("object.?spec.?replicas.orValue(0)", 3),
        ("object.?nope.?replicas.orValue(7)", 7),
        ("object.spec.?containers[0].name.orValue('')", "a"),
        ("object.spec.containers[?9].hasValue()", False),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("object.?nope.optMap(x, x.y).hasValue()", False),
        ("optional.ofNonZeroValue('').or(optional.of('x')).value()", "x"),
        ("[?optional.of(1), ?optional.none(), 2]", [1, 2]),
        ("{?'a': optional.none(), 'b': 1}", {"b": 1}),
        ("object.nope.x || true", True),
        ("true || object.nope.x", True),
        ("!(false && object.nope.x)", True),
        ("[1, 2].exists(x, x / 0 == 1 || x == 2)", True),
    ],
)
def test_an_expression_has_a_value(expression: str, expected: Any) -> None:
    found = value(expression)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'tacocat'.charAt(3)", "o"),
        ("'hello mellow'.indexOf('ello', 2)", 7),
        ("'hello mellow'.lastIndexOf('ello')", 7),
        ("['a', 'b'].join('-')", "a-b"),
        ("'TacoÖ'.lowerAscii()", "tacoÖ"),
        ("'he he'.replace('he', 'we', 1)", "we he"),
        ("'a b c'.split(' ', 2)", ["a", "b c"]),
        ("'abc'.substring(1, 2)", "b"),
        ("' x\\t'.trim()", "x"),
        ("'%s %d %.1f %x'.format([dyn('a'), dyn(3), dyn(2.25), dyn(255)])", "a 3 2.2 ff"),
        ("'%s'.format([['a', 'b']])", '["a", "b"]'),
        ("strings.quote('a\"b')", '"a\\"b"'),
        ("[1, 3, 2].isSorted()", False),
        ("[1, 3, 2].max() + [1, 3, 2].min() + [1, 2].sum()", 7),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
        ("[1, 1, 2].distinct().reverse()", [2, 1]),
        ("[[1], [2]].flatten()", [1, 2]),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])", True),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'123 abc 456'.findAll('[0-9]+', 1)", ["123"]),
        ("url('https://u@example.com:80/a%20b?k=v&k=w#f').getQuery()['k']", ["v", "w"]),
        ("url('https://[::1]:80/a').getHostname()", "::1"),
        ("url('https://example.com:80/').getPort()", "80"),
        ("isURL('/absolute/path') && !isURL('../relative')", True),
        ("quantity('1.5Gi').isGreaterThan(quantity('1Gi'))", True),
        ("quantity('50k').add(20).isGreaterThan(quantity('50k'))", True),
        ("quantity('700').asInteger() + sign(quantity('-1'))", 699),
        ("isQuantity('1Zi') || quantity('0.5').isInteger()", False),
        ("ip('::1').isLoopback() && ip('192.168.0.1').family() == 4", True),
        ("isIP('1.2.3.4.5') || isIP('::ffff:1.2.3.4')", False),
        ("ip.isCanonical('2001:DB8::ABCD')", False),
        ("cidr('192.168.0.0/24').containsCIDR('192.168.0.128/25')", True),
        ("string(cidr('192.168.0.1/24').masked())", "192.168.0.0/24"),
        ("cidr('::1/128').ip() == ip('::1')", True),
        ("format.named('dns1123Label').value().validate('A-').hasValue()", True),
        ("format.uuid().validate('nope').value()", ["does not match the UUID format"]),
        ("semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))", True),
        ("semver('v01.2', true).compareTo(semver('1.2.0'))", 0),
        ("isSemver('v1.0')", False),
    ],
)
def test_a_library_answers(expression: str, expected: Any) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.nope", "no such key: nope"),
        ("object.spec.containers[5]", "index out of bounds: 5"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("dyn(1) + 'a'", "no such overload"),
        ("object.spec.replicas.startsWith('a')", "no such overload: int.startsWith(string)"),
        ("int(object.metadata.name)", "type conversion error from 'string' to 'int'"),
        ("optional.none().value()", "optional.none() dereference"),
        ("'abc'.substring(5)", "index out of range: 5"),
        ("[].min()", "min called on empty list"),
        ("quantity('x')", "quantities must match the regular expression"),
        ("object.nope.x && true", "no such key: nope"),
        ("authorizer_is_no_variable == 1 || true", ""),
    ],
)
def test_an_evaluation_fails_with_its_reason(expression: str, message: str) -> None:
    if not message:
        with pytest.raises(CompileError):
            value(expression)
        return
    with pytest.raises(EvaluationError, match="^" + __import__("re").escape(message)):
        value(expression)


@pytest.mark.parametrize(
    ("expression", "place", "message"),
    [
        ("foo.bar", "1:1", "undeclared reference to 'foo' (in container '')"),
        ("foo(1)", "1:4", "undeclared reference to 'foo' (in container '')"),
        ("'a'.foo()", "1:8", "undeclared reference to 'foo' (in container '')"),
        ("1 + 'a'", "1:3", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.startsWith(1)", "1:15", "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("1 && true", "1:1", "expected type 'bool' but found 'int'"),
        ("[1, 'a']", "1:5", "expected type 'int' but found 'string'"),
        ("'a'.b", "1:4", "type 'string' does not support field selection"),
        ("1.all(x, true)", "1:1", "expression of type 'int' cannot be range of a comprehension"
         " (must be list, map, or dynamic)"),
        ("[1].all(1, true)", "1:9", "argument must be a simple name"),
        ("[1].all(x, x, true)", "1:12", "duplicate variable name: x"),
        ("has(object)", "1:5", "invalid argument to has() macro"),
        ("for", "1:1", "reserved identifier: for"),
        ("1 +", "1:4", "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true',"
         " 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"),
        ("object object", "1:8", "Syntax error: extraneous input 'object' expecting <EOF>"),
        ("#", "1:1", "Syntax error: token recognition error at: '#'"),
        ("'a'.matches('[')", "1:13", "invalid matches argument"),
        ("duration('1x')", "1:10", "invalid duration argument"),
        ("timestamp('x')", "1:11", "invalid timestamp argument"),
        ("99999999999999999999", "1:1", "invalid int literal"),
        ("9" * 5000, "1:1", "invalid int literal"),
        ("9" * 5000 + "u", "1:1", "invalid uint literal"),
        ("1 ==\n foo", "2:2", "undeclared reference to 'foo' (in container '')"),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_refused_at_its_place(expression: str, place: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression)
    assert str(caught.value).splitlines()[0] == f"ERROR: <input>:{place}: {message}"


def test_an_error_shows_where_it_is() -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("object.a == foo && bar")
    assert str(caught.value) == (
        "ERROR: <input>:1:13: undeclared reference to 'foo' (in container '')\n"
        " | object.a == foo && bar\n | ............^\n"
        "ERROR: <input>:1:20: undeclared reference to 'bar' (in container '')\n"
        " | object.a == foo && bar\n | ...................^"
    )


def test_an_expensive_expression_is_stopped() -> None:
    program = ENVIRONMENT.compile("object.all(a, object.all(b, object.all(c, a + b + c >= 0)))")
    with pytest.raises(CostLimitExceeded, match="operation cancelled: actual cost limit exceeded") as caught:
        program.evaluate({"object": list(range(300))})
    assert 1_000_000 < caught.value.cost < 1_100_000


def test_the_limit_is_not_absorbed_by_or() -> None:
    program = ENVIRONMENT.compile("object.all(a, object.all(b, a + b >= 0)) || true")
    with pytest.raises(CostLimitExceeded):
        program.evaluate({"object": list(range(100))}, limit=1000)


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(CompileError, match="recursion limit"):
        ENVIRONMENT.compile("(" * 5000 + "1" + ")" * 5000)
    with pytest.raises(CompileError):
        ENVIRONMENT.compile("!" + "object.a" * 100_000)


@given(st.text(alphabet="objectspec.()[]{}+-*/%&|!?:<>=,'\"0123456789 truefalsenullin\\\n", max_size=40))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        program = ENVIRONMENT.compile(text)
    except CompileError:
        return
    try:
        program.evaluate({"object": OBJECT})
    except (EvaluationError, CostLimitExceeded):
        pass


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integer_division_goes_toward_zero(one: int, other: int) -> None:
    environment = Environment({"a": DYN, "b": DYN})
    try:
        quotient = environment.compile("a / b").evaluate({"a": one, "b": other})[0]
        remainder = environment.compile("a % b").evaluate({"a": one, "b": other})[0]
    except EvaluationError:
        allowed = other == 0 or (one == -(2**63) and other == -1)
        if not allowed:
            raise
        return
    assert quotient * other + remainder == one
    assert abs(remainder) < abs(other)
