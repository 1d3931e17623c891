"""Images: credentials by name, who may use what others pulled, policies, back-off and the words for it all."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubelet.observed import pod

from pybernetes.api.core.image import parse_reference
from pybernetes.api.core.v1 import ObjectReference, Secret
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.clock import FakeClock, JumpingClock
from pybernetes.client.events import EventRecorder
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime
from pybernetes.kubelet.backoff import BackOff
from pybernetes.kubelet.images.credentials import Credential, InvalidSecret, Keyring
from pybernetes.kubelet.images.manager import ImageError, ImageManager
from pybernetes.kubelet.images.pulled import PulledImages


def secret(name: str, entries: dict[str, Any], type: str = "kubernetes.io/dockerconfigjson") -> Secret:
    old = type.endswith("dockercfg")
    data = base64.b64encode(json.dumps(entries if old else {"auths": entries}).encode()).decode()
    key = ".dockercfg" if old else ".dockerconfigjson"
    return Secret(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"), type=type, data={key: data})


def auth(user: str, password: str = "p") -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("image", "users"),
    [
        ("registry.example.com/team/app:1", ["team", "registry"]),
        ("registry.example.com/other/app", ["registry"]),
        ("registry.example.com:5000/x", ["port"]),
        ("eu.wild.example.com/x", ["wild"]),
        ("a.b.wild.example.com/x", []),
        ("nginx", ["hub"]),
        ("docker.io/library/nginx@sha256:" + "0" * 64, ["hub"]),
        ("index.docker.io/nginx", ["hub"]),
        ("quay.io/nginx", []),
    ],
)
def test_credentials_are_found_by_the_images_name(image: str, users: list[str]) -> None:
    keyring = Keyring.of(
        [
            secret(
                "s",
                {
                    "https://index.docker.io/v1/": auth("hub"),
                    "registry.example.com": auth("registry"),
                    "https://registry.example.com/v2/team": auth("team"),
                    "registry.example.com:5000": auth("port"),
                    "*.wild.example.com": auth("wild"),
                },
            )
        ]
    )
    assert [each.username for each in keyring.lookup(parse_reference(image).name)] == users


def test_both_forms_of_secrets_are_read_and_others_ignored() -> None:
    entries = {"r.io": {"username": "u", "password": "p"}}
    old = secret("old", entries, "kubernetes.io/dockercfg")
    other = Secret(metadata=ObjectMeta(name="o", namespace="ns"), type="Opaque", data={"x": "eA=="})
    (found,) = Keyring.of([old, other]).lookup("r.io/x")
    assert (found.username, found.password, found.secret) == ("u", "p", ("uid-old", "ns", "old"))
    broken = secret("broken", {"r.io": {"auth": base64.b64encode(b"nocolon").decode()}})
    with pytest.raises(InvalidSecret, match="ns/broken"):
        Keyring.of([broken])


def test_what_was_pulled_with_a_secret_needs_the_secret(tmp_path: Path) -> None:
    pulled = PulledImages(tmp_path)
    mine = Credential("me", "p", ("uid1", "ns", "s1"))
    same_words = Credential("me", "p", ("uid2", "other", "s2"))
    other = Credential("you", "p", ("uid3", "ns", "s3"))
    assert not pulled.needs_pull("img", "sha256:a", [])  # it was here before us
    pulled.intend("img")
    assert pulled.needs_pull("img", "sha256:a", [])  # who knows how far that came
    pulled.succeeded("img", "sha256:a", mine)
    for subject in (pulled, PulledImages(tmp_path)):
        assert not subject.needs_pull("img", "sha256:a", [mine])
        assert not subject.needs_pull("img", "sha256:a", [same_words])
        assert subject.needs_pull("img", "sha256:a", [other])
        assert subject.needs_pull("img", "sha256:a", [])
    pulled.succeeded("img", "sha256:a", None)  # it can be had without
    assert not PulledImages(tmp_path).needs_pull("img", "sha256:a", [])
    pulled.keep([])
    assert not PulledImages(tmp_path).needs_pull("img", "sha256:a", [other])


class FakeRuntime:
    """Images by name; pulls answer as configured."""

    def __init__(self) -> None:
        self.images: set[str] = set()
        self.pulls: list[tuple[str, str]] = []
        self.failure: CRIError | None = None
        self.wanted_user = ""

    async def image_status(self, request: Any) -> Any:
        name = request.image.image
        if name not in self.images:
            return cri.ImageStatusResponse()
        return cri.ImageStatusResponse(image=cri.Image(id=f"sha256:{name}", size=42, username="app"))

    async def pull_image(self, request: Any) -> Any:
        name, user = request.image.image, request.auth.username
        self.pulls.append((name, user))
        if self.failure is not None:
            raise self.failure
        if user != self.wanted_user:
            raise CRIError("Unknown", "401 Unauthorized")
        self.images |= {name, f"sha256:{name}"}
        return cri.PullImageResponse(image_ref=f"sha256:{name}")


class Recorder:
    def __init__(self) -> None:
        self.events: list[str] = []

    def event(self, obj: object, type: str, reason: str, message: str, annotations: object = None) -> None:
        self.events.append(f"{type} {reason} {message}")


@pytest.fixture
def parts(tmp_path: Path) -> SimpleNamespace:
    runtime, recorder, clock = FakeRuntime(), Recorder(), JumpingClock()
    manager = ImageManager(
        cast(Runtime, runtime), cast(EventRecorder, recorder), clock, PulledImages(tmp_path), parallel=1
    )

    async def ensure(image: str, policy: str = "IfNotPresent", *secrets: Secret) -> Any:
        subject = pod("{containers: [{name: a, image: i}]}")
        return await manager.ensure_image(subject, image, policy, ObjectReference(), secrets, None)

    return SimpleNamespace(runtime=runtime, recorder=recorder, clock=clock, ensure=ensure, manager=manager)


async def test_an_image_that_is_there_is_not_pulled(parts: SimpleNamespace) -> None:
    parts.runtime.images.add("app:1")
    found = await parts.ensure("app:1")
    assert (found.ref, found.user.username) == ("sha256:app:1", "app")
    assert parts.runtime.pulls == []
    assert parts.recorder.events == [
        'Normal Pulled Container image "app:1" already present on machine and can be accessed by the pod'
    ]


async def test_the_policy_decides(parts: SimpleNamespace) -> None:
    with pytest.raises(ImageError) as caught:
        await parts.ensure("app", "Never")
    assert caught.value.reason == "ErrImageNeverPull"
    assert caught.value.message == 'Container image "app" is not present with pull policy of Never'
    await parts.ensure("app", "Always")
    await parts.ensure("app", "Always")
    assert parts.runtime.pulls == [("app:latest", "")] * 2
    assert parts.recorder.events[1] == 'Normal Pulling Pulling image "app"'
    assert parts.recorder.events[2].startswith('Normal Pulled Successfully pulled image "app" in ')
    assert parts.recorder.events[2].endswith("Image size: 42 bytes.")


async def test_a_name_that_is_none_is_refused(parts: SimpleNamespace) -> None:
    with pytest.raises(ImageError) as caught:
        await parts.ensure("Not A Name")
    assert caught.value.reason == "InvalidImageName"
    assert "invalid reference format" in caught.value.message


async def test_all_credentials_are_tried(parts: SimpleNamespace) -> None:
    parts.runtime.wanted_user = "b"
    first, second = secret("s1", {"r.io": auth("a")}), secret("s2", {"r.io": auth("b")})
    await parts.ensure("r.io/app:1", "Always", first, second)
    assert [user for _, user in parts.runtime.pulls] == ["a", "b"]
    await parts.ensure("r.io/app:1", "IfNotPresent", second)
    assert len(parts.runtime.pulls) == 2
    with pytest.raises(ImageError):  # without the secret a pod does not get the image another pod has pulled with it
        await parts.ensure("r.io/app:1", "IfNotPresent")
    assert parts.runtime.pulls[-1] == ("r.io/app:1", "")


async def test_a_failed_pull_is_not_repeated_at_once(parts: SimpleNamespace) -> None:
    parts.runtime.failure = CRIError("NotFound", "no such image")
    with pytest.raises(ImageError) as first:
        await parts.ensure("app:1")
    text = "rpc error: code = NotFound desc = no such image"
    assert (first.value.reason, first.value.message) == ("ErrImagePull", text)
    assert parts.recorder.events[-1] == f'Warning Failed Failed to pull image "app:1": {text}'
    with pytest.raises(ImageError) as second:
        await parts.ensure("app:1")
    assert second.value.reason == "ImagePullBackOff"
    assert second.value.message == f'Back-off pulling image "app:1": ErrImagePull: {text}'
    assert parts.recorder.events[-1] == 'Normal BackOff Back-off pulling image "app:1"'
    assert len(parts.runtime.pulls) == 1
    parts.clock.advance(10.1)
    parts.runtime.failure = None
    await parts.ensure("app:1")
    assert len(parts.runtime.pulls) == 2


def test_a_clock_that_is_set_back_delays_no_pull() -> None:
    clock = FakeClock()
    backoff = BackOff(clock, 10.0, 60.0)
    later = clock.now() + 100.0  # the clock was that far ahead when it failed
    backoff.next("k", later)
    assert not backoff.is_waiting("k", later)
    assert backoff.is_waiting("k", clock.now())


def test_back_off_doubles_and_is_forgotten() -> None:
    clock = JumpingClock()
    backoff = BackOff(clock, 10.0, 60.0)
    delays = []
    for _ in range(5):
        failed = clock.now()
        backoff.next("k", failed)
        delays.append(backoff.delay("k"))
        assert backoff.is_waiting("k", failed)
        clock.advance(delays[-1] + 0.01)
        assert not backoff.is_waiting("k", failed)
    assert delays == [10.0, 20.0, 40.0, 60.0, 60.0]
    clock.advance(200.0)
    backoff.next("k", clock.now())
    assert backoff.delay("k") == 10.0
    clock.advance(200.0)
    backoff.collect()
    assert backoff.delay("k") == 0.0
