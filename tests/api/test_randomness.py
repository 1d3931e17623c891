"""UUIDs and the stock they come from: never the same twice, not even in a process that was forked."""

from __future__ import annotations

import os
import re

from pybernetes.api.names import generate_name
from pybernetes.api.randomness import new_uid

_VERSION_4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_every_uid_is_another_random_uuid() -> None:
    uids = [new_uid() for _ in range(1000)]
    assert len(set(uids)) == 1000
    assert all(map(_VERSION_4.fullmatch, uids))


def test_generated_names_differ() -> None:
    names = {generate_name("web-") for _ in range(100)}
    assert len(names) > 98  # there are 14 million
    assert all(re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_a_forked_process_does_not_use_what_was_made_before() -> None:
    new_uid(), generate_name("")  # from here on there is a stock
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.write(sending, f"{new_uid()} {generate_name('')}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(receiving, 100).decode().split()
    os.close(receiving)
    os.close(sending)
    assert told[0] != new_uid()
    assert told[1] != generate_name("")
