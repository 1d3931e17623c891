"""`pyb objectfs`: what it refuses, in one line, and what it never shows."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["format", "sqlite:///nowhere/at/all.db", "volume", "--bucket", "BUCKET"],
            "cannot open the metadata",
        ),
        (["format", "META", "Volume!", "--bucket", "BUCKET"], "volume name 'Volume!'"),
        (
            ["format", "META", "volume", "--bucket", "BUCKET", "--storage", "tape"],
            "object store 'tape' is not",
        ),
        (["format", "META", "volume", "--bucket", "BUCKET", "--block-size", "5"], "--block-size 5"),
        (["format", "tikv://host", "volume", "--bucket", "BUCKET"], "metadata engine TiKV (tikv://) is not built in"),
        (["format", "META", "volume", "--bucket", "/proc/nothing"], "cannot make the folder /proc/nothing"),
        (["mount", "META", "/nowhere"], "/nowhere is not a folder"),
        (["mount", "META", "FOLDER"], "holds no volume"),
        (["mount", "META", "FOLDER", "-o", "enable-xatr"], "mount option 'enable-xatr' is unknown"),
        (["mount", "META", "FOLDER", "-o", "atime-mode=never"], "atime-mode 'never': one of noatime, relatime"),
        (["umount", "FOLDER"], "no volume is mounted at"),
        (["status", "META"], "holds no volume"),
        (["stauts", "META"], "unknown command 'stauts'"),
    ],
)
def test_refusals(mounts, words, said):
    replace = {"META": mounts.meta, "BUCKET": str(mounts.folder / "bucket"), "FOLDER": str(mounts.folder)}
    done = mounts.pyb(*[replace.get(word, word) for word in words], check=False)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_are_masked_and_another_volume_is_refused(mounts):
    mounts.format("--secret-key", "s3cr3t")
    shown = mounts.pyb("status", mounts.meta).stdout
    assert "s3cr3t" not in shown
    assert '"secret_key": "removed"' in shown
    bucket = str(mounts.folder / "bucket")
    done = mounts.pyb("format", mounts.meta, "another", "--bucket", bucket, check=False)
    assert "holds volume 'volume' with name 'volume', which cannot become 'another'" in done.stderr
    assert mounts.pyb("format", "--bucket", bucket, mounts.meta, "volume").returncode == 0, "format is idempotent"


def test_fsck_and_gc_name_what_is_missing_and_what_is_leaked(mounts):
    mounts.format()
    place = mounts.mount("one")
    (place / "file").write_bytes(b"x" * 1000)
    mounts.umount(place)
    (found,) = (mounts.folder / "bucket").rglob("*_0_1000")
    leaked = found.with_name("999999_0_7")
    leaked.write_bytes(b"garbage")
    assert "1 leaked (7 bytes)" in mounts.pyb("gc", mounts.meta, "--grace", "0").stdout
    mounts.pyb("gc", mounts.meta, "--grace", "0", "--delete")
    assert not leaked.exists()
    found.unlink()
    report = mounts.pyb("fsck", mounts.meta, check=False)
    assert report.returncode == 1
    assert f"{found.name} is missing" in report.stdout
    assert found.name in mounts.pyb("info", mounts.meta, "/file").stdout
