"""Sentences around hits: the method `sentence-window`, and passages whose ends are moved to those of the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rse_cli.core.chunking import MIN_CHARS, Span, find_sentence_ends
from rse_cli.core.hits import Hit
from rse_cli.core.models import Chunk, Passage
from rse_cli.dataclass import dataclass

SETTLE_CHARS = 300  # an end moves at most by a chunk's usual ceiling, so that a wall of text isn't taken whole

_PARAGRAPH_END = re.compile(r"(?>\r\n?|\n)[^\S\r\n]*(?>\r\n?|\n)\s*")


def split_sentences(text: str, wrapped: bool = False) -> list[Span]:
    """Return the spans of the sentences, by the rule that ends chunks; each takes the white space after it.

    Parameters
    ----------
    text : str
        Any text.
    wrapped : bool
        Whether single line ends may be only the wrapping of prose.

    Returns
    -------
    list of (int, int)
        Half-open, in order; together they tile the text. White space at its start goes to the first sentence.

    Examples
    --------
    >>> split_sentences(" One. Two? Three")
    [(0, 6), (6, 11), (11, 16)]
    """
    spans: list[Span] = []
    at = 0
    for stop in [*find_sentence_ends(text, 0, len(text), wrapped), len(text)]:
        if stop > at and (stop == len(text) or not text[at:stop].isspace()):
            spans.append((at, stop))
            at = stop
    return spans


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Adjacent chunks of one document with their text; offsets in `sentences` and `bounds` are the document's."""

    chunks: Sequence[Chunk]
    text: str
    bounds: list[int]
    sentences: list[int]

    @property
    def start_char(self) -> int:
        return self.bounds[0]

    def cover(self, start_char: int, end_char: int) -> tuple[int, int]:
        """The chunks, half-open, that a span touches."""
        first = bisect_right(self.bounds, start_char) - 1
        last = bisect_left(self.bounds, end_char)
        return self.chunks[0].ord + first, self.chunks[0].ord + last

    def number_sentences(self, ord_: int) -> tuple[int, int]:
        """The sentences, half-open, that a chunk touches."""
        at = ord_ - self.chunks[0].ord
        return bisect_right(self.sentences, self.bounds[at]) - 1, bisect_left(self.sentences, self.bounds[at + 1])


def _find_stretch(chunks: Sequence[Chunk], ord_: int) -> _Stretch:
    """Return the stretch of adjacent chunks around chunk `ord_`."""
    here = bisect_left(chunks, ord_, key=lambda chunk: chunk.ord)
    if here == len(chunks) or chunks[here].ord != ord_:
        raise ValueError(f"chunk {ord_} is not among the chunks given")
    first = last = here
    while first > 0 and chunks[first - 1].ord == chunks[first].ord - 1:
        first -= 1
    while last + 1 < len(chunks) and chunks[last + 1].ord == chunks[last].ord + 1:
        last += 1
    held = chunks[first : last + 1]
    text = "".join(chunk.text for chunk in held)
    start = held[0].start_char
    ends = [end for _, end in split_sentences(text, _is_wrapped(held))]
    bounds = [start, *(chunk.end_char for chunk in held)]
    return _Stretch(held, text, bounds, [start, *(start + end for end in ends)])


def _find_stretches(places: Sequence[tuple[int, int]], chunks: Mapping[int, Sequence[Chunk]]) -> list[_Stretch]:
    """Return the stretch around each document and chunk; one with several of them is read once."""
    known: dict[tuple[int, int], _Stretch] = {}
    for document, ord_ in places:
        if (document, ord_) not in known:
            stretch = _find_stretch(chunks[document], ord_)
            known.update({(document, chunk.ord): stretch for chunk in stretch.chunks})
    return [known[place] for place in places]


def _is_wrapped(chunks: Sequence[Chunk]) -> bool:
    """Whether chunks go on over a line end where a chunk would have ended if its line ends were ends of sentences."""
    for chunk in chunks:
        text = chunk.text
        joined = set(find_sentence_ends(text, 0, len(text))) - set(find_sentence_ends(text, 0, len(text), True))
        if any(len(text[:end].rstrip()) >= MIN_CHARS for end in joined):
            return True
    return False


def widen_hits(
    hits: Sequence[Hit], chunks: Mapping[int, Sequence[Chunk]], window: int, query: int = 0
) -> list[Passage]:
    """Return hits with the sentences around them: the method `sentence-window`.

    Parameters
    ----------
    hits : sequence of Hit
        Best first.
    chunks : mapping of int to sequence of Chunk
        Per document, the hits with the chunks around them, by position; enough to hold `window` sentences on either
        side, as passages end with the stretch of adjacent chunks that is given.
    window : int
        Sentences before a hit's first and after its last, at least 0.
    query : int
        Position of the query.

    Returns
    -------
    list of Passage
        By score, best first, ties in the order of `hits`; passages that overlap or are equal are one, with the best
        score and the hit that has it. No two overlap; they may touch.

    Raises
    ------
    ValueError
        If a hit is not among `chunks`.

    Examples
    --------
    >>> chunks = [Chunk(0, 0, 10, "One. Two. "), Chunk(1, 10, 22, "Three. Four.")]
    >>> [(p.start_char, p.end_char, p.hit) for p in widen_hits([Hit(7, 1, 0.8)], {7: chunks}, 1)]
    [(5, 22, 1)]
    """
    stretches = _find_stretches([(hit.document, hit.ord) for hit in hits], chunks)
    widened = zip(hits, stretches, strict=True)
    return join_overlaps([_widen_hit(hit, stretch, window, query) for hit, stretch in widened])


