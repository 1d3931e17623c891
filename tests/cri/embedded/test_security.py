"""What a container of the embedded runtime may not see or do, and what it is given."""

from __future__ import annotations

from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from node import cri_pods

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime


def confined(**more: Any) -> Any:
    options = cri.NamespaceOption(pid=cri.CONTAINER)
    return cri.LinuxContainerConfig(
        security_context=cri.LinuxContainerSecurityContext(namespace_options=options, **more)
    )


async def shell(runtime: Runtime, id: str, script: str) -> tuple[int, str]:
    answer = await runtime.exec_sync(cri.ExecSyncRequest(container_id=id, cmd=["sh", "-c", script], timeout=60))
    return answer.exit_code, (answer.stdout + answer.stderr).decode()


async def test_a_container_has_only_what_it_is_given(machine: EmbeddedMachine) -> None:
    (machine.folder / "secret").write_text("of the node")
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        linux = confined(masked_paths=["/proc/keys", "/proc/acpi"], readonly_paths=["/proc/sys"], readonly_rootfs=True)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=linux)
        for script in (
            f"cat {machine.folder}/secret",
            f"cat /proc/1/root{machine.folder}/secret",
            "mount -t tmpfs none /mnt",
            "mount -o remount,rw /",
            "touch /file",
            "echo 1 > /proc/sys/kernel/panic",
            "chroot / mount -t proc proc /proc",
            "mknod /dev/disk b 254 0 && dd if=/dev/disk of=/dev/null count=1",  # the devices' cgroup says no
            "unshare -m true",
            "nsenter -t 1 -m true",
            "echo 1 > /sys/fs/cgroup/memory/memory.limit_in_bytes",
            "ip link add dummy0 type bridge",
            "umount /proc/keys",
        ):
            code, said = await shell(runtime, id, script)
            assert code != 0, (script, said)
            assert "of the node" not in said, script
        assert (await shell(runtime, id, "cat /proc/keys | wc -c"))[1].strip() == "0"
        assert (await shell(runtime, id, "ls /proc/acpi | wc -l"))[1].strip() == "0"
        assert (await shell(runtime, id, "ps -o pid,args | grep -c ' sleep 1000'"))[0] == 0
        processes = (await shell(runtime, id, "ls -d /proc/[0-9]* | wc -l"))[1]
        assert int(processes) < 8, "it sees its own processes only"
        await cri_pods.remove(runtime, sandbox)


async def test_users_groups_and_capabilities_are_as_asked_for(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        linux = confined(
            run_as_user=cri.Int64Value(value=1234),
            run_as_group=cri.Int64Value(value=99),
            supplemental_groups=[7, 8],
            no_new_privs=True,
            capabilities=cri.Capability(drop_capabilities=["ALL"], add_capabilities=["NET_BIND_SERVICE"]),
            seccomp=cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
        )
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=linux)
        assert (await shell(runtime, id, "id"))[1].startswith("uid=1234 gid=99 groups=7,8,99")
        said = (await shell(runtime, id, "cat /proc/1/status"))[1]
        facts = dict(line.split(":", 1) for line in said.splitlines())
        assert facts["CapBnd"].split() == [f"{1 << 10:016x}"]
        assert facts["CapEff"].split() == ["0" * 16]
        assert (facts["NoNewPrivs"].split(), facts["Seccomp"].split()) == (["1"], ["2"])
        found = await runtime.container_status(cri.ContainerStatusRequest(container_id=id))
        assert (found.status.user.linux.uid, found.status.user.linux.gid) == (1234, 99)
        with pytest.raises(CRIError, match="unable to find user who"):
            await cri_pods.start(runtime, config, sandbox, "true", attempt=1, linux=confined(run_as_username="who"))
        with pytest.raises(CRIError, match="no privileged container allowed in sandbox"):
            await cri_pods.start(runtime, config, sandbox, "true", attempt=2, linux=confined(privileged=True))
        await cri_pods.remove(runtime, sandbox)


