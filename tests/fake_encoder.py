"""An encoder without a model: each word has a direction of its own, a text is their sum; it counts what it is given."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from rse_cli.ports import ModelIdentity, Vectors

DIMENSION = 16


class FakeEncoder:
    """Texts that share words get similar unit vectors, the same on every machine; `texts` lists what was encoded.

    With `fail_after` n it raises `KeyboardInterrupt` instead of the n+1st call, as Ctrl-C would.
    """

    def __init__(self, fail_after: int | None = None) -> None:
        self.texts: list[str] = []
        self.calls = 0
        self._fail_after = fail_after

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity("fake", "0" * 64, DIMENSION, "mean", 64)

    def encode_queries(self, texts: Sequence[str]) -> tuple[Vectors, list[bool]]:
        return self._encode(texts), [len(text.split()) > 64 for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        if self._fail_after is not None and self.calls >= self._fail_after:
            raise KeyboardInterrupt
        self.calls += 1
        self.texts += texts
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        return np.array([encode(text) for text in texts], np.float32).reshape(len(texts), DIMENSION)


def encode(text: str) -> np.ndarray:
    """Return the unit vector of one text."""
    total = sum((_direct(word) for word in text.lower().split()), _direct(""))
    return (total / np.linalg.norm(total)).astype(np.float32)


def _direct(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:8])
    return np.random.default_rng(seed).normal(size=DIMENSION)
