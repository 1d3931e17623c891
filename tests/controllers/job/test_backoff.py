from __future__ import annotations

import pytest
from controllers.job.makers import NOW, pod

from pybernetes.controllers.job.backoff import BackoffRecord, remaining, remaining_for_index


@pytest.mark.parametrize(
    ("failures", "since", "expected"),
    [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 11, 0), (2, 0, 20), (3, 5, 35), (7, 0, 600), (100_000, 0, 600)],
)
def test_delay_doubles_with_each_failure_up_to_ten_minutes(failures: int, since: float, expected: float) -> None:
    assert remaining(failures, NOW - since, NOW) == expected


def test_failures_in_a_row_are_counted_from_the_last_success() -> None:
    record = BackoffRecord().after([], [pod("Failed", exit_code=1, ended=NOW - 5), pod("Failed", exit_code=1)])
    assert record == BackoffRecord(2, NOW)
    assert record.after([], []) == record
    assert record.after([pod("Succeeded", exit_code=0)], []) == BackoffRecord()
    success = pod("Succeeded", exit_code=0, ended=NOW - 3)
    failures = [pod("Failed", exit_code=1, ended=NOW - seconds) for seconds in (1, 2, 3, 4)]
    assert record.after([success], failures) == BackoffRecord(2, NOW - 1)


def test_each_index_waits_for_itself() -> None:
    assert remaining_for_index(None, NOW) == 0
    counts = {
        "batch.kubernetes.io/job-index-failure-count": "1",
        "batch.kubernetes.io/job-index-ignored-failure-count": "1",
    }
    assert remaining_for_index(pod("Failed", exit_code=1, annotations=counts), NOW) == 40
    odd = {"batch.kubernetes.io/job-index-failure-count": "-7"}
    assert remaining_for_index(pod("Failed", exit_code=1, annotations=odd), NOW) == 10
