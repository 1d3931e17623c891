"""What a `.proto` file may say here, and how it says no."""

from __future__ import annotations

import pytest

from pybernetes.protofile import ProtoError, parse

TEXT = """
// A comment; with punctuation.
syntax = "proto3";
package test.v1;
service Greeter { rpc Greet(Person) returns (Person); rpc Follow(Person) returns (stream Person); }
enum Mood { GOOD = 0; BAD = 1; }
message Person {
  enum Size { Small = 0; Big = 7; }
  string name = 1; repeated int64 numbers = 2; map<string, Person> friends = 3; Mood mood = 4; Size size = 5;
  repeated Person children = 6; bytes data = 16; double weight = 17; map<string, int32> counts = 18;
}
"""


def test_messages_round_trip_over_the_wire() -> None:
    proto = parse(TEXT, "test.proto")
    person_class = proto.names["Person"]
    person = person_class(name="a", numbers=[1, -2], mood=proto.names["BAD"], size=person_class.Big, counts={"x": 1})
    person.friends["b"].name = "c"
    again = person_class.FromString(person.SerializeToString())
    assert again == person
    assert (again.numbers, again.friends["b"].name, again.size) == ([1, -2], "c", 7)


def test_bytes_are_those_of_protobuf() -> None:
    person_class = parse(TEXT, "test.proto").names["Person"]
    assert (
        person_class(name="a", numbers=[1, 2], data=b"x").SerializeToString() == b"\n\x01a\x12\x02\x01\x02\x82\x01\x01x"
    )


def test_methods_know_their_path_and_whether_they_stream() -> None:
    proto = parse(TEXT, "test.proto")
    assert [(method.name, method.path, method.streams) for method in proto.methods] == [
        ("Greet", "/test.v1.Greeter/Greet", False),
        ("Follow", "/test.v1.Greeter/Follow", True),
    ]
    assert proto.methods[0].request is proto.names["Person"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('syntax = "proto2";', """t.proto:1: expected "proto3", not '"proto2"'"""),
        ("message A { oneof x { string y = 1; } }", "t.proto:1: expected =, not '{'"),
        ("message A {\n  string name = one;\n}", "t.proto:2: expected a number, not 'one'"),
        ("message A { B b = 1; }", "t.proto: A.b: no such type: B"),
        ("service S { rpc C(A) returns (A); }", "t.proto: no such message: A"),
        ("message A { string name = 1", "t.proto:1: more was expected, not '1'"),
        ("message A { string name = 1 [deprecated = true]; }", "t.proto:1: unexpected '['"),
        ('import "x.proto";', "t.proto:1: expected syntax or package or service or message or enum, not 'import'"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ProtoError) as error:
        parse(text, "t.proto")
    assert str(error.value) == message