def _widen_hit(hit: Hit, stretch: _Stretch, window: int, query: int) -> Passage:
    first, last = stretch.number_sentences(hit.ord)
    start = stretch.sentences[max(first - window, 0)]
    end = stretch.sentences[min(last + window, len(stretch.sentences) - 1)]
    return Passage(hit.document, *stretch.cover(start, end), start, end, hit.score, (query,), hit.ord)


def find_narrow_hits(
    hits: Sequence[Hit], chunks: Mapping[int, Sequence[Chunk]], window: int, n_chunks: Mapping[int, int]
) -> list[Hit]:
    """Return the hits around which too few chunks are given: their outermost sentences may go on beyond these.

    Parameters
    ----------
    hits, chunks, window
        As for `widen_hits`.
    n_chunks : mapping of int to int
        Per document, how many chunks it has.

    Examples
    --------
    >>> chunks = {7: [Chunk(1, 10, 19, "and two. "), Chunk(2, 19, 25, "Three.")]}
    >>> find_narrow_hits([Hit(7, 2, 0.8)], chunks, 0, {7: 3}), find_narrow_hits([Hit(7, 2, 0.8)], chunks, 1, {7: 3})
    ([], [Hit(document=7, ord=2, score=0.8)])
    """
    stretches = _find_stretches([(hit.document, hit.ord) for hit in hits], chunks)
    narrow = []
    for hit, stretch in zip(hits, stretches, strict=True):
        first, last = stretch.number_sentences(hit.ord)
        cut_before = first - window < 1 and stretch.chunks[0].ord > 0
        # That the stretch ends with a sentence, only the chunk after it can tell.
        cut_after = last + window > len(stretch.sentences) - 2 and stretch.chunks[-1].ord + 1 < n_chunks[hit.document]
        if cut_before or cut_after:
            narrow.append(hit)
    return narrow


def join_overlaps(passages: Sequence[Passage]) -> list[Passage]:
    """Join passages of one document that share characters.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.

    Returns
    -------
    list of Passage
        By score, best first, ties in the order given. A joined passage has the best score with its hit, and the
        queries of all.

    Examples
    --------
    >>> joined = join_overlaps([Passage(0, 0, 2, 0, 9, 0.5, hit=0), Passage(0, 1, 3, 5, 12, 0.9, hit=2)])
    >>> [(p.start_chunk, p.end_chunk, p.start_char, p.end_char, p.score, p.hit) for p in joined]
    [(0, 3, 0, 12, 0.9, 2)]
    """
    kept: list[tuple[int, Passage]] = []
    for rank, one in sorted(enumerate(passages), key=lambda item: (item[1].document, item[1].start_char)):
        if kept and kept[-1][1].document == one.document and one.start_char < kept[-1][1].end_char:
            before_rank, before = kept[-1]
            first, best = min((before_rank, before), (rank, one), key=lambda item: (-item[1].score, item[0]))
            kept[-1] = (
                first,
                replace(
                    best,
                    start_chunk=before.start_chunk,
                    end_chunk=max(before.end_chunk, one.end_chunk),
                    start_char=before.start_char,
                    end_char=max(before.end_char, one.end_char),
                    queries=tuple(sorted({*before.queries, *one.queries})),
                ),
            )
        else:
            kept.append((rank, one))
    return [passage for _, passage in sorted(kept, key=lambda item: (-item[1].score, item[0]))]


def settle_ends(passages: Sequence[Passage], chunks: Mapping[int, Sequence[Chunk]]) -> list[Passage]:
    """Move the ends of passages outwards to where paragraphs end, or else sentences.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.
    chunks : mapping of int to sequence of Chunk
        Per document, the passages' chunks with those around them, by position.

    Returns
    -------
    list of Passage
        In the order given. A start moves back to the start of its paragraph if that is at most 300 characters away,
        else to that of its sentence under the same limit, else it stays; an end likewise moves on. Nothing that was
        inside is lost; passages may come to overlap (`join_overlaps`).

    Raises
    ------
    ValueError
        If a passage's chunk is not among `chunks`.

    Examples
    --------
    >>> chunks = {0: [Chunk(0, 0, 5, "Top\\n\\n"), Chunk(1, 5, 13, "A is b, "), Chunk(2, 13, 22, "c and d.\\n")]}
    >>> [(p.start_char, p.end_char, p.start_chunk) for p in settle_ends([Passage(0, 2, 3, 13, 22, 1.0)], chunks)]
    [(5, 22, 1)]
    """
    settled = []
    stretches = _find_stretches([(passage.document, passage.start_chunk) for passage in passages], chunks)
    for passage, stretch in zip(passages, stretches, strict=True):
        offset = stretch.start_char
        inner = [offset + match.end() for match in _PARAGRAPH_END.finditer(stretch.text)]
        paragraphs = sorted({offset, *inner, offset + len(stretch.text)})
        start, end = passage.start_char, passage.end_char
        for ends in (stretch.sentences, paragraphs):  # the later one wins where it is near enough
            before = ends[bisect_right(ends, passage.start_char) - 1]
            after = ends[min(bisect_left(ends, passage.end_char), len(ends) - 1)]
            start = before if passage.start_char - before <= SETTLE_CHARS else start
            end = after if after - passage.end_char <= SETTLE_CHARS else end
        start_chunk, end_chunk = stretch.cover(start, end)
        settled.append(replace(passage, start_chunk=start_chunk, end_chunk=end_chunk, start_char=start, end_char=end))
    return settled
