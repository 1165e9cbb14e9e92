"""How the words of a query count for one chunk, as sums that a reader can check. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rse_cli.core.lexical import B
from rse_cli.core.relevance import Candidates, QueryTerms
from rse_cli.core.window_words import WindowWords, read_window, weigh_pairs, weigh_terms
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.retrieval import Retrieval

WIDTHS = {"f0": 0, "f4": 4, "f12": 12, "p1": 1}
"""Chunks on either side that a piece of evidence looks at."""


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """The words of one query against one chunk: row `row` of the candidates."""

    words: QueryTerms
    candidates: Candidates
    row: int
    retrieval: Retrieval

    def explain_weights(self) -> Iterator[str]:
        """Yield what the words weigh, and which of them the document's or the table's own fields hold."""
        terms, n_chunks = self.words.terms, self.retrieval.statistics.n_chunks
        if not terms:
            yield "The index holds no word of the query."
            return
        weights = weigh_terms(self.words, n_chunks)
        listed = ", ".join(f"{term} {weight:.4f}" for term, weight in zip(terms, weights.tolist(), strict=True))
        yield f"Words weigh the more the rarer they are: {listed}; together {float(weights.sum()):.4f}."
        for field, name in (
            (self.candidates.fields, "The document's name or beginning"),
            (self.candidates.row_fields, "What stands over its table"),
        ):
            held = [term for term, found in zip(terms, field[self.row].tolist(), strict=True) if found]
            if held:
                yield f"{name} holds {', '.join(held)}, which counts once more in f0, f4 and f12."

    def compose_sum(self, name: str) -> tuple[str, str]:
        """Return the sum that a piece of evidence is, and where the number in its divisors comes from."""
        if name not in WIDTHS or not self.words.terms:
            return "", ""
        width = WIDTHS[name]
        mean = self.retrieval.statistics.mean_lengths[width]
        found = read_window(self.candidates, self.row, width, mean, proximity=name == "p1")
        top, total = self._compose_pairs(found) if name == "p1" else self._compose_terms(found)
        if not top:
            return "", ""
        norm = (
            f"{found.norm:.4f} = {found.k1:g}·({1 - B:g} + {B:g}·{found.length}/{max(found.mean_length, 1.0):.4f}), "
            f"by the {found.length} words there and the mean of the index"
        )
        return f"({' + '.join(top)}) / {total:.4f} = ", f"; {norm}"

    def _compose_terms(self, found: WindowWords) -> tuple[Sequence[str], float]:
        weights = weigh_terms(self.words, self.retrieval.statistics.n_chunks)
        top = [
            f"{weight:.4f}·{count}/({count} + {found.norm:.4f})"
            for weight, count in zip(weights.tolist(), found.occurrences.tolist(), strict=True)
            if count
        ]
        return top, float(weights.sum())

    def _compose_pairs(self, found: WindowWords) -> tuple[Sequence[str], float]:
        pairs = weigh_pairs(self.words, self.retrieval.statistics.n_chunks)
        counts = found.occurrences.tolist()
        top = [
            f"{weight:.4f}·√({counts[a]}/({counts[a]} + {found.norm:.4f})·{counts[b]}/({counts[b]} + {found.norm:.4f}))"
            for a, b, weight in pairs
            if counts[a] and counts[b]
        ]
        return top, math.fsum(weight for _, _, weight in pairs)
