"""Chosen passages to better ones, step by step: grown, completed, joined, within limits.

Each step is a pure function from passages to passages and keeps the order that it was given. `chunks` maps (document,
ord) to the chunks that were fetched; a missing key is the end of the document, or of what was fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rse_cli.core.models import Chunk, Passage

Chunks = Mapping[tuple[int, int], Chunk]
Passages = tuple[Passage, ...]

# Below about three sentences a passage is hard to read alone; above 850 characters it is no short one any more.
SHORT_CHARS = 350
GROWN_CHARS = 850
FAQ_BOOST = 1.2  # a question that matches is the better evidence for its answer; enough to pass a near tie, no more


def expand_short(
    passages: Sequence[Passage], chunks: Chunks, least: int = SHORT_CHARS, most: int = GROWN_CHARS
) -> Passages:
    """Grow short passages by one chunk before and one after in turn until they reach `least` characters.

    Only whole chunks are added, and none is taken away, so the hit stays inside. A side where the document ends, or
    where the next chunk would lead above `most`, is left, and the other goes on alone.

    Parameters
    ----------
    passages : sequence of Passage
        Those of at least `least` characters stay as they are.
    chunks : mapping of (int, int) to Chunk
        The chunks around them.
    least, most : int
        Characters, ``0 < least <= most``.

    Raises
    ------
    ValueError
        If `most` is below `least`.

    Examples
    --------
    >>> chunks = {(0, at): Chunk(at, 9 * at, 9 * at + 9, "A chunk. ") for at in range(5)}
    >>> [grown] = expand_short([Passage(0, 3, 4, 27, 36, 1.0)], chunks, least=25, most=40)
    >>> grown.start_chunk, grown.end_chunk
    (2, 5)
    """
    if not 0 < least <= most:
        raise ValueError(f"a passage can't grow from {least} to at most {most} characters")
    return tuple(_grow(passage, chunks, least, most) for passage in passages)


def _grow(passage: Passage, chunks: Chunks, least: int, most: int) -> Passage:
    goes_back, stuck = True, 0
    while passage.end_char - passage.start_char < least and stuck < 2:
        grown = _add_before(passage, chunks) if goes_back else _add_after(passage, chunks)
        fits = grown is not None and grown.end_char - grown.start_char <= most
        stuck = 0 if fits else stuck + 1
        passage = grown if grown is not None and fits else passage
        goes_back = not goes_back
    return passage


def _add_before(passage: Passage, chunks: Chunks) -> Passage | None:
    """Return the passage with the rest of its first chunk, or else the chunk before it."""
    for ord_ in (passage.start_chunk, passage.start_chunk - 1):
        chunk = chunks.get((passage.document, ord_))
        if chunk and chunk.start_char < passage.start_char <= chunk.end_char:
            return replace(passage, start_chunk=ord_, start_char=chunk.start_char)
    return None


def _add_after(passage: Passage, chunks: Chunks) -> Passage | None:
    """Return the passage with the rest of its last chunk, or else the chunk after it."""
    for ord_ in (passage.end_chunk - 1, passage.end_chunk):
        chunk = chunks.get((passage.document, ord_))
        if chunk and chunk.start_char <= passage.end_char < chunk.end_char:
            return replace(passage, end_chunk=ord_ + 1, end_char=chunk.end_char)
    return None


def complete_faq(passages: Sequence[Passage], chunks: Chunks, faq_boost: float = FAQ_BOOST) -> Passages:
    r"""Complete passages that hold a question with its answer, and raise their scores.

    What a question is and where its answer ends (at most 2,000 characters on) say `find_questions` and
    `find_answer_end`. A passage that has question and answer already is raised too: it is no worse than one that had to
    be completed.

    Parameters
    ----------
    passages : sequence of Passage
        A question counts where a passage holds it whole.
    chunks : mapping of (int, int) to Chunk
        The chunks around them, as far as `questions.ANSWER_CHARS` after their ends.
    faq_boost : float
        Factor of a raised score, at least 1. No score rises above the best of those given.

    Raises
    ------
    ValueError
        If `faq_boost` is below 1.

    Examples
    --------
    >>> chunks = {(0, 0): Chunk(0, 0, 12, "Q: Is it on?"), (0, 1): Chunk(1, 12, 26, "\nA: Yes, it is")}
    >>> [done, _] = complete_faq([Passage(0, 0, 1, 0, 12, 1.0), Passage(1, 0, 1, 0, 9, 5.0)], chunks)
    >>> done.end_char, done.score
    (26, 1.2)
    """
    if not faq_boost >= 1:
        raise ValueError(f"the boost of a question is at least 1, not {faq_boost}")
    best = max((passage.score for passage in passages), default=0.0)
    return tuple(_complete(passage, chunks, faq_boost, best) for passage in passages)


def _complete(passage: Passage, chunks: Chunks, faq_boost: float, best: float) -> Passage:
    end = _find_end_of_answers(passage, chunks)
    if end is None:
        return passage
    score = min(best, max(passage.score, passage.score * faq_boost))
    return replace(_end_at(passage, max(end, passage.end_char), chunks), score=score)


def _find_end_of_answers(passage: Passage, chunks: Chunks) -> int | None:
    """Return where the last answer to a question in the passage ends, None without a question that has one."""
    from rse_cli.core.questions import ANSWER_CHARS, find_answer_end, find_questions

    around = _gather_chunks(passage, chunks, ANSWER_CHARS)
    questions = find_questions(around)
    ends = []
    for question in questions:
        if passage.start_char <= question.start and question.end <= passage.end_char:
            end = find_answer_end(question, questions, around)
            ends += [end] if end > question.end else []
    return max(ends, default=None)


def _gather_chunks(passage: Passage, chunks: Chunks, reach: int) -> list[Chunk]:
    """Return the passage's chunks with the one before, where its first line may begin, and those of an answer after."""
    before = chunks.get((passage.document, passage.start_chunk - 1))
    around = [before] if before else []
    ord_ = passage.start_chunk
    while (chunk := chunks.get((passage.document, ord_))) and chunk.start_char <= passage.end_char + reach:
        around.append(chunk)
        ord_ += 1
    return around if ord_ >= passage.end_chunk else []


