"""A small client for the Tarnlink interface, version 2.

Tarnlink collects one reading a minute from each turbine. This module fetches them, joins the pages of a
long answer, and keeps to the limit of 60 requests a minute. It needs nothing but the standard library::

    client = Client(token="...")
    for reading in client.readings("D3-2402", start, end):
        print(reading.time, reading.power_w)
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

BASE_URL = "https://api.tarnlink.example/v2/"
REQUESTS_PER_MINUTE = 60
LONGEST_SPAN = timedelta(days=31)  # the server refuses longer ones with status 422
STALE_AFTER = timedelta(minutes=15)  # the same limit as in the app


class TarnlinkError(Exception):
    """The server refused a request, or could not be reached."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reading:
    """What a turbine reported for one minute."""

    time: datetime
    wind_ms: float
    rotor_rpm: float
    power_w: float
    battery_v: float | None
    brake: bool

    @classmethod
    def from_json(cls, item: dict) -> Reading:
        """Build a reading from the server's JSON; a grid-tied turbine has no battery voltage."""
        return cls(
            time=datetime.fromisoformat(item["time"]),
            wind_ms=float(item["wind_ms"]),
            rotor_rpm=float(item["rotor_rpm"]),
            power_w=float(item["power_w"]),
            battery_v=None if item.get("battery_v") is None else float(item["battery_v"]),
            brake=bool(item["brake"]),
        )


class RateLimiter:
    """Let at most `limit` calls through in any span of 60 seconds.

    The limiter remembers when the last `limit` calls were made. A call that would be one too many sleeps
    until the oldest of them is a minute old, so that bursts are possible but the server never answers 429.
    """

    def __init__(
        self,
        limit: int = REQUESTS_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._times: deque[float] = deque(maxlen=limit)
        self._clock = clock
        self._sleep = sleep

    def wait(self) -> None:
        """Return as soon as one more call is allowed, and count it."""
        if len(self._times) == self._times.maxlen:
            pause = self._times[0] + 60.0 - self._clock()
            if pause > 0:
                self._sleep(pause)
        self._times.append(self._clock())


class Client:
    """Access to the turbines of one account.

    Parameters
    ----------
    token:
        Made in the app under *Account › Access*. Tokens end after 180 days; the server then answers 401.
    retries:
        How often a request is repeated after a timeout or a status of 500 and above. The pause doubles each
        time, beginning with one second. A status of 400 to 499 is never repeated, because it would fail
        again.
    """

    def __init__(self, token: str, base_url: str = BASE_URL, retries: int = 4, timeout: float = 20.0) -> None:
        self._token = token
        self._base_url = base_url
        self._retries = retries
        self._timeout = timeout
        self._limiter = RateLimiter()

    def turbines(self) -> list[str]:
        """Serial numbers of all turbines that the token may read."""
        return [item["serial"] for item in self._get("turbines", {})["turbines"]]

    def readings(self, serial: str, start: datetime, end: datetime) -> Iterator[Reading]:
        """Yield the readings of a turbine from `start` (inclusive) to `end` (exclusive), oldest first.

        The span may be of any length: it is cut into pieces of at most 31 days, and each piece is read page by page
        with the cursor that the server hands out. Minutes that the gateway missed are absent, not zero.

        Raises
        ------
        ValueError
            If a time has no zone, or `end` lies before `start`.
        """
        if start.tzinfo is None or end.tzinfo is None:
            raise ValueError("times need a zone, for example datetime.now(UTC)")
        if end < start:
            raise ValueError("the end lies before the start")
        for begin, finish in split_span(start, end, LONGEST_SPAN):
            cursor = None
            while True:
                query = {"from": to_utc(begin), "to": to_utc(finish)}
                if cursor:
                    query["cursor"] = cursor
                page = self._get(f"turbines/{serial}/readings", query)
                yield from map(Reading.from_json, page["readings"])
                cursor = page.get("next")
                if not cursor:
                    break

    def is_stale(self, serial: str, now: datetime | None = None) -> bool:
        """Whether nothing has been heard of the turbine for more than 15 minutes."""
        last = datetime.fromisoformat(self._get(f"turbines/{serial}", {})["last_seen"])
        return (now or datetime.now(UTC)) - last > STALE_AFTER

    def _get(self, path: str, query: dict[str, str]) -> dict:
        """Fetch one document, repeating what may succeed the next time."""
        url = self._base_url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self._token}"})
        for attempt in range(self._retries + 1):
            self._limiter.wait()
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code < 500 or attempt == self._retries:
                    raise TarnlinkError(f"{path}: {error.reason}", error.code) from error
            except (urllib.error.URLError, TimeoutError) as error:
                if attempt == self._retries:
                    raise TarnlinkError(f"{path}: {error}") from error
            time.sleep(2.0**attempt)
        raise AssertionError("the last attempt returns or raises")


def split_span(start: datetime, end: datetime, longest: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Cut a span of time into adjacent pieces, none longer than `longest`."""
    while start < end:
        middle = min(start + longest, end)
        yield start, middle
        start = middle


def to_utc(moment: datetime) -> str:
    """The time as the server wants it: UTC, seconds, and a trailing Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def energy_kwh(readings: list[Reading], longest_gap: timedelta = timedelta(minutes=5)) -> float:
    """Energy in kilowatt-hours, by the trapezium rule over neighbouring readings.

    A gap of more than `longest_gap` counts as no energy at all: after an outage it is better to report too
    little than to draw a straight line through a night.
    """
    total = 0.0
    for left, right in pairwise(readings):
        span = right.time - left.time
        if span <= longest_gap:
            total += (left.power_w + right.power_w) / 2 * span.total_seconds()
    return total / 3.6e6
