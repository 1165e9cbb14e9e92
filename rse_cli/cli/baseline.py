"""The JSON of a former check, read to compare with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rse_cli.core.comparison import Measured
from rse_cli.core.gates import METRIC_NAMES
from rse_cli.errors import UsageError

MAX_FILE_BYTES = 500_000_000
"""5,000 cases make 10 MB."""


def read_baseline(place: str) -> list[Measured]:
    """Return the cases of a former check.

    Raises
    ------
    UsageError
        If the file can't be read, or is not the ``--json`` of a check.
    """
    try:
        with Path(place).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        raise UsageError(f"can't read the baseline {place}: {fault.strerror or fault}") from fault
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"the baseline {place} has more than {MAX_FILE_BYTES // 1_000_000} MB")
    try:
        document = json.loads(data)
        return [_read_case(one) for one in document["cases"]]
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as fault:
        raise UsageError(f"{place} is no baseline: make one with `rse check … --json > {place}`") from fault


def _read_case(one: Any) -> Measured:
    measures = {name: float(value) for name, value in one["metrics"].items() if name in METRIC_NAMES}
    if not isinstance(one["id"], str) or not all(map(math.isfinite, measures.values())):
        raise ValueError("not a case")
    return Measured(one["id"], tuple(map(str, one["query"])), measures)