def _end_at(passage: Passage, end_char: int, chunks: Chunks) -> Passage:
    """Return the passage with another end; its last chunk is the one that holds its last character."""
    ord_ = passage.start_chunk
    while chunks[passage.document, ord_].end_char < end_char:
        ord_ += 1
    return replace(passage, end_chunk=ord_ + 1, end_char=end_char)


def join_passages(passages: Sequence[Passage]) -> Passages:
    """Join passages that touch or overlap in one document, by offsets.

    The whole answers the queries of all, and has score, hit and place in the order of the best of them, which is the
    first of those with the highest score.

    Examples
    --------
    >>> [joined] = join_passages([Passage(0, 4, 6, 40, 60, 1.0, (0,)), Passage(0, 2, 4, 20, 40, 3.0, (1,), hit=2)])
    >>> joined
    Passage(document=0, start_chunk=2, end_chunk=6, start_char=20, end_char=60, score=3.0, queries=(0, 1), hit=2)
    """
    groups: list[list[int]] = []
    last_end = 0
    for at in sorted(range(len(passages)), key=lambda at: (passages[at].document, passages[at].start_char)):
        passage = passages[at]
        if groups and passages[groups[-1][0]].document == passage.document and passage.start_char <= last_end:
            groups[-1].append(at)
            last_end = max(last_end, passage.end_char)
        else:
            groups.append([at])
            last_end = passage.end_char
    joined = {}
    for group in groups:
        best = min(group, key=lambda at: (-passages[at].score, at))
        joined[best] = _unite(passages[best], [passages[at] for at in group])
    return tuple(joined[at] for at in sorted(joined))


def _unite(best: Passage, members: Sequence[Passage]) -> Passage:
    return replace(
        best,
        start_chunk=min(one.start_chunk for one in members),
        end_chunk=max(one.end_chunk for one in members),
        start_char=min(one.start_char for one in members),
        end_char=max(one.end_char for one in members),
        queries=tuple(sorted({query for one in members for query in one.queries})),
    )


def limit_passages(passages: Sequence[Passage], k: int) -> Passages:
    """Return the first `k` passages in the order given.

    Raises
    ------
    ValueError
        If `k` is negative.

    Examples
    --------
    >>> limit_passages([Passage(0, 0, 1, 0, 9, 1.0), Passage(0, 2, 3, 20, 29, 2.0)], 1)[0].score
    1.0
    """
    if k < 0:
        raise ValueError(f"the limit is at least 0, not {k}")
    return tuple(passages[:k])


def cut_passages(passages: Sequence[Passage], max_chars: int, chunks: Chunks) -> Passages:
    """Keep passages in order until they hold `max_chars` characters together; the last is cut there exactly.

    Parameters
    ----------
    passages : sequence of Passage
        Without overlaps.
    max_chars : int
        The ceiling, at least 0.
    chunks : mapping of (int, int) to Chunk
        With the chunks of the passage that is cut: its `end_chunk` becomes the one that holds its last character. A
        hit that was cut off is None.

    Raises
    ------
    ValueError
        If `max_chars` is negative.
    KeyError
        If a chunk of the passage that is cut is missing.

    Examples
    --------
    >>> chunks = {(0, at): Chunk(at, 9 * at, 9 * at + 9, "A chunk. ") for at in range(5)}
    >>> [cut] = cut_passages([Passage(0, 1, 4, 9, 36, 1.0), Passage(0, 0, 1, 0, 9, 0.5)], 12, chunks)
    >>> cut.end_char, cut.end_chunk
    (21, 3)
    """
    if max_chars < 0:
        raise ValueError(f"the ceiling is at least 0 characters, not {max_chars}")
    kept: list[Passage] = []
    left = max_chars
    for passage in passages:
        length = passage.end_char - passage.start_char
        if length > left:
            return (*kept, _cut(passage, left, chunks)) if left else tuple(kept)
        kept.append(passage)
        left -= length
    return tuple(kept)


def _cut(passage: Passage, length: int, chunks: Chunks) -> Passage:
    cut = _end_at(passage, passage.start_char + length, chunks)
    return replace(cut, hit=None) if cut.hit is not None and cut.hit >= cut.end_chunk else cut