async def test_links_in_a_volume_or_image_do_not_lead_a_mount_out_of_the_container(machine: EmbeddedMachine) -> None:
    volume, inner = machine.folder / "volume", machine.folder / "inner"
    for folder in (volume, inner):
        folder.mkdir()
    (volume / "out").symlink_to("/etc")  # the container's own, not the node's
    (inner / "passwd").write_text("mine\n")
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        mounts = [
            cri.Mount(container_path="/v", host_path=str(volume)),
            cri.Mount(container_path="/v/out/new", host_path=str(inner), readonly=True),
        ]
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", mounts=mounts, linux=confined())
        assert (await shell(runtime, id, "cat /etc/new/passwd")) == (0, "mine\n")
        assert (await shell(runtime, id, "touch /etc/new/file"))[0] != 0
        assert (await shell(runtime, id, "touch /v/file"))[0] == 0
        assert machine.run("ls", "/etc/new", check=False) == ""
        assert (volume / "file").exists()
        await cri_pods.remove(runtime, sandbox)


async def test_mounts_reach_the_other_side_as_their_propagation_says(machine: EmbeddedMachine) -> None:
    for name in ("down", "both", "none"):
        (machine.folder / name).mkdir()
        machine.run("mount", "--bind", f"{machine.folder}/{name}", f"{machine.folder}/{name}")
    async with machine.runtime() as runtime:
        config = cri_pods.sandbox_config(machine)
        config.linux.security_context.privileged = True
        request = cri.RunPodSandboxRequest(config=config)
        sandbox = (await runtime.run_pod_sandbox(request)).pod_sandbox_id
        kinds = {
            "down": cri.PROPAGATION_HOST_TO_CONTAINER,
            "both": cri.PROPAGATION_BIDIRECTIONAL,
            "none": cri.PROPAGATION_PRIVATE,
        }
        mounts = [
            cri.Mount(container_path=f"/{name}", host_path=f"{machine.folder}/{name}", propagation=kind)
            for name, kind in kinds.items()
        ]
        linux = confined(privileged=True)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", mounts=mounts, linux=linux)
        for name in kinds:
            machine.run("sh", "-c", f"cd {machine.folder}/{name} && mkdir -p host && mount -t tmpfs host host")
            await shell(runtime, id, f"cd /{name} && mkdir -p mine && mount -t tmpfs mine mine")
        inside = (await shell(runtime, id, "mount"))[1]
        outside = machine.run("cat", "/proc/mounts")
        assert [name for name in kinds if f"/{name}/host" in inside] == ["down", "both"]
        assert [name for name in kinds if f"/{name}/mine" in outside] == ["both"]
        machine.run("umount", f"{machine.folder}/both/mine")
        for name in kinds:
            machine.run("umount", f"{machine.folder}/{name}/host")
        await cri_pods.remove(runtime, sandbox)
    for name in kinds:
        machine.run("umount", f"{machine.folder}/{name}")


async def test_an_image_can_be_a_volume_whole_or_in_part_and_is_not_written_to(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        image = cri.ImageSpec(image=cri_pods.BUSYBOX)
        mounts = [
            cri.Mount(container_path="/whole", image=image),
            cri.Mount(container_path="/part", image=image, image_sub_path="bin"),
        ]
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", mounts=mounts, linux=confined())
        assert (await shell(runtime, id, "test -x /whole/bin/busybox && test -x /part/busybox"))[0] == 0
        assert (await shell(runtime, id, "touch /part/file"))[0] != 0
        lost = [cri.Mount(container_path="/part", image=image, image_sub_path="nope/../..")]
        with pytest.raises(CRIError, match="image volume at"):
            await cri_pods.start(runtime, config, sandbox, "true", attempt=1, mounts=lost, linux=confined())
        missing = [cri.Mount(container_path="/part", image=cri.ImageSpec(image="none/such"))]
        with pytest.raises(CRIError, match="failed to resolve image volume"):
            await cri_pods.start(runtime, config, sandbox, "true", attempt=2, mounts=missing, linux=confined())
        await cri_pods.remove(runtime, sandbox)
