"""Failures that a user can act on. Each ends a command with one line on stderr and exit code 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from json import JSONDecodeError


class RseError(Exception):
    """A failure with a message that says what is wrong and what to do next."""


class UsageError(RseError):
    """The command, a flag or a parameter asks for something that makes no sense."""


class ConfigError(RseError):
    """A configuration file or environment variable can't be used."""


class StoreError(RseError):
    """The store is missing, damaged, locked, of another format or of another model."""


class ClosedStoreError(StoreError):
    """The store can be read, but not written."""


class DamagedStoreError(StoreError):
    """A store that can't be used until a command mends it.

    Parameters
    ----------
    fault : str
        What is wrong; names the store.
    folder : str
        The store.
    flag : str
        What `rse ingest` needs to mend it.
    """

    def __init__(self, fault: str, folder: str, flag: str = "--rebuild") -> None:
        self.fault, self.folder, self.flag = fault, folder, flag
        super().__init__(f"{fault}: {self.remedy} with `rse ingest {flag}`")

    def __reduce__(self) -> tuple[type[DamagedStoreError], tuple[str, str, str]]:
        """Let a worker send it."""
        return type(self), (self.fault, self.folder, self.flag)

    @property
    def remedy(self) -> str:
        """What the command does, as a verb."""
        return self.flag.lstrip("-")


class ModelError(RseError):
    """An embedding model can't be found, read or trusted."""


class AnswerError(RseError):
    """A language model can't be asked, or gave no whole answer."""


class ReadError(RseError):
    """One file can't be indexed; the run goes on without it.

    Parameters
    ----------
    status : str
        What the index records: ``"encrypted"``, ``"empty"``, ``"binary"``, ``"unreadable"`` or ``"failed"``.
    reason : str
        One line for the user, without the file's path.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class CasesError(RseError):
    """A file of cases can't be used.

    Parameters
    ----------
    faults : sequence of (int, str)
        Every fault with its line, 1-based.
    label : str
        How messages name the file; empty where it isn't known.
    """

    def __init__(self, faults: Sequence[tuple[int, str]], label: str = "") -> None:
        self.faults = tuple(faults)
        self.label = label
        place = f"{label} " if label else ""
        super().__init__("; ".join(f"{place}line {line}: {message}" for line, message in self.faults))


class Terminated(BaseException):
    """SIGTERM arrived; a BaseException, so that no handler of errors takes it for one."""


def describe_json_fault(fault: JSONDecodeError) -> str:
    """Return what is wrong with a line of JSON, and where.

    Examples
    --------
    >>> import json
    >>> try:
    ...     json.loads('{"query": "a')
    ... except json.JSONDecodeError as fault:
    ...     describe_json_fault(fault)
    'not JSON: unterminated string starting at column 11'
    """
    reason = fault.msg[:1].lower() + fault.msg[1:].removesuffix(" at")
    return f"not JSON: {reason} at column {fault.colno}"
