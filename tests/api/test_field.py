"""Paths and field errors print as upstream prints them."""

from __future__ import annotations

import pytest

from pybernetes.api import field
from pybernetes.api.field import FieldError, Path
from pybernetes.api.gocompat import quote


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("spec"), "spec"),
        (Path("spec", "template", "spec"), "spec.template.spec"),
        (Path("spec").child("containers").index(0), "spec.containers[0]"),
        (Path("spec").child("template", "spec").index(1).child("name"), "spec.template.spec[1].name"),
        (Path("metadata").child("labels").key("a.b/c"), "metadata.labels[a.b/c]"),
        (Path("metadata").child("labels").key(""), "metadata.labels[]"),
    ],
)
def test_a_path_reads_like_upstream(path: Path, text: str) -> None:
    assert str(path) == text


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (field.required("a"), "FieldValueRequired", "a: Required value"),
        (field.required("a", "must be set"), "FieldValueRequired", "a: Required value: must be set"),
        (field.invalid("a", "x", "bad"), "FieldValueInvalid", 'a: Invalid value: "x": bad'),
        (field.invalid("a", -1, "bad"), "FieldValueInvalid", "a: Invalid value: -1: bad"),
        (field.invalid("a", 1.5, "bad"), "FieldValueInvalid", "a: Invalid value: 1.5: bad"),
        (field.invalid("a", True, "bad"), "FieldValueInvalid", "a: Invalid value: true: bad"),
        (field.invalid("a", None, "bad"), "FieldValueInvalid", "a: Invalid value: null: bad"),
        (
            field.invalid("a", {"z": "<", "b": [1]}, "x"),
            "FieldValueInvalid",
            'a: Invalid value: {"b":[1],"z":"\\u003c"}: x',
        ),
        (field.invalid(None, "x", "bad"), "FieldValueInvalid", '<nil>: Invalid value: "x": bad'),
        (field.type_invalid("a", "x", "bad"), "FieldValueTypeInvalid", 'a: Invalid value: "x": bad'),
        (
            field.not_supported("a", "x", {"B", "A"}),
            "FieldValueNotSupported",
            'a: Unsupported value: "x": supported values: "A", "B"',
        ),
        (
            field.not_supported("a", "x", ["B", "A"]),
            "FieldValueNotSupported",
            'a: Unsupported value: "x": supported values: "B", "A"',
        ),
        (field.not_supported("a", "x", []), "FieldValueNotSupported", 'a: Unsupported value: "x"'),
        (field.duplicate("a", "x"), "FieldValueDuplicate", 'a: Duplicate value: "x"'),
        (field.not_found("a", "x"), "FieldValueNotFound", 'a: Not found: "x"'),
        (field.forbidden("a", "no"), "FieldValueForbidden", "a: Forbidden: no"),
        (field.too_long("a", "x", 1), "FieldValueTooLong", "a: Too long: may not be more than 1 byte"),
        (field.too_long("a", "x", 63), "FieldValueTooLong", "a: Too long: may not be more than 63 bytes"),
        (field.too_long("a", "x", -1), "FieldValueTooLong", "a: Too long: value is too long"),
        (field.too_long_characters("a", "x", 2), "FieldValueTooLong", "a: Too long: may not be more than 2 characters"),
        (field.too_short("a", "x", 2), "FieldValueTooShort", "a: Too short: must be at least 2 characters"),
        (field.too_many("a", 3, 1), "FieldValueTooMany", "a: Too many: 3: must have at most 1 item"),
        (field.too_many("a", -1, -1), "FieldValueTooMany", "a: Too many: has too many items"),
        (field.too_few("a", 0, 2), "FieldValueTooFew", "a: Too few: 0: must have at least 2 items"),
        (field.internal("a", ValueError("boom")), "InternalError", "a: Internal error: boom"),
    ],
)
def test_a_field_error_reads_like_upstream(error: FieldError, reason: str, message: str) -> None:
    assert error.type == reason
    assert error.message() == message
    assert error.cause() == {"reason": reason, "message": message.split(": ", 1)[1], "field": message.split(": ", 1)[0]}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"'),
        ("größe ✓", '"größe ✓"'),
        ("\u200b\U000e0001", '"\\u200b\\U000e0001"'),
    ],
)
def test_strings_are_quoted_as_go_does(text: str, quoted: str) -> None:
    assert quote.quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (0.1, "0.1"), (1e20, "1e+20"), (1e21, "1e+21"), (1.5e-7, "1.5e-07"), (0.0, "0"),
        (999999.5, "999999.5"), (1e6, "1e+06"), (-1234567.5, "-1.2345675e+06"), (1e100, "1e+100"),
    ],
)  # fmt: skip
def test_floats_are_printed_as_go_does(value: float, text: str) -> None:
    assert quote.number(value) == text
