"""What goes wrong inside lance and lancedb, in one line that says what mends it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rse_cli.errors import DamagedStoreError, StoreError, Terminated
from rse_cli.ports import Bucket, StorePlace

CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Variables by scheme."""

_REFUSAL = re.compile(r"40[13] (?:Forbidden|Unauthorized)|status: 40[13]")

_INCOMPLETE = re.compile(r"Missing \w+|must be specified|service account|credential|Base64|base64", re.IGNORECASE)

SIGNALS = {"KeyboardInterrupt": KeyboardInterrupt, "Terminated": Terminated}
"""What a signal raises while lance works, which makes an error of its own of it that names them."""


def is_lance_fault(fault: BaseException) -> bool:
    """Tell whether lance raised `fault`: a panic of its own language is no `Exception`."""
    known = (OSError, RuntimeError, ValueError, MemoryError)
    return isinstance(fault, known) or type(fault).__name__ == "PanicException"


@contextmanager
def explain_failure(
    store: StorePlace, flag: str = "--rebuild", is_newest: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Turn what lance and lancedb raise into one line, which names what `rse ingest` needs to mend it.

    Parameters
    ----------
    store : Path or Bucket
        The store.
    flag : str
        What mends the damage that the failure is a sign of.
    is_newest : callable
        Whether the version at work is still the newest. Files of others are dropped, and running the command again
        helps; those of the newest never are, and one that is missing is damage.
    """
    try:
        yield
    except StoreError:
        raise
    except BaseException as error:
        if not is_lance_fault(error):
            raise
        if (name := re.search(r"External error: (\w+): ", str(error))) and name[1] in SIGNALS:
            raise SIGNALS[name[1]] from error
        if (reason := _find_system_fault(error)) is not None:
            raise StoreError(f"the store {store} failed: {reason}: mend that and run it again") from error
        # Behind a comma lance says where in its own source.
        line = (str(error).splitlines() or [type(error).__name__])[0].split(", /")[0]
        if isinstance(store, Bucket) and (fault := _find_bucket_fault(str(error), store)) is not None:
            raise StoreError(f"the store {store} failed: {fault}") from error
        if _is_file_missing(error, store):
            # Lance names it without the slash that its path begins with.
            fault = f"the store {store} failed: a file of its table is missing"
            if not is_newest():
                raise StoreError(f"{fault}: run the command again") from error
            raise DamagedStoreError(fault, str(store), "--repair") from error
        raise DamagedStoreError(f"the store {store} failed: {line[:200]}", str(store), flag) from error


def _is_file_missing(error: BaseException, store: StorePlace) -> bool:
    # The store's own name may say anything.
    return "not found" in str(error).replace(str(store).lstrip("/"), "").lower()


def _find_bucket_fault(text: str, bucket: Bucket) -> str | None:
    """Return what an object store makes fail that says nothing of the index; None where it is something else."""
    if "concurrent transaction Restore" in text:
        return "another process took it over, as this one was not heard of: run the command again"
    if request := re.search(r"Generic (?:S3|GCS|MicrosoftAzure) error: (.*)", text, re.DOTALL):
        return explain_request(request[1], bucket)
    # As lance prints it for its own developers, from deep within.
    if request := re.search(r'Generic \{ store: "(?:S3|GCS|MicrosoftAzure)", (.*)', text, re.DOTALL):
        return explain_request(f"no answer\n{request[1]}", bucket)
    return None


def explain_request(told: str, bucket: Bucket) -> str:
    """Return why a request to an object store failed, and what to do.

    Parameters
    ----------
    told : str
        What the library says of it: the reason in its first line, then the answer and a dump of what was sent.
    bucket : Bucket
        Where it went.
    """
    reason = told.split("\n", maxsplit=1)[0].strip()[:200]
    names = CREDENTIALS[bucket.address.partition(":")[0]]
    if "builder error" in reason:
        return f"{reason}: an address that begins with http:// needs AWS_ALLOW_HTTP=true"
    # Without credentials the machine's own are looked for, where a cloud keeps them.
    if "169.254.169.254" in told or "metadata.google" in told:
        return f"no credentials: set {names}"
    if refusal := _REFUSAL.search(told):
        code = re.search(r"<Code>(\w+)</Code>", told)
        which = code[1] if code else refusal[0]
        return f"its server refuses the credentials, or what they may not do ({which}): see to {names}"
    if _INCOMPLETE.search(reason):
        return f"{reason}: see to {names}"
    return f"{reason}: see that it can be reached, and run the command again"


def _find_system_fault(error: BaseException) -> str | None:
    """Return what the system said, as of a full disk; None where it is something else, or a file is missing."""
    told = re.search(r"\(os error (\d+)\)", str(error))
    number = int(told[1]) if told else getattr(error, "errno", None)
    return os.strerror(number) if number not in (None, errno.ENOENT) else None
