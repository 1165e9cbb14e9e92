"""What lance raises, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.errors import DamagedStoreError, Terminated


@pytest.mark.parametrize("signalled", [KeyboardInterrupt, Terminated])
def test_a_signal_while_lance_works_is_no_damage(signalled: type[BaseException]) -> None:
    with pytest.raises(signalled), explain_failure(Path("store")):
        raise OSError(f"External error: {signalled.__name__}: , /registry/lance/src/scanner.rs:10:1")


def test_another_fault_of_lance_is_damage() -> None:
    told = "the store store failed: External error: page 3 is short"
    with pytest.raises(DamagedStoreError, match=told), explain_failure(Path("store")):
        raise OSError("External error: page 3 is short, /registry/lance/src/scanner.rs:10:1")
