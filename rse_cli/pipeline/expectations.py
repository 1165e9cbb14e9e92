"""What cases expect, as characters of the indexed documents."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import PurePosixPath

from rse_cli.core.cases import Case, CaseFault, Expectation, ResolvedCase, name_case, shorten, sort_faults
from rse_cli.core.chunking import Span
from rse_cli.core.metrics import DocumentSpan
from rse_cli.core.models import Chunk
from rse_cli.dataclass import dataclass
from rse_cli.errors import CasesError
from rse_cli.ports import FileRecord, Snapshot, make_key

MOST_COMPARED = 5_000
"""Paths that a misspelled one is compared with: each takes 20 µs, and a tenth of a second is soon enough."""

MOST_PLACES = 5
"""Places of a repeated quote that are named."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of an indexed document, with what its chunks say of lines and pages."""

    path: str
    text: str
    chunks: Sequence[Chunk]
    line_starts: Sequence[int]

    @property
    def has_lines(self) -> bool:
        return self.chunks[0].start_line is not None

    def find_line(self, char: int) -> int:
        return bisect_right(self.line_starts, char)


def resolve_cases(snapshot: Snapshot, cases: Sequence[Case]) -> list[ResolvedCase]:
    """Return the cases with the characters that they expect.

    A quote must occur once: which of two places is meant would be a guess, and to expect both would halve the recall
    of an answer that holds one.

    Parameters
    ----------
    snapshot : Snapshot
        The index that the cases are about.
    cases : sequence of Case
        From a file of cases.

    Raises
    ------
    CasesError
        With every place that isn't there: a path that isn't indexed, a quote that isn't in its document or more than
        once, characters, lines or pages beyond its end.
    """
    resolved, faults = find_expected(snapshot, cases)
    if faults:
        raise CasesError([(fault.line, fault.message) for fault in faults])
    return resolved


def find_expected(snapshot: Snapshot, cases: Sequence[Case]) -> tuple[list[ResolvedCase], list[CaseFault]]:
    """As `resolve_cases`, but return the faults, in order of lines; what can't be found is left out of the spans."""
    records = {record.path: record for record in snapshot.files()}
    numbers = _number_documents(snapshot, {one.path for case in cases for one in case.expect} & records.keys())
    wanted: dict[str, list[tuple[int, Expectation]]] = {}
    for at, case in enumerate(cases):
        for one in case.expect:
            wanted.setdefault(one.path, []).append((at, one))
    spans: list[list[DocumentSpan]] = [[] for _ in cases]
    faults: list[CaseFault] = []
    # One document in memory at a time.
    for path, places in wanted.items():
        fault = _find_fault(path, records, numbers)
        text = None if fault else _fetch_text(snapshot, records[path], numbers[path])
        for at, one in places:
            try:
                if text is None:
                    raise ValueError(fault)
                spans[at] += [DocumentSpan(path, start, end) for start, end in _find_spans(one, text)]
            except ValueError as error:
                faults.append(CaseFault(one.line, f"{name_case(cases[at])}: {error}"))
    resolved = [ResolvedCase(case, tuple(found)) for case, found in zip(cases, spans, strict=True)]
    # A place that is named in two ways is looked for twice.
    return resolved, sort_faults(set(faults))


def _number_documents(snapshot: Snapshot, paths: Iterable[str]) -> dict[str, int]:
    """Return the document numbers of those paths that have chunks."""
    wanted = set(paths)
    if not wanted:
        return {}
    numbers, _ = snapshot.document_vectors()
    heads = snapshot.heads(numbers.tolist())
    return {record.path: number for number, record in heads.items() if record.path in wanted}


def _find_fault(path: str, records: dict[str, FileRecord], numbers: dict[str, int]) -> str:
    """Say why nothing can be found in a path, or return an empty text."""
    if path in numbers:
        return ""
    if path in records:
        record = records[path]
        return f"{path} has no text in the index ({record.reason or record.status})"
    namesakes = [known for known in records if PurePosixPath(known).name == PurePosixPath(path).name]
    near = sorted(namesakes)[:1] or difflib.get_close_matches(path, sorted(records)[:MOST_COMPARED], 1)
    return f"{path} is not in the index" + (f"; did you mean {near[0]}?" if near else "")


def _fetch_text(snapshot: Snapshot, record: FileRecord, number: int) -> _Text:
    keys = [make_key(number, ord_) for ord_ in range(record.n_chunks)]
    chunks = [stored.chunk for stored in snapshot.chunks(keys)]
    text = "".join(chunk.text for chunk in chunks)
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    # As `grep -n` and editors count, a line end at the very end begins no further line.
    return _Text(record.path, text, chunks, starts if lines[-1] or len(starts) == 1 else starts[:-1])


