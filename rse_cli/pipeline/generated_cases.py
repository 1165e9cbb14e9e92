"""Headings turned into cases: a first file of cases where nobody has written one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count, groupby

from rse_cli.core.cases import Case, Expectation
from rse_cli.core.headers import SEPARATOR
from rse_cli.core.models import Chunk
from rse_cli.ports import FileRecord, Snapshot, make_key

LEAST_CHARS, MOST_CHARS = 60, 4_000
"""What a section holds besides its heading: less says nothing, more than the usual ceiling can't be found whole."""

BATCH_CHUNKS = 5_000
"""Chunks read at once: some megabytes."""

_NUMBER = re.compile(r"^(?:\d{1,2}(?:\.\d{1,3})*\.?|[A-Z]\.|§\s*\d+)\s+(?=[^\W\d_])")
_WORD = re.compile(r"[^\W\d_]{3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


def generate_cases(snapshot: Snapshot, most: int | None = None) -> list[Case]:
    """Return a case for each heading with a text under it: it asks for the heading and expects the section.

    Such cases flatter: people seldom ask in the words of a heading. A section is the text up to the next heading. A
    heading that occurs more than once gets the one above it in brackets; what then still does is left out.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    most : int or None
        At most so many, spread evenly over the documents; None for all.

    Returns
    -------
    list of Case
        By path and place, marked as generated.
    """
    found = [made for record, chunks in _read_documents(snapshot) for made in _walk_sections(record, chunks)]
    of_heading = Counter(heading.casefold() for heading, _, _ in found)
    asked = [
        (heading if of_heading[heading.casefold()] == 1 or heading == context else f"{heading} ({context})", place)
        for heading, context, place in found
    ]
    of_query = Counter(query.casefold() for query, _ in asked)
    kept = [(query, place) for query, place in asked if of_query[query.casefold()] == 1]
    if most is not None and len(kept) > most:
        kept = [kept[at * len(kept) // most] for at in range(most)]
    taken: set[str] = set()
    cases = []
    for query, place in kept:
        base = _make_id(place.path, query)
        numbered = (f"{base}-{number}" for number in count(2))
        name = next(one for one in chain([base], numbered) if one not in taken)
        taken.add(name)
        cases.append(Case(name, (query,), (place,), generated=True))
    return cases


def _read_documents(snapshot: Snapshot) -> Iterator[tuple[FileRecord, list[Chunk]]]:
    """Yield every document with its chunks, by path; some documents are read at once."""
    numbers, _ = snapshot.document_vectors()
    heads = sorted(snapshot.heads(numbers.tolist()).items(), key=lambda item: item[1].path)
    batch: list[tuple[int, FileRecord]] = []
    for at, (number, record) in enumerate(heads):
        batch.append((number, record))
        if at == len(heads) - 1 or sum(one.n_chunks for _, one in batch) >= BATCH_CHUNKS:
            keys = [make_key(number, ord_) for number, one in batch for ord_ in range(one.n_chunks)]
            chunks: dict[str, list[Chunk]] = {}
            for stored in snapshot.chunks(keys):
                chunks.setdefault(stored.path, []).append(stored.chunk)
            yield from ((one, chunks.get(one.path, [])) for _, one in batch)
            batch = []


def _walk_sections(record: FileRecord, chunks: Sequence[Chunk]) -> Iterator[tuple[str, str, Expectation]]:
    """Yield heading, what stands above it, and place of each section with enough text."""
    for section, held in groupby(chunks, key=lambda chunk: chunk.section):
        parts = list(held)
        *above, heading = section.split(SEPARATOR)
        heading = _strip_number(heading)
        text = "".join(part.text for part in parts)
        if not _WORD.search(heading) or not LEAST_CHARS <= len(text.strip()) - len(heading) <= MOST_CHARS:
            continue
        yield heading, _strip_number(above[-1] if above else record.title), _name_span(record.path, parts, text)


def _strip_number(heading: str) -> str:
    """Return a heading without its number, and without what quotes or marks it up."""
    return _NUMBER.sub("", heading.strip(" \t\"'#*"), count=1)


def _name_span(path: str, parts: Sequence[Chunk], text: str) -> Expectation:
    """Return the place of a section: by lines in files that have them, else by characters."""
    first, last = parts[0], parts[-1]
    if first.start_line is not None and last.end_line is not None:
        return Expectation(path, lines=(first.start_line, last.end_line))
    start = first.start_char + len(text) - len(text.lstrip())
    return Expectation(path, chars=(start, first.start_char + len(text.rstrip())))


def _make_id(path: str, query: str) -> str:
    """Return file and heading as words joined by hyphens."""
    words = re.findall(r"\w+", f"{path.rpartition('/')[2].partition('.')[0]} {query}".lower())
    return "-".join(words)[:60].rstrip("-")
