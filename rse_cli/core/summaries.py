"""A document's summary: the few chunks that are most like the whole, taken as they are, so that none is invented."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.headers import HEADING_CHARS, SEPARATOR
from rse_cli.core.lexical import Floats
from rse_cli.core.models import Chunk

SUMMARY_CHUNKS = 3
SUMMARY_CHARS = 400  # three chunks of average length, about what fits beside a title
# The lead's bonus, in cosine. In the sample documents the chunk nearest the mean lies 0.14 above the median one: so a
# fair chunk of the lead wins, and a poor one doesn't.
LEAD_BONUS = 0.1
LEAD_CHUNKS = 5
LEAST_LETTERS = 20
LEAST_LETTER_SHARE = 0.5  # of the characters but white space; prose has 0.9, code 0.6, figures and rules less
JOINT = " … "

_MARKUP = re.compile(r"^\s*(?:(?:[#>*+\-|•]+|\.\.)\s+)*(?:[\s#>*+\-=~_|•.:]+$|(?:```|~~~).*$)?")
_MARKUP_AT_END = re.compile(r"[\s#=~_|]+$")


def choose_summary(chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> tuple[int, ...]:
    """Return the chunks that stand for a document.

    Parameters
    ----------
    chunks : sequence of Chunk
        All chunks of the document, in order.
    vectors : ndarray of shape (n_chunks, dimension)
        Their unit vectors.

    Returns
    -------
    tuple of int
        Positions of one to three chunks, ascending, whose texts without headings hold together at most 400 characters.
        Where no eligible chunk is that short, the best one alone.

    Raises
    ------
    ValueError
        If there is no chunk.

    Notes
    -----
    Chunks are taken by ``cos(v_u, m) + 0.1·exp(−u/5)``, greatest first, ties by position, where ``m`` is the mean of
    all vectors weighted by characters and ``u`` the chunk's position: the lead says what a document is about more often
    than its middle. Left out are rows of tables, chunks that are only a heading, chunks with fewer than 20 letters or
    with letters in less than half of their characters, and repeats; if nothing else is left, they are taken after all.

    Examples
    --------
    >>> texts = ["# Pumps\\n", "A pump lifts water from a well. ", "The weather was fine on that day."]
    >>> chunks, at = [], 0
    >>> for ord_, text in enumerate(texts):
    ...     chunks.append(Chunk(ord_, at, at + len(text), text, header="Pumps"))
    ...     at += len(text)
    >>> choose_summary(chunks, np.array([[1, 0], [0.8, 0.6], [0.6, 0.8]], np.float32))
    (1, 2)
    """
    if not chunks:
        raise ValueError("a document without chunks has no summary")
    bodies = [_read_body(chunk) for chunk in chunks]
    scores = _score_chunks(chunks, vectors)
    order = np.argsort(-scores, kind="stable").tolist()
    eligible = [at for at in order if chunks[at].row_terms is None and _says_something(bodies[at])]
    eligible = eligible or [at for at in order if bodies[at]] or order
    chosen: list[int] = []
    left = SUMMARY_CHARS
    for at in eligible:
        body = bodies[at]
        if len(body) <= left and body not in [bodies[other] for other in chosen]:
            chosen.append(at)
            left -= len(body) + len(JOINT)
        if len(chosen) == SUMMARY_CHUNKS:
            break
    return tuple(sorted(chunks[at].ord for at in chosen or eligible[:1]))


def _score_chunks(chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> Floats:
    lengths = np.array([len(chunk.text) for chunk in chunks], dtype=np.float32)
    mean = np.einsum("ij,i->j", vectors, lengths)
    mean = mean / np.maximum(np.sqrt(mean @ mean), np.float32(1e-12))
    scores: Floats = np.einsum("ij,j->i", vectors, mean).astype(np.float64)
    return scores + LEAD_BONUS * np.exp(-np.arange(len(chunks)) / LEAD_CHUNKS)


def _read_body(chunk: Chunk) -> str:
    """Return the chunk's text on one line, without its headings and the marks that lines begin with."""
    headings = {" ".join(part.split()) for part in (chunk.section + SEPARATOR + chunk.header).split(SEPARATOR)} - {""}
    lines = []
    for line in chunk.text.splitlines():
        bare = " ".join(_MARKUP_AT_END.sub("", _MARKUP.sub("", line)).split())
        if bare and not any(
            bare == heading or (len(heading) >= HEADING_CHARS and bare.startswith(heading)) for heading in headings
        ):
            lines.append(bare)
    return " ".join(lines)


def _says_something(body: str) -> bool:
    letters = sum(character.isalpha() for character in body)
    return letters >= LEAST_LETTERS and letters >= LEAST_LETTER_SHARE * len("".join(body.split()))


def compose_summary(chunks: Sequence[Chunk], ords: Sequence[int]) -> str:
    """Return chosen chunks as a summary on one line.

    Parameters
    ----------
    chunks : sequence of Chunk
        All chunks of the document, in order.
    ords : sequence of int
        From `choose_summary`.

    Returns
    -------
    str
        Headings and the marks of lists and quotes left out; ``…`` stands where chunks between are left out, and at the
        end where a single long chunk is cut at 400 characters.

    Examples
    --------
    >>> chunks = [Chunk(0, 0, 13, "- Oil\\n  it.  "), Chunk(1, 13, 17, "Run."), Chunk(2, 17, 21, "Rest")]
    >>> compose_summary(chunks, (0, 1)), compose_summary(chunks, (0, 2))
    ('Oil it. Run.', 'Oil it. … Rest')
    """
    line = ""
    previous = None
    for ord_ in ords:
        chunk = chunks[ord_ - chunks[0].ord]
        body = _read_body(chunk) or " ".join(chunk.text.split())
        joint = "" if previous is None else " " if ord_ == previous + 1 else JOINT
        line, previous = line + joint + body, ord_
    if len(line) <= SUMMARY_CHARS:
        return line
    cut = line.rfind(" ", SUMMARY_CHARS // 2, SUMMARY_CHARS)
    return line[: cut if cut > 0 else SUMMARY_CHARS - 1] + "…"


def pool_summary(vectors: NDArray[np.float32], chars: NDArray[np.int64], ords: Sequence[int]) -> NDArray[np.float32]:
    """Return the summary's vector: the mean of its chunks' vectors weighted by characters, of unit length.

    Parameters
    ----------
    vectors : ndarray of shape (n_chunks, dimension)
        Unit vectors of all chunks of the document.
    chars : ndarray of shape (n_chunks,)
        Their characters.
    ords : sequence of int
        From `choose_summary`.

    Returns
    -------
    ndarray of shape (dimension,)
        Where the chunks cancel out, the first one's vector: the store refuses vectors of zeros.

    Examples
    --------
    >>> pool_summary(np.array([[1, 0], [0, 1]], np.float32), np.array([30, 40]), (0, 1)).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    at = np.asarray(ords, dtype=np.int64)
    total = np.einsum("ij,i->j", vectors[at], chars[at].astype(np.float32))
    length = float(np.sqrt(total @ total))
    pooled: NDArray[np.float32] = (total / length if length > 1e-6 else vectors[at[0]]).astype(np.float32)
    return pooled