def _find_spans(one: Expectation, text: _Text) -> list[Span]:
    """Return the spans of a place.

    Raises
    ------
    ValueError
        If it isn't there; says why.
    """
    if one.chars is not None:
        if one.chars[1] > len(text.text):
            raise ValueError(f"{one.path} ends at character {len(text.text):,}, before {one.chars[1]:,}")
        return [one.chars]
    if one.text is not None:
        return [_find_quote(one.text, text)]
    if one.lines is not None:
        return [_find_lines(one.lines, text)]
    if one.pages:
        return _find_pages(one.pages, text)
    return [(0, len(text.text))]


def _find_quote(quote: str, text: _Text) -> Span:
    words = quote.split()
    places = [match.span() for match in re.finditer(_compile_words(words), text.text)]
    if len(places) == 1:
        return places[0]
    if places:
        named = ", ".join(_name_place(start, text) for start, _ in places[:MOST_PLACES])
        more = ", …" if len(places) > MOST_PLACES else ""
        raise ValueError(
            f"the quote “{shorten(quote, 60)}” is {len(places):,} times in {text.path} ({named}{more}): quote more, or "
            f"give {'lines' if text.has_lines else 'start_char and end_char'}"
        )
    raise ValueError(f"the quote “{shorten(quote, 60)}” is not in {text.path}{_explain_absence(words, text)}")


def _compile_words(words: Sequence[str]) -> str:
    return r"\s+".join(map(re.escape, words))


def _explain_absence(words: Sequence[str], text: _Text) -> str:
    """Say how far a quote agrees with the document: most are there but for a word."""
    present, absent = 0, len(words)
    place = -1
    while absent - present > 1:
        middle = (present + absent) // 2
        match = re.search(_compile_words(words[:middle]), text.text)
        if match:
            present, place = middle, match.start()
        else:
            absent = middle
    # Fewer words in common say nothing.
    if present < 3:
        return ""
    return f"; its first {present} words are ({_name_place(place, text)}), up to “{shorten(words[present], 40)}”"


def _name_place(char: int, text: _Text) -> str:
    """Return the line, the page or the character of a place."""
    if text.has_lines:
        return f"line {text.find_line(char):,}"
    chunk = text.chunks[bisect_right([chunk.start_char for chunk in text.chunks], char) - 1]
    return f"page {chunk.start_page}" if chunk.start_page is not None else f"character {char:,}"


def _find_lines(lines: tuple[int, int], text: _Text) -> Span:
    """Return the span from the first line's start to the last line's end, without its line end."""
    if not text.has_lines:
        ways = "pages or text" if text.chunks[0].start_page is not None else "text"
        raise ValueError(f"{text.path} has no lines, as its text is extracted: give {ways}")
    first, last = lines
    if last > len(text.line_starts):
        raise ValueError(f"{text.path} has {len(text.line_starts):,} lines, so no line {last:,}")
    end = text.line_starts[last] if last < len(text.line_starts) else len(text.text)
    start = text.line_starts[first - 1]
    body = text.text[start:end].rstrip("\r\n")
    if not body.strip():
        raise ValueError(f"lines {first:,} to {last:,} of {text.path} are blank")
    return start, start + len(body)


def _find_pages(pages: Sequence[int], text: _Text) -> list[Span]:
    """Return the spans of pages; all that aren't there are named."""
    if text.chunks[0].start_page is None:
        raise ValueError(f"{text.path} has no pages: give {'lines or text' if text.has_lines else 'text'}")
    spans, faults = [], []
    for page in pages:
        try:
            spans.append(_find_page(page, text))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ValueError("; ".join(faults))
    return spans


def _find_page(page: int, text: _Text) -> Span:
    """Return the span of a page without the white space around it: no chunk with words crosses the start of one."""
    held = [chunk for chunk in text.chunks if (chunk.start_page or 0) <= page <= (chunk.end_page or 0)]
    if not held:
        last = max(chunk.end_page or 0 for chunk in text.chunks)
        raise ValueError(
            f"page {page:,} of {text.path} has no text"
            if page <= last
            else f"{text.path} has {last:,} page{'' if last == 1 else 's'}, so no page {page:,}"
        )
    start, end = held[0].start_char, held[-1].end_char
    body = text.text[start:end]
    return start + len(body) - len(body.lstrip()), start + len(body.rstrip())
