"""VOLUME: folders of a container's own, with what its image has there. The images are built by `pyb image build`."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from node import cri_pods

from pybernetes.cluster.commands import image
from pybernetes.cluster.images import store
from pybernetes.cluster.layout import Layout
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime
from tools import wait_until

NAME = "localhost/volumes:1"
DOCKERFILE = """
FROM busybox
RUN mkdir -p /data/sub && echo seed > /data/sub/file && ln /data/sub/file /data/hard && ln -s sub /data/link \
  && chown -R 7:8 /data && chmod 2770 /data && ln -s /data /to-data
VOLUME /data /new/place /mounted /etc/../other
WORKDIR /data
USER 7:8
ENTRYPOINT ["sh", "-c"]
CMD ["echo built > /data/out; cat /data/out; exec sleep 1000"]
"""


@pytest.fixture(scope="module")
def built(machine: EmbeddedMachine, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("built")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    image.main(["build", "--data-dir", str(folder / "data"), "-t", NAME, str(folder)])
    shutil.copy(store.archive_path(Layout("x", folder / "data"), NAME), machine.images / "built.tar")
    return NAME


async def make(runtime: Runtime, config: Any, sandbox: str, name: str = NAME, **more: Any) -> str:
    spec = cri.ImageSpec(image=name)
    await runtime.pull_image(cri.PullImageRequest(image=spec))
    wanted = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="main"),
        image=spec,
        log_path="main.log",
        **({"linux": cri.LinuxContainerConfig()} | more),
    )
    request = cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=wanted, sandbox_config=config)
    return str((await runtime.create_container(request)).container_id)


async def run(runtime: Runtime, id: str, *command: str) -> str:
    answer = await runtime.exec_sync(cri.ExecSyncRequest(container_id=id, cmd=command, timeout=30))
    assert answer.exit_code == 0, answer.stderr
    return bytes(answer.stdout).decode()


async def test_a_built_image_runs_and_its_volumes_are_the_containers_own(
    machine: EmbeddedMachine, built: str, tmp_path: Path
) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        (tmp_path / "given").write_text("by the pod")
        os.chmod(tmp_path, 0o755)
        mount = cri.Mount(host_path=str(tmp_path), container_path="/mounted/")
        context = cri.LinuxContainerSecurityContext(readonly_rootfs=True)
        linux = cri.LinuxContainerConfig(security_context=context)
        id = await make(runtime, config, sandbox, mounts=[mount], linux=linux)
        await runtime.start_container(cri.StartContainerRequest(container_id=id))
        log = Path(config.log_directory) / "main.log"
        await asyncio.to_thread(wait_until, lambda: "built" in log.read_text(), "the container's command runs")
        assert await run(runtime, id, "cat", "/data/sub/file", "/data/hard", "/data/link/file") == "seed\n" * 3
        assert await run(runtime, id, "stat", "-c", "%u %g %a %h", "/data", "/data/hard") == "7 8 2770 3\n7 8 644 2\n"
        assert await run(runtime, id, "ls", "/new/place", "/other") == "/new/place:\n\n/other:\n"
        assert await run(runtime, id, "cat", "/mounted/given") == "by the pod"
        assert " /data " in await run(runtime, id, "cat", "/proc/mounts")
        folder = machine.folder / "lib/images/containers" / id
        assert (folder / "volumes/0/out").read_text() == "built\n"
        assert not (folder / "fs/data/out").exists()
        await cri_pods.remove(runtime, sandbox)
        assert not folder.exists()


async def test_each_container_gets_what_the_image_has(machine: EmbeddedMachine, built: str) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        for _ in range(2):
            id = await make(runtime, config, sandbox)
            await runtime.start_container(cri.StartContainerRequest(container_id=id))
            assert await run(runtime, id, "sh", "-c", "cat /data/sub/file; echo changed > /data/sub/file") == "seed\n"
            await runtime.remove_container(cri.RemoveContainerRequest(container_id=id))
        await cri_pods.remove(runtime, sandbox)


async def test_names_are_taken_while_volumes_are_made(machine: EmbeddedMachine, built: str) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        answers = await asyncio.gather(*(make(runtime, config, sandbox) for _ in range(3)), return_exceptions=True)
        refused = [each for each in answers if isinstance(each, CRIError)]
        assert len(refused) == 2
        assert all("is reserved for" in each.message for each in refused)
        await cri_pods.remove(runtime, sandbox)


async def test_a_volume_that_is_a_file_is_refused(machine: EmbeddedMachine, built: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM busybox\nVOLUME /etc/passwd\n")
    data = tmp_path / "data"
    name = "localhost/odd:1"
    await asyncio.to_thread(image.main, ["build", "--data-dir", str(data), "-t", name, str(tmp_path)])
    shutil.copy(store.archive_path(Layout("x", data), name), machine.images / "odd.tar")
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        with pytest.raises(CRIError, match='volume "/etc/passwd": Not a directory'):
            await make(runtime, config, sandbox, name)
        assert list((machine.folder / "lib/containers").iterdir()) == []
        await cri_pods.remove(runtime, sandbox)
