"""Parents of hits: their section or a part of it. The methods `parent` and `window-parent`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rse_cli.core.chunking import Span
from rse_cli.core.hits import Hit
from rse_cli.core.models import Chunk, Passage


def build_parents(chunks: Sequence[Chunk], parent_chars: int) -> list[Span]:
    """Return the parents of a document's chunks: its sections, long ones cut into runs at ends of paragraphs.

    Parameters
    ----------
    chunks : sequence of Chunk
        All chunks of the document, in order.
    parent_chars : int
        Most characters of a parent, at least 1; a longer chunk is a parent by itself.

    Returns
    -------
    list of (int, int)
        Half-open spans of chunks that tile the document. A section above `parent_chars` is cut after the last chunk
        within reach that ends with a blank line; without one, after the last that ends with a line end; without one,
        after the last.

    Examples
    --------
    >>> texts = ["One. ", "Two.\\n\\n", "Three. ", "Four."]
    >>> starts = [0, 5, 11, 18]
    >>> chunks = [Chunk(i, at, at + len(text), text) for i, (at, text) in enumerate(zip(starts, texts))]
    >>> build_parents(chunks, 20), build_parents(chunks, 100)
    ([(0, 2), (2, 4)], [(0, 4)])
    """
    parents: list[Span] = []
    for _, group in groupby(chunks, key=lambda chunk: chunk.section):
        section = list(group)
        at = 0
        while at < len(section):
            stop = _find_parent_end(section, at, parent_chars)
            parents.append((section[at].ord, section[stop - 1].ord + 1))
            at = stop
    return parents


def _find_parent_end(section: Sequence[Chunk], at: int, parent_chars: int) -> int:
    """Return where, within reach of chunk `at`, the section is best cut."""
    reach = at + 1
    while reach < len(section) and section[reach].end_char - section[at].start_char <= parent_chars:
        reach += 1
    if reach == len(section):
        return reach
    # The last of the best: a blank line (2 line ends) before a line end before none.
    return max(range(at + 1, reach + 1), key=lambda stop: (min(_count_line_ends(section[stop - 1].text), 2), stop))


def _count_line_ends(text: str) -> int:
    """Count the line ends in the white space at the end of `text`."""
    tail = text[len(text.rstrip()) :]
    return tail.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def vote_parents(
    hits: Sequence[Hit], chunks: Mapping[int, Sequence[Chunk]], parent_chars: int, query: int = 0
) -> list[Passage]:
    """Return the parents of hits, each once with the score of its best child: the method `parent`.

    Parameters
    ----------
    hits : sequence of Hit
        Best first.
    chunks : mapping of int to sequence of Chunk
        Per document of a hit, all its chunks, in order.
    parent_chars : int
        As in `build_parents`.
    query : int
        Position of the query.

    Returns
    -------
    list of Passage
        By score, best first, ties in the order of `hits`; `hit` is the best child.

    Raises
    ------
    ValueError
        If a hit is not among `chunks`.

    Examples
    --------
    >>> chunks = {3: [Chunk(0, 0, 4, "One."), Chunk(1, 4, 8, "Two."), Chunk(2, 8, 12, "Six.", section="B")]}
    >>> found = vote_parents([Hit(3, 2, 0.9), Hit(3, 1, 0.8), Hit(3, 0, 0.7)], chunks, 4000)
    >>> [(p.start_chunk, p.end_chunk, p.score, p.hit) for p in found]
    [(2, 3, 0.9, 2), (0, 2, 0.8, 1)]
    """
    parents = {
        (document, ord_): span
        for document in {hit.document for hit in hits}
        for span in build_parents(chunks[document], parent_chars)
        for ord_ in range(*span)
    }
    best: dict[tuple[int, Span], Passage] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        span = parents.get((hit.document, hit.ord))
        if span is None:
            raise ValueError(f"chunk {hit.ord} is not among the chunks given")
        if (hit.document, span) not in best:
            held = chunks[hit.document]
            offset = held[0].ord
            start_char, end_char = held[span[0] - offset].start_char, held[span[1] - 1 - offset].end_char
            best[hit.document, span] = Passage(hit.document, *span, start_char, end_char, hit.score, (query,), hit.ord)
    return list(best.values())


def mix_window_parent(windows: Sequence[Passage], parents: Sequence[Passage], k: int) -> list[Passage]:
    """Return k passages, half windows and half parents, none inside another: the method `window-parent`.

    Parameters
    ----------
    windows : sequence of Passage
        From `widen_hits`, best first.
    parents : sequence of Passage
        From `vote_parents`, best first, scored on the same scale.
    k : int
        Most passages, at least 0. The windows get the odd one, so that k = 1 is a window.

    Returns
    -------
    list of Passage
        By score, best first, windows first on a tie. A passage contained in another of its document is dropped; the
        best of those left over, windows or parents, take its place while there are any.

    Examples
    --------
    >>> windows = [Passage(0, 0, 1, 0, 5, 0.9), Passage(1, 4, 6, 40, 60, 0.7)]
    >>> parents = [Passage(0, 0, 3, 0, 30, 0.9), Passage(1, 0, 9, 0, 90, 0.7)]
    >>> [(p.document, p.end_char) for p in mix_window_parent(windows, parents, 2)]
    [(0, 30), (1, 60)]
    """
    n_windows, n_parents = -(-k // 2), k // 2
    spare = sorted([*windows[n_windows:], *parents[n_parents:]], key=lambda passage: -passage.score)
    kept: list[Passage] = []
    for passage in [*windows[:n_windows], *parents[:n_parents], *spare]:
        if len(kept) == k:
            break
        if not any(_contains(other, passage) for other in kept):
            kept = [other for other in kept if not _contains(passage, other)]
            kept.append(passage)
    return sorted(kept, key=lambda passage: -passage.score)


def _contains(outer: Passage, inner: Passage) -> bool:
    return (
        outer.document == inner.document and outer.start_char <= inner.start_char and inner.end_char <= outer.end_char
    )
