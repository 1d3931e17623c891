"""A container of an image that the runtime pulled: over CRI, from a registry with a password, in the machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cri.embedded.images import registries
from cri.embedded.machine import EmbeddedMachine
from node import cri_pods

from pybernetes.cluster.images import builtin, oci
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError


async def test_a_container_runs_from_what_was_pulled_and_outlives_the_image(
    machine: EmbeddedMachine, tmp_path: Path
) -> None:
    if missing := registries.missing():
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = builtin.busybox_program()
    assert program is not None
    with registries.docker_registry(tmp_path / "registry", machine.enter) as host:
        name = f"{host}/private/box:1"
        entries = [*builtin.busybox_entries(program), oci.file("name", b"pulled")]
        await asyncio.to_thread(registries.push, tmp_path, host, "private/box:1", entries, machine.enter)
        async with machine.runtime() as runtime:
            spec = cri.ImageSpec(image=name)
            with pytest.raises(CRIError, match="401 Unauthorized"):
                await runtime.pull_image(cri.PullImageRequest(image=spec))
            login = cri.AuthConfig(username=registries.USER, password=registries.PASSWORD)
            id = (await runtime.pull_image(cri.PullImageRequest(image=spec, auth=login))).image_ref
            config, sandbox = await cri_pods.run(runtime, machine)
            by_id = cri.ImageSpec(image=id, user_specified_image=name)
            made = await runtime.create_container(
                cri.CreateContainerRequest(
                    pod_sandbox_id=sandbox,
                    config=cri.ContainerConfig(
                        metadata=cri.ContainerMetadata(name="main"),
                        image=by_id,
                        command=["sleep", "1000"],
                        log_path="main.log",
                        linux=cri.LinuxContainerConfig(),
                    ),
                    sandbox_config=config,
                )
            )
            await runtime.start_container(cri.StartContainerRequest(container_id=made.container_id))
            found = await runtime.container_status(cri.ContainerStatusRequest(container_id=made.container_id))
            assert found.status.image.image == name
            assert found.status.image_ref.startswith(f"{host}/private/box@sha256:")
            assert found.status.image_id == id
            await runtime.remove_image(cri.RemoveImageRequest(image=spec))
            assert not (await runtime.image_status(cri.ImageStatusRequest(image=spec))).HasField("image")
            said = await runtime.exec_sync(
                cri.ExecSyncRequest(container_id=made.container_id, cmd=["cat", "/name"], timeout=30)
            )
            assert said.stdout == b"pulled"
            await cri_pods.remove(runtime, sandbox)
            layers = machine.folder / "lib" / "images" / "layers"
            assert not list(layers.glob("*/name"))
