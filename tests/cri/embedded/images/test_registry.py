"""Images from a real registry with passwords, through CRI's ImageService."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.images import registries
from cri.embedded.images.registries import PASSWORD, USER

from pybernetes.cluster.images import oci
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.images.service import ImageService
from pybernetes.cri.embedded.images.store import ImageStore
from pybernetes.cri.errors import CRIError

LOGIN = {"username": USER, "password": PASSWORD}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if missing := registries.missing():
        pytest.skip(f"not installed: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("registry")
    with registries.docker_registry(folder) as host:
        shared = [oci.file("shared", b"shared" * 1000)]
        registries.push(folder, host, "private/one:1", shared, user="1000:1000", command=["run"])
        registries.push(folder, host, "private/two:1", [oci.file("two", b"2" * 300_000)], user="www")
        yield host


@pytest.fixture
def service(tmp_path: Path) -> ImageService:
    return ImageService(ImageStore(tmp_path / "images"), None, [tmp_path / "certs.d"])


async def pull(service: ImageService, image: str, **auth: str) -> str:
    request = cri.PullImageRequest(image=cri.ImageSpec(image=image), auth=cri.AuthConfig(**auth) if auth else None)
    answer = await service.pull_image(request)
    return str(answer.image_ref)


async def status(service: ImageService, image: str, verbose: bool = False) -> Any:
    return await service.image_status(cri.ImageStatusRequest(image=cri.ImageSpec(image=image), verbose=verbose))


@pytest.mark.parametrize(
    "auth",
    [
        LOGIN,
        {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()},
    ],
)
async def test_an_image_is_pulled_with_a_password(service: ImageService, host: str, auth: dict[str, str]) -> None:
    id = await pull(service, f"{host}/private/one:1", **auth)
    found = (await status(service, f"{host}/private/one:1")).image
    assert found.id == id
    assert list(found.repo_tags) == [f"{host}/private/one:1"]
    assert len(found.repo_digests) == 1
    assert found.repo_digests[0].startswith(f"{host}/private/one@sha256:")
    assert found.uid.value == 1000
    assert not found.username
    assert "imageSpec" in (await status(service, id, verbose=True)).info["info"]
    root = service._store.rootfs(id, "c1")
    assert (root.layers / root.lower[0] / "shared").read_bytes() == b"shared" * 1000
    assert root.config.cmd == ("run",)
    assert list((service._store.root / "downloads").iterdir()) == []
    # the digest works as a name, and needs nothing but the manifest's head
    assert await pull(service, found.repo_digests[0], **auth) == id
    assert (await status(service, found.repo_digests[0])).image.id == id


async def test_a_user_by_name_is_reported(service: ImageService, host: str) -> None:
    await pull(service, f"{host}/private/two:1", **LOGIN)
    found = (await status(service, f"{host}/private/two:1")).image
    assert found.username == "www"
    assert not found.HasField("uid")


@pytest.mark.parametrize("auth", [{}, {"username": USER, "password": "wrong"}, {"username": "bob", "password": "x"}])
async def test_without_the_password_it_says_401(service: ImageService, host: str, auth: dict[str, str]) -> None:
    with pytest.raises(CRIError) as caught:
        await pull(service, f"{host}/private/one:1", **auth)
    begins = f'failed to pull and unpack image "{host}/private/one:1": failed to resolve reference'
    assert caught.value.message.startswith(begins)
    assert "401 Unauthorized" in caught.value.message
    assert service._store.images() == []


async def test_what_is_not_there_is_not_found(service: ImageService, host: str) -> None:
    for name in ("private/nothing:1", "private/one:9", f"private/one@sha256:{'0' * 64}"):
        with pytest.raises(CRIError) as caught:
            await pull(service, f"{host}/{name}", **LOGIN)
        assert caught.value.code == "NotFound", caught.value
        assert caught.value.message.endswith(f"{host}/{name}: not found")


@pytest.mark.parametrize(
    "name",
    ["Bad//Name", "a b", "x:", "127.0.0.1:1/../etc:1", "h.io/a/%2e%2e/b", "h.io/a@sha256:12", "h.io/A", "h.io/a:-"],
)
async def test_bad_names_are_refused_before_anything_is_asked(service: ImageService, name: str) -> None:
    with pytest.raises(CRIError) as caught:
        await pull(service, name)
    assert caught.value.code == "InvalidArgument"


async def test_a_missing_server_gets_gos_error(service: ImageService) -> None:
    host = f"127.0.0.1:{registries.free_port()}"
    with pytest.raises(CRIError) as caught:
        await pull(service, f"{host}/x:1")
    assert caught.value.message.endswith(
        f'failed to do request: Head "https://{host}/v2/x/manifests/1": dial tcp {host}: connect: connection refused'
    )


async def test_an_image_that_is_removed_is_gone_with_its_names_and_layers(service: ImageService, host: str) -> None:
    id = await pull(service, f"{host}/private/two:1", **LOGIN)
    service._store.rootfs(id, "c1")
    before = (await service.image_fs_info(cri.ImageFsInfoRequest())).image_filesystems[0]
    assert before.used_bytes.value > 300_000
    assert before.inodes_used.value >= 2
    spec = cri.ImageSpec(image=f"{host}/private/two:1")
    for _ in range(2):  # the second time is no error
        await service.remove_image(cri.RemoveImageRequest(image=spec))
    assert not (await status(service, id)).HasField("image")
    assert not (await service.list_images(cri.ListImagesRequest())).images
    in_use = (await service.image_fs_info(cri.ImageFsInfoRequest())).image_filesystems[0]
    assert in_use.used_bytes.value > 300_000  # a container stands on them
    service._store.release("c1")
    assert list(service._store.layers.iterdir()) == []
