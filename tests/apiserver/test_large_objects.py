"""Large objects are worked on beside the event loop: others are answered meanwhile."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apiserver.client import Answer, Client

import tools
from pybernetes.apiserver.large_objects import MANY, SMALL, beside_loop, collecting_later, is_large

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with tools.api_server(tmp_path_factory.mktemp("large")) as server:
        yield Client(server)


def deployment(variables: int, value: str = "x") -> dict[str, Any]:
    env = [{"name": f"V{number}", "value": value} for number in range(variables)]
    container = {"name": "c", "image": "nginx", "env": env}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "large"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }


def answered_meanwhile(client: Client, work: Callable[[], Answer]) -> tuple[Answer, int]:
    """The answer of a request, and how many others were answered while it was worked on."""
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    count = 0
    thread.start()
    while thread.is_alive():
        assert client.get("/api/v1/namespaces/default").status == 200
        count += 1
    thread.join()
    return answers[0], count


def test_others_are_answered_while_a_large_object_is_applied_patched_and_replaced(admin: Client) -> None:
    large = f"{DEPLOYMENTS}/large?fieldManager"
    patch = {"spec": {"template": {"spec": deployment(10_000, "y")["spec"]["template"]["spec"]}}}
    for work in (
        lambda: admin.patch(f"{large}=one", deployment(10_000), "apply"),
        lambda: admin.patch(f"{large}=two&force=true", deployment(10_000, "z"), "apply"),
        lambda: admin.patch(f"{DEPLOYMENTS}/large", patch, "strategic"),
        lambda: admin.put(f"{DEPLOYMENTS}/large", deployment(10_000, "w")),
    ):
        answer, count = answered_meanwhile(admin, work)
        assert answer.status in (200, 201)
        assert count >= 10  # on the event loop it would be one or two
    found = admin.get(f"{DEPLOYMENTS}/large").json
    assert {each["value"] for each in found["spec"]["template"]["spec"]["containers"][0]["env"]} == {"w"}


def test_what_is_wrong_with_a_large_object_is_reported_as_for_a_small_one(admin: Client) -> None:
    wrong = deployment(5_000)
    wrong["metadata"]["name"] = "wrong"
    wrong["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    answer = admin.post(DEPLOYMENTS, wrong)
    assert answer.status == 422
    assert [each["field"] for each in answer.json["details"]["causes"]] == ["spec.template.spec.containers[0].image"]


def test_objects_of_few_fields_are_small_whatever_their_size() -> None:
    assert not is_large(b'{"data":{"a":"' + b"x" * (1 << 20) + b'"}}')
    assert not is_large(b"," * SMALL)
    assert is_large(b"[" + b"1,2," * SMALL + b"3]")
    assert is_large(b"- a: b\n" * max(SMALL, MANY))


async def test_work_beside_the_loop_returns_and_raises_as_if_it_were_called() -> None:
    assert await beside_loop(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await beside_loop(lambda: 1 // 0)


def test_garbage_is_collected_again_when_the_last_large_object_is_done() -> None:
    assert gc.isenabled()
    with collecting_later:
        with collecting_later:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
