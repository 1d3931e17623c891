"""Validation of objects of batch/v1: create, update, status update; one module a subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .cronjob import validate_cron_job, validate_cron_job_update
from .job import validate_job, validate_job_update
from .job_status import validate_job_status_update

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"CronJob": validate_cron_job, "Job": validate_job}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CronJob": validate_cron_job_update,
    "Job": validate_job_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Job": validate_job_status_update}
