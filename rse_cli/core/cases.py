"""Cases: queries with what they should find, as a file of cases names it."""

from __future__ import annotations

from collections.abc import Iterable

from rse_cli.core.metrics import DocumentSpan
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Expectation:
    """A place in a document that should be found. At most one of its ways to name a span is set; none: all of it.

    Parameters
    ----------
    path : str
        The document, relative to the root of the index.
    line : int
        Where the file of cases says so, 1-based.
    chars : (int, int) or None
        Half-open span in the document's text.
    text : str or None
        A quote that occurs once in the document, white space folded.
    lines : (int, int) or None
        First and last line, 1-based and inclusive.
    pages : tuple of int
        Pages, 1-based.
    """

    path: str
    line: int = 1
    chars: tuple[int, int] | None = None
    text: str | None = None
    lines: tuple[int, int] | None = None
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A query, or several that are answered together, with what should be found.

    Parameters
    ----------
    id : str
        Unique in its file; ``case-<n>`` for the nth case where the file gives none.
    queries : tuple of str
        At least one; none in a case that has a fault.
    expect : tuple of Expectation
        Empty where nothing should be found.
    line : int
        Where the case begins in its file, 1-based.
    generated : bool
        Whether a program made it up, so that it says little about what people ask.
    """

    id: str
    queries: tuple[str, ...]
    expect: tuple[Expectation, ...] = ()
    line: int = 1
    generated: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedCase:
    """A case with the characters that its expectations stand for; none where nothing should be found."""

    case: Case
    spans: tuple[DocumentSpan, ...]


@dataclass(frozen=True, slots=True)
class CaseFault:
    """What is wrong in a file of cases, and in which line."""

    line: int
    message: str


def sort_faults(faults: Iterable[CaseFault]) -> list[CaseFault]:
    """Return faults in the order of their lines.

    Examples
    --------
    >>> [fault.line for fault in sort_faults([CaseFault(7, "no query"), CaseFault(2, "no id")])]
    [2, 7]
    """
    return sorted(faults, key=lambda fault: (fault.line, fault.message))


def name_case(case: Case) -> str:
    """Return how messages name a case: its id and the head of its query, if it has one.

    Examples
    --------
    >>> name_case(Case("baby", ("We are having a baby. How many paid weeks do I get, and is my job safe?",)))
    'baby “We are having a baby. How many paid weeks do I get, and is…”'
    """
    return f"{case.id} “{shorten(' + '.join(case.queries), 60)}”" if case.queries else case.id


def shorten(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters.

    Examples
    --------
    >>> shorten("How do I\\n\\nclean it?", 12)
    'How do I cl…'
    """
    # Twice as long at most after folding, so that a text of a megabyte costs nothing.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 1].rstrip() + "…"
