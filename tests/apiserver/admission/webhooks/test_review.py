"""Whatever a webhook answers is an answer or is refused; nothing else can happen."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.apiserver.admission.webhooks.review import Answer, Undecodable, Unusable, read, refusal

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 700) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
responses = st.fixed_dictionaries(
    {"uid": st.sampled_from(["u", "other"]) | anything, "allowed": st.booleans() | anything},
    optional={
        "patch": st.sampled_from(["W10=", "%%", ""]) | anything,
        "patchType": st.sampled_from(["JSONPatch", ""]) | anything,
        "status": anything,
        "warnings": anything,
        "auditAnnotations": anything,
    },
)
reviews = st.fixed_dictionaries(
    {
        "kind": st.just("AdmissionReview"),
        "apiVersion": st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]),
    },
    optional={"response": responses | anything},
)


@given(reviews | anything, st.sampled_from(["v1", "v1beta1"]), st.booleans())
def test_any_json_is_an_answer_or_refused(review: Any, version: str, mutating: bool) -> None:
    try:
        answer = read(msgspec.json.encode(review), "u", version, mutating)
    except (Undecodable, Unusable):
        return
    assert isinstance(answer, Answer)
    error = refusal("w", answer.status)
    assert 400 <= error.code < 600
    assert msgspec.json.encode(error.status())


@given(st.binary(max_size=40))
def test_any_bytes_are_refused(body: bytes) -> None:
    try:
        read(body, "u", "v1", True)
    except (Undecodable, Unusable):
        return
    raise AssertionError(body)
