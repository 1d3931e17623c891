"""A store in which others work at the same time, and one whose process is killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from cri.embedded.images.registries import FakeRegistry, layer

from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images.pulling import pull
from pybernetes.cri.embedded.images.store import ImageStore

PULLING = """
import sys
from pathlib import Path
from pybernetes.cri.embedded.images.pulling import pull
from pybernetes.cri.embedded.images.store import ImageStore
store = ImageStore(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    for name in sys.argv[2:]:
        if name.endswith(".tar"):
            store.import_archive(Path(name))
        else:
            pull(store, [], name)
    for image in store.images():
        store.remove(image.id)
"""


def sound(store: ImageStore) -> None:
    """Everything in the index exists, and nothing else does."""
    for image in store.images():
        assert store.config(image).diffs
        assert all((store.layers / each).is_dir() and (store.layers / f"{each}.size").exists() for each in image.layers)
    store.collect()
    known = {layer for image in store.images() for layer in image.layers}
    assert {each.name.removesuffix(".size") for each in store.layers.iterdir()} - {"empty"} == known
    assert {each.name for each in (store.root / "configs").iterdir()} == {
        image.id.removeprefix("sha256:") for image in store.images()
    }


def test_a_store_is_sound_whenever_its_process_is_killed(registry: FakeRegistry, tmp_path: Path) -> None:
    root = tmp_path / "images"
    base = layer(**{f"f{number}": "x" * 5000 for number in range(200)})
    for tag in ("1", "2"):
        registry.add(tag, base, layer(name=tag), layer(**{f"{tag}-{number}": "y" for number in range(200)}))
    archive = tmp_path / "archive.tar"
    oci.write(archive, oci.Image(["local:1"], [oci.file(f"a/{number}", b"z" * 1000) for number in range(300)]))
    names = [f"{registry.host}/a/b:1", str(archive), f"{registry.host}/a/b:2"]
    pause = random.Random(7)
    for _ in range(8):
        command = [sys.executable, "-c", PULLING, str(root), *names]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            threading.Event().wait(pause.uniform(0.0, 0.25))
            os.kill(process.pid, signal.SIGKILL)
        sound(ImageStore(root))
    store = ImageStore(root)
    assert [pull(store, [], name).names for name in names if name != str(archive)]
    sound(store)


def test_images_are_removed_while_others_that_share_layers_come(registry: FakeRegistry, tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    base = layer(**{f"f{number}": "x" * 500 for number in range(50)})
    names = [f"{registry.host}/a/b:{number}" for number in range(4)]
    for number in range(4):
        registry.add(str(number), base, layer(own=str(number)))
    wrong: list[BaseException] = []
    done = threading.Event()

    def collect() -> None:
        while not done.is_set():
            for image in store.images():
                store.remove(image.id)

    def use(name: str) -> None:
        try:
            for number in range(8):
                pull(store, [], name)
                container = f"{name.rpartition(':')[2]}-{number}"
                try:
                    root = store.rootfs(name, container)
                except KeyError:
                    continue  # removed again
                assert all((root.layers / each).is_dir() for each in root.lower)
                assert (root.layers / root.lower[0] / "own").read_text() == name.rpartition(":")[2]
                store.release(container)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(name,)) for name in names]
    collector = threading.Thread(target=collect)
    for thread in [*threads, collector]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    collector.join()
    assert wrong == []
    sound(store)
