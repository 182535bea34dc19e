"""Durations: seconds or a timedelta here, texts such as "1m30s" on their way."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Union

Duration = Union[int, float, timedelta]

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|μs|ns|m|s)")


def seconds(duration: Duration) -> float:
    """The duration in seconds."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return float(duration)


def to_text(duration: Duration) -> str:
    """The duration as the server reads it, to the microsecond."""
    return f"{seconds(duration):.6f}s"


def from_text(text: str) -> float:
    """The seconds of a duration that the server wrote."""
    parts = _PART.findall(text)
    if text == "0" or "".join(number + unit for number, unit in parts) != text.lstrip("-"):
        return 0.0
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return -total if text.startswith("-") else total
