"""A store in memory: what `rse_cli.ports.Store` promises, written as plainly as it can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.term_columns import TermTexts
from rse_cli.ports import KEY_BITS, EvidenceRows, FileRecord, IndexedFile, Keys, Statistics, StoredChunk, Vectors


class FakeSnapshot:
    """The files as they were when it was taken, by path with their document numbers."""

    def __init__(self, files: dict[str, tuple[int, IndexedFile]], dimension: int) -> None:
        self._dimension = dimension
        self._files = dict(sorted(files.items()))
        self._rows = {
            (number << KEY_BITS) + place + 1: (file, place)
            for number, file in sorted(self._files.values(), key=lambda pair: pair[0])
            for place in range(len(file.chunks))
        }

    in_memory = True

    def hold(self) -> FakeSnapshot:
        return self

    def search_ahead(self, vectors: Vectors, terms: Sequence[tuple[str, ...]], k: int) -> None:
        pass

    def statistics(self) -> Statistics:
        records = self.files()
        n_chunks = sum(record.n_chunks for record in records)
        sums = [sum(record.window_lengths[i] for record in records) for i in range(4)]
        return Statistics(n_chunks, {k: total / max(n_chunks, 1) for k, total in zip((0, 1, 4, 12), sums, strict=True)})

    def files(self) -> list[FileRecord]:
        return [file.record for _, file in self._files.values()]

    def heads(self, documents: Sequence[int]) -> dict[int, FileRecord]:
        return {number: file.record for number, file in self._files.values() if number in set(documents)}

    def document_vectors(self) -> tuple[Keys, Vectors]:
        held = sorted(
            ((n, file.document_vector) for n, file in self._files.values() if file.document_vector is not None),
            key=lambda pair: pair[0],
        )
        numbers = np.array([number for number, _ in held], np.int64)
        return numbers, np.array([vector for _, vector in held], np.float32).reshape(-1, self._dimension)

    def nearest(self, vector: Vectors, k: int, paths: Sequence[str] | None) -> tuple[Keys, NDArray[np.float64]]:
        rows = self._among(paths)
        cosines = {key: float(np.dot(file.vectors[place], np.ravel(vector))) for key, (file, place) in rows.items()}
        best = sorted(cosines, key=lambda key: (-cosines[key], key))[:k]
        return np.array(best, np.int64), np.array([cosines[key] for key in best], np.float64)

    def matching(self, terms: Sequence[str], k: int, paths: Sequence[str] | None) -> Keys:
        counts = {key: Counter(file.terms[place].split()) for key, (file, place) in self._rows.items()}
        mean = sum(c.total() for c in counts.values()) / max(len(counts), 1)
        scores = {}
        for key in self._among(paths):
            length = 1.2 * (0.25 + 0.75 * counts[key].total() / max(mean, 1e-9))
            held = [term for term in set(terms) if term in counts[key]]
            if held:
                rarity = {t: 1 + sum(t in c for c in counts.values()) for t in held}
                scores[key] = sum(
                    math.log(1 + len(counts) / rarity[t]) * counts[key][t] / (counts[key][t] + length) for t in held
                )
        return np.array(sorted(scores, key=lambda key: (-scores[key], key))[:k], np.int64)

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        return [sum(term in file.terms[place].split() for file, place in self._rows.values()) for term in terms]

    def evidence(self, keys: Sequence[int] | Keys) -> EvidenceRows:
        found = [(int(key), *self._rows[int(key)]) for key in sorted(set(keys)) if int(key) in self._rows]
        chunks = [file.chunks[place] for _, file, place in found]
        return EvidenceRows(
            keys=np.array([key for key, _, _ in found], np.int64),
            chars=np.array([len(chunk.text) for chunk in chunks], np.int64),
            start_chars=np.array([chunk.start_char for chunk in chunks], np.int64),
            blocks=np.array([chunk.block for chunk in chunks], np.int64),
            terms=TermTexts([file.terms[place] for _, file, place in found]),
            row_terms=TermTexts([" ".join(chunk.row_terms or ()) for chunk in chunks]),
            is_row=np.array([chunk.row_terms is not None for chunk in chunks], dtype=np.bool_),
            vectors=np.array([file.vectors[place] for _, file, place in found], np.float32).reshape(
                -1, self._dimension
            ),
        )

    def chunks(self, keys: Sequence[int]) -> list[StoredChunk]:
        rows = {int(key): self._rows[int(key)] for key in sorted(set(keys)) if int(key) in self._rows}
        return [StoredChunk(key, file.record.path, file.chunks[place]) for key, (file, place) in rows.items()]

    def _among(self, paths: Sequence[str] | None) -> dict[int, tuple[IndexedFile, int]]:
        wanted = None if paths is None else set(paths)
        return {key: row for key, row in self._rows.items() if wanted is None or row[0].record.path in wanted}


class FakeStore:
    """Holds the files of a `dimension`; the lock is only remembered."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._files: dict[str, tuple[int, IndexedFile]] = {}

    def snapshot(self) -> FakeSnapshot:
        return FakeSnapshot(self._files, self._dimension)

    @contextmanager
    def lock(self) -> Iterator[None]:
        yield

    def replace(self, files: Sequence[IndexedFile], removed: Sequence[str]) -> None:
        if len({file.record.path for file in files}) < len(files):
            raise ValueError("a file is given twice")
        for file in files:
            norms = np.linalg.norm(np.reshape(file.vectors, (-1, self._dimension)), axis=1)
            if not np.all(np.abs(norms - 1) < 1e-3) or not len(norms) == len(file.chunks) == file.record.n_chunks:
                raise ValueError(f"{file.record.path}: vectors must be finite and of unit length, one a chunk")
        following = 1 + max((number for number, _ in self._files.values()), default=-1)
        after = {path: held for path, held in self._files.items() if path not in set(removed)}
        for file in files:
            if file.record.path in self._files:
                number = self._files[file.record.path][0]
            else:
                number, following = following, following + 1
            after[file.record.path] = (number, file)
        self._files = after

    def touch(self, records: Sequence[FileRecord]) -> None:
        if any(r.path not in self._files or self._files[r.path][1].record.n_chunks != r.n_chunks for r in records):
            raise ValueError("no such file with so many chunks in the index")
        after = dict(self._files)
        for record in records:
            number, file = after[record.path]
            after[record.path] = (
                number,
                replace(file, record=record),
            )
        self._files = after

    def vectors(self, text_hashes: Sequence[str]) -> dict[str, Vectors]:
        held = {h: v for _, file in self._files.values() for h, v in zip(file.text_hashes, file.vectors, strict=True)}
        return {text_hash: held[text_hash] for text_hash in text_hashes if text_hash in held}

    def maintain(self) -> None:
        pass
