"""Which chunks are rows of a table, which belong together, and what names their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rse_cli.core.chunking import Span
from rse_cli.core.lexical import split_terms

# A chunk is tabular from 3 numeric tokens making up 22 % of it: found on annual reports, where prose with
# figures stays below and rows with long labels stay above.
MIN_NUMERIC_TOKENS = 3
MIN_NUMERIC_SHARE = 0.22
LARGEST_STEP = 2  # table chunks with at most one other chunk between them are one table
CAPTION_CHUNKS = 3
CAPTION_CHARS = 300
COLUMN_ROW_CHARS = 80
COLUMN_ROW_REACH = 4_000

_NUMERIC = re.compile(r"[$€£¥(]*[-–—−]?[$€£¥]*[0-9][0-9.,]*[%)]*|[$€£¥(]*[-–—−][)%]*")
_YEAR = re.compile(r"(?<![0-9.,])(?:19|20)[0-9]{2}(?![0-9,])")
_LIST_MARK = re.compile(r"(?m)^[ \t]*(?:[-–—−]|[0-9]{1,3}[.)])[ \t]+(?=[^\W\d_])")
_WORDS = re.compile(r"[^\W\d_]{2,}")


def is_table_text(text: str) -> bool:
    """Whether `text` reads like rows of numbers.

    At least 3 of its white-space tokens are numeric (digits with ``$ , . % ( )``, or a dash) and they make up at least
    22 %; ``|`` between cells is no token, nor is what marks an item of a list: a dash or ``1.`` before words.

    Examples
    --------
    >>> is_table_text("Net sales  $ 32,765  $ 31,657  30,109")
    True
    >>> is_table_text("In 2018 we sold 3 of 5 plants that had made losses for many years.")
    False
    """
    tokens = [token for token in _LIST_MARK.sub("", text).split() if token not in ("|", "$", "€", "£", "¥")]
    numeric = sum(_NUMERIC.fullmatch(token) is not None for token in tokens)
    return numeric >= MIN_NUMERIC_TOKENS and numeric >= MIN_NUMERIC_SHARE * len(tokens)


def find_table_runs(flags: Sequence[bool]) -> list[Span]:
    """Return runs of two or more table chunks with at most one other chunk between neighbours.

    Parameters
    ----------
    flags : sequence of bool
        Per chunk of a document, whether it is a table chunk.

    Returns
    -------
    list of (int, int)
        Half-open; the first and last chunk of each are table chunks.

    Examples
    --------
    >>> find_table_runs([True, False, True, False, False, True])
    [(0, 3)]
    """
    runs: list[Span] = []
    members: list[int] = []
    for at in [*(i for i, flag in enumerate(flags) if flag), len(flags) + LARGEST_STEP + 1]:
        if members and at - members[-1] > LARGEST_STEP:
            if len(members) > 1:
                runs.append((members[0], members[-1] + 1))
            members = []
        members.append(at)
    return runs


def collect_row_terms(text: str, spans: Sequence[Span], run: Span, heading: str) -> tuple[str, ...]:
    """Return the row field of a table run: the distinct terms that say what the table is about.

    They come from the last 300 characters of the three chunks before the run, from its first chunk and from the heading
    of its section.

    Parameters
    ----------
    text : str
        The document's text.
    spans : sequence of (int, int)
        Its chunks.
    run : (int, int)
        Half-open range of chunks.
    heading : str
        The nearest heading, or empty.

    Examples
    --------
    >>> collect_row_terms("Sales. 1 2 3", [(0, 7), (7, 12)], (1, 2), "Results")
    ('1', '2', '3', 'result', 'sale')
    """
    first = run[0]
    caption_start = max(spans[max(0, first - CAPTION_CHUNKS)][0], spans[first][0] - CAPTION_CHARS)
    caption = text[caption_start : spans[first][1]]
    return tuple(sorted({*split_terms(caption), *split_terms(heading)}))


def find_column_row(text: str, start_char: int, group_start: int | None) -> str:
    """Return the row that names the columns of a table row, at most 80 characters, or an empty string.

    It is the first row of the reader's table when that has words and few numbers, else the nearest line above, at most
    4,000 characters back, with two years or more.

    Parameters
    ----------
    text : str
        The document's text.
    start_char : int
        Where the table row's chunk begins.
    group_start : int or None
        Where the reader's table begins, if it knows one.

    Examples
    --------
    >>> find_column_row("Years ended  2018  2017\\nSales  5  4\\n", 24, None)
    'Years ended 2018 2017'
    """
    if group_start is not None and group_start < start_char:
        line = _read_line(text, group_start)
        if line and not any(map(str.isalnum, line)):  # a rule drawn above the names
            line = _read_line(text, text.find("\n", group_start) + 1)
        if _WORDS.search(line) and not is_table_text(line):
            return line[:COLUMN_ROW_CHARS]
    low = max(0, start_char - COLUMN_ROW_REACH)
    end = start_char
    while end > low:
        start = text.rfind("\n", low, max(low, end - 1)) + 1
        start = start if start > 0 else low
        line = text[start:end]
        if len(line) <= 2 * COLUMN_ROW_CHARS and len(_YEAR.findall(line)) >= 2:
            return " ".join(line.split())[:COLUMN_ROW_CHARS]
        end = min(start, end - 1)
    return ""


def _read_line(text: str, start: int) -> str:
    stop = start + 4 * COLUMN_ROW_CHARS
    line = text[start:stop].lstrip("\r\n").split("\n", 1)[0]
    return " ".join(line.split())
