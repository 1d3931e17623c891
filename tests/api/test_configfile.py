"""Configuration files: what is wrong with their form, in upstream's words (v1.36.4 was asked)."""

from __future__ import annotations

import pytest

from pybernetes.api.configfile import ConfigError, Scheme, Section, load
from pybernetes.api.types import Duration


class Part(Section):
    name: str = ""
    after: Duration = ""


class Thing(Section):
    kind: str = ""
    api_version: str = ""
    parts: list[Part] = []


SCHEME = Scheme({("example.com/v1", "Thing")}, "example/register.go:1")
HEAD = "apiVersion: example.com/v1\nkind: Thing\n"
NOT_ONE = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type "
    'struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# x\n", "Object 'Kind' is missing in '# x\n'"),
        ("null", "Object 'Kind' is missing in 'null'"),
        ("kind: Thing", "Object 'apiVersion' is missing in 'kind: Thing'"),
        ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("x", NOT_ONE.format("string")),
        ("[]", NOT_ONE.format("array")),
        (
            "apiVersion: example.com/v1\nkind: 1",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of "
            "type string",
        ),
        (
            "apiVersion: example.com/v2\nkind: Thing",
            'no kind "Thing" is registered for version "example.com/v2" in scheme "example/register.go:1"',
        ),
        ("apiVersion: a/b/c\nkind: Thing", "unexpected GroupVersion string: a/b/c"),
        ("apiVersion: a\n\tkind: b", "yaml: line 2: found a tab character that violates indentation"),
        (f"{HEAD}a: 1\nparts: [{{b: 1}}]", 'strict decoding error: unknown field "a", unknown field "parts[0].b"'),
        (
            f"{HEAD}kind: Thing",
            'strict decoding error: yaml: unmarshal errors:\n  line 3: key "kind" already set in map',
        ),
        (f"{HEAD}parts: x", "json: cannot unmarshal string into Go struct field Thing.parts of type []v1.Part"),
        (
            f"{HEAD}parts: [{{name: 1}}]",
            "json: cannot unmarshal number into Go struct field Part.parts.name of type string",
        ),
        (f"{HEAD}parts: [{{after: x}}]", 'time: invalid duration "x"'),
    ],
)
def test_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        load(text.encode(), Thing, SCHEME)
    assert str(failed.value) == problem


@pytest.mark.parametrize(
    "text", [f"{HEAD}parts: [null, {{name: null}}]", '{"apiVersion":"example.com/v1","kind":"Thing","parts":[{},{}]}']
)
def test_null_is_nothing(text: str) -> None:
    assert load(text.encode(), Thing, SCHEME).parts == [Part(), Part()]
