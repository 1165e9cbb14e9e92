"""A `.safetensors` file mapped into memory: its header checked, its tensors views of the file, nothing copied."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.dataclass import dataclass
from rse_cli.errors import ModelError

# The limit of the reference implementation (huggingface/safetensors, MAX_HEADER_SIZE).
MAX_HEADER_BYTES = 100_000_000

# Bytes per element of the types of the format that have whole bytes.
ITEM_BYTES = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("I8", "U8", "BOOL"), 1),
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies: bytes ``[begin, end)`` after the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A mapped file: `data` holds the bytes after the header."""

    path: Path
    entries: Mapping[str, TensorEntry]
    data: NDArray[np.uint8]

    def tensor(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the tensor `name` in float32, a read-only view of the file where it is stored so.

        Parameters
        ----------
        name : str
            As in the file's header.
        shape : tuple of int
            What the model's configuration asks for.

        Returns
        -------
        ndarray of shape `shape`
            F16 and BF16 are widened, which copies.

        Raises
        ------
        ModelError
            If the tensor is missing, has another shape, or isn't F32, F16 or BF16.
        """
        entry = self.entries.get(name)
        if entry is None:
            raise ModelError(f"{self.path} has no tensor {name}: it isn't the model that its config.json describes")
        if entry.shape != shape:
            raise ModelError(f"{self.path}: tensor {name} has shape {entry.shape}, config.json asks for {shape}")
        raw = self.data[entry.begin : entry.end]
        if entry.dtype == "F32":
            floats = raw.view("<f4")
            # The format doesn't align tensors; the linear algebra library wants whole floats.
            values = floats if floats.flags.aligned else floats.copy()
        elif entry.dtype == "F16":
            values = raw.view("<f2").astype(np.float32)
        elif entry.dtype == "BF16":
            values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            raise ModelError(f"{self.path}: tensor {name} is stored as {entry.dtype}, only F32, F16 and BF16 are read")
        return values.reshape(shape)


def open_tensors(path: Path) -> TensorFile:
    """Map a `.safetensors` file into memory.

    Parameters
    ----------
    path : Path
        The file; it may be read-only.

    Returns
    -------
    TensorFile
        The tensors of the file, none read yet.

    Raises
    ------
    ModelError
        If the file can't be opened, or its header isn't one that describes this file exactly.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelError(f"can't read the model's weights {path}: {error}") from None
    header_end = _header_end(path, mapped[:8], len(mapped))
    entries = parse_header(path, mapped[8:header_end], len(mapped) - header_end)
    return TensorFile(path, entries, np.frombuffer(mapped, np.uint8, offset=header_end))


def read_header(path: Path) -> bytes:
    """Return the bytes of the header, length field included.

    Raises
    ------
    ModelError
        If the file can't be read or is too short for its header.
    """
    try:
        with path.open("rb") as file:
            length = file.read(8)
            return length + file.read(_header_end(path, length, path.stat().st_size) - 8)
    except OSError as error:
        raise ModelError(f"can't read the model's weights {path}: {error}") from None


def _header_end(path: Path, length: bytes, size: int) -> int:
    """Return the offset of the first byte after the header."""
    end = 8 + int.from_bytes(length, "little")
    if len(length) < 8 or end > min(size, 8 + MAX_HEADER_BYTES):
        raise ModelError(f"{path} isn't a safetensors file, or is cut short: fetch the model again")
    return end


def parse_header(path: Path, header: bytes, data_bytes: int) -> dict[str, TensorEntry]:
    """Check a header against the number of bytes that follow it.

    Parameters
    ----------
    path : Path
        For messages.
    header : bytes
        JSON, without the length field.
    data_bytes : int
        Bytes in the file after the header.

    Returns
    -------
    dict of str to TensorEntry
        The tensors; together they tile the data.

    Raises
    ------
    ModelError
        If the header isn't JSON of the format, or tensors overlap, leave a gap, don't have the size that
        their shape and type ask for, or don't end with the file.
    """
    try:
        content = json.loads(header)
        entries = {name: _parse_entry(value) for name, value in content.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} has a damaged header ({error!r}): fetch the model again") from None
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != end:
            raise ModelError(f"{path} has a damaged header: tensors overlap or leave a gap at byte {end}")
        end = entry.end
    if end != data_bytes:
        raise ModelError(f"{path} has {data_bytes} bytes of tensors, its header says {end}: fetch the model again")
    return entries


def _parse_entry(value: Any) -> TensorEntry:
    """Check one tensor by itself."""
    shape, (begin, end) = value["shape"], value["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError("a size or offset isn't a whole number")
    size = ITEM_BYTES.get(value["dtype"])
    # Types that aren't known here are never read: it is enough that they lie inside the file.
    if end < begin or (size is not None and prod(shape) * size != end - begin):
        raise ValueError(f"{value['dtype']} of shape {shape} doesn't take {end - begin} bytes")
    return TensorEntry(value["dtype"], tuple(shape), begin, end)
