"""Questions in running text and in tables, and where the answer to each ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from typing import Literal

from rse_cli.core.chunking import WRAPPED_LINE_CHARS
from rse_cli.core.headers import SEPARATOR, TITLE_CHARS
from rse_cli.core.models import Chunk
from rse_cli.core.similar_text import fold_spaces
from rse_cli.core.table_rows import read_column_row
from rse_cli.dataclass import dataclass

ANSWER_CHARS = 2_000
"""Longest answer that a passage is completed with: a page of prose; beyond it a section is an essay, not an answer."""

QUESTION_CHARS = 200  # a longer line that ends in a question mark is a paragraph

Kind = Literal["heading", "marked", "line", "row"]

# A question ends the answer to another of its own kind or a lower one; one that ends a row ends no answer.
_RANKS: dict[Kind, int] = {"heading": 0, "marked": 1, "line": 2, "row": 3}

_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"\w")
_LETTER = re.compile(r"[^\W\d_]")
_LEAD = r"[ \t]*(?:[-*+>•][ \t]+)*(?:\d{1,3}[.)][ \t]+)?(?:\*\*|__)?"
# "Q1: net sales" is a quarter, so a numbered or dotted mark needs a question mark in its line.
_MARKED = re.compile(
    _LEAD + r"(?:(?:Q|(?i:question)|问题?|問題?)(?:\*\*|__)?[ \t]*[:：]|Q[ \t]*\d*[.):：][^\r\n]*[?？]|"
    r"(?:(?i:question)|问题?|問題?)[ \t]*\d+[ \t]*[.):：][^\r\n]*[?？])"
)
_ANSWER_MARK = re.compile(r"(?<=[\s?？*_])(?:\*\*|__)?(?:A|Answer|答案?)(?:\*\*|__)?[ \t]*[:：]")
_ENDS_AS_QUESTION = re.compile(r"[?？][\"'”’»」』）)\]*_#\s]*$")
_ENDS_SENTENCE = re.compile(r"[.!?:;。！？：；|][\"'”’»」』）)\]*_]*\s*$")
_CODE = re.compile(r"[{}\\;]|\s=\s|^[$_<]")
_SENTENCE_INSIDE = re.compile(r"[.!][\"'”’»)]*\s+[^\W\d_a-z]|[。！]")
_HASHES = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]")
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+>•][ \t]+|\d{1,3}[.)][ \t]+)")
_BOLD = re.compile(r"[ \t]*(\*\*|__)(?=\S)[^\r\n]*\1[ \t]*")
_BOLD_LINE = re.compile(r"^[ \t]*(\*\*|__)(?=\S)[^\r\n]*\1[ \t]*\r?$", re.MULTILINE)
_UNDERLINED = r"^[^\r\n]*\w[^\r\n]*\r?\n={3,}[ \t]*\r?$"
_UNDERLINE = re.compile(r"([=\-~^*+#])\1{2,}[ \t]*")
_QUESTION_CELL = re.compile(r"[?？][\"'”’*_)]*(?:[ \t]*[|]|\t|[,;，；](?=\S))")
_QUESTION_KEY = re.compile(r"\"(?i:question|q|问题)\"[ \t]*:")
_QUESTION_COLUMNS = frozenset({"question", "questions", "q", "问题", "問題", "问", "問"})
_CELL_MARK = re.compile(r"[|,;\t，；]")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and where it stands.

    Parameters
    ----------
    start, end : int
        Half-open span of its line, or from the start of its row to the end of its cell, in characters of the document.
    kind : {'heading', 'marked', 'line', 'row'}
        A heading that ends in a question mark, a line marked ``Q:`` or the like, another line that ends in one, or the
        row of a table.
    line : str
        The whole line.
    """

    start: int
    end: int
    kind: Kind
    line: str


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a stretch of text; `before` is the line above it, empty where that is blank or not known."""

    start: int
    text: str
    before: str
    after: str


def find_questions(chunks: Sequence[Chunk]) -> list[Question]:
    r"""Return the questions in adjacent chunks of one document, in order.

    A question is a line that begins with ``Q:``, ``Question:`` or ``问：``; a heading, or a line alone, that ends in
    ``?`` or ``？``; or the row of a table with a cell that does, or with a column named ``question``.

    Parameters
    ----------
    chunks : sequence of Chunk
        Adjacent, in order. The first line counts as whole.

    Examples
    --------
    >>> text = "Is it safe?\nYes, it is.\n\nQ: And cheap? A: No.\n"
    >>> [(one.start, one.end, one.kind) for one in find_questions([Chunk(0, 0, 46, text)])]
    [(0, 11, 'line'), (25, 38, 'marked')]
    """
    if not chunks:
        return []
    text, origin = "".join(chunk.text for chunk in chunks), chunks[0].start_char
    starts = [chunk.start_char for chunk in chunks]
    found = []
    for line in _walk_lines(text):
        start = origin + line.start
        chunk = chunks[bisect_right(starts, start) - 1]
        # A heading begins its chunk, so a comment of code that looks like one is none.
        opens = not _WORD.search(chunk.text, 0, start - chunk.start_char)
        kind, length = _classify_line(line, chunk, opens)
        if kind is not None:
            found.append(Question(start, start + length, kind, line.text))
    return found


def _walk_lines(text: str) -> Iterator[_Line]:
    """Yield the lines that aren't blank."""
    lines = [(match.start(), match.group()) for match in _LINE.finditer(text)]
    previous_end, before = 0, ""
    for at, (start, line) in enumerate(lines):
        gap = text[previous_end:start]
        before = "" if gap.count("\n") > 1 or gap.count("\r") > 1 else before
        after = lines[at + 1][1] if at + 1 < len(lines) else ""
        if line.strip():
            yield _Line(start, line, before, after)
        previous_end, before = start + len(line), line.strip()


def _classify_line(line: _Line, chunk: Chunk, opens: bool) -> tuple[Kind | None, int]:
    """Return which kind of question a line is, if any, and where in the line the question ends."""
    text = line.text
    whole = len(text.rstrip())
    cell_end = _find_question_cell(text, chunk)
    if cell_end:
        return "row", cell_end
    if _MARKED.match(text):
        answer = _ANSWER_MARK.search(text)
        return "marked", len(text[: answer.start()].rstrip()) if answer else whole
    if _QUESTION_KEY.search(text):
        return ("row", text.index(":") + 1) if text.lstrip().startswith("{") else ("marked", whole)
    if not _LETTER.search(text) or not _ENDS_AS_QUESTION.search(text):
        return None, 0
    if opens and _is_heading(line, chunk):
        return "heading", whole
    return ("line", whole) if _stands_alone(line) and not _shares_cell_mark(text, read_column_row(chunk)) else (None, 0)


def _find_question_cell(text: str, chunk: Chunk) -> int:
    """Return where the question's cell ends in a row, 0 if the line is no row with a question."""
    cell = _QUESTION_CELL.search(text)
    if cell and _LETTER.search(text, 0, cell.start()):
        return cell.end()
    columns = read_column_row(chunk)
    names = [name.strip(" \"'*").casefold() for name in _CELL_MARK.split(columns)]
    is_header = fold_spaces(text).startswith(columns)
    if is_header or _QUESTION_COLUMNS.isdisjoint(names) or not _shares_cell_mark(text, columns):
        return 0
    end = _CELL_MARK.search(text, len(text) - len(text.lstrip("| \t")))
    return end.end() if end else len(text)


def _shares_cell_mark(text: str, columns: str) -> bool:
    """Whether a line has cells as the row of column names has them; prose in a table's chunk hasn't."""
    return not set(_CELL_MARK.findall(columns)).isdisjoint(text)


def _is_heading(line: _Line, chunk: Chunk) -> bool:
    if _HASHES.match(line.text) or (_UNDERLINE.fullmatch(line.after) and len(line.text) <= QUESTION_CHARS):
        return True
    # A title without marks may be just the first line of a text.
    return bool(chunk.section) and _is_known_heading(line.text, chunk)


def _is_known_heading(line: str, chunk: Chunk) -> bool:
    """Whether a line is the nearest heading of its chunk, or the title of the document."""
    words = fold_spaces(line.strip("# \t"))
    if chunk.section:
        return words in (chunk.section, chunk.section.rpartition(SEPARATOR)[2])
    return words[:TITLE_CHARS] == chunk.header.partition(SEPARATOR)[0]


def _stands_alone(line: _Line) -> bool:
    """Whether a line is one question by itself, and not the end of a wrapped paragraph."""
    text = line.text.strip()
    if len(text) > QUESTION_CHARS or _CODE.search(text):
        return False
    if _SENTENCE_INSIDE.search(_LIST_MARK.sub("", text)):
        return False
    is_wrapped = len(line.before) >= WRAPPED_LINE_CHARS and not _ENDS_SENTENCE.search(line.before)
    return not is_wrapped or bool(_LIST_MARK.match(text) or _BOLD.fullmatch(text))


def find_answer_end(question: Question, questions: Sequence[Question], chunks: Sequence[Chunk]) -> int:
    r"""Return where the answer to a question ends.

    The answer goes on to the next question of its kind or a higher one, the next heading of the same kind, or the end
    of the section, and for at most `ANSWER_CHARS` characters, whole chunks then. The answer to the row of a table is
    the rest of the row. A question that is a heading has its subsections in its answer.

    Parameters
    ----------
    question : Question
        One of `questions`.
    questions : sequence of Question
        All in `chunks`, in order.
    chunks : sequence of Chunk
        Adjacent chunks of the document, from the question's on.

    Returns
    -------
    int
        A position in the document; `question.end` if no answer follows.

    Examples
    --------
    >>> chunks = [Chunk(0, 0, 23, "# Safe?\nYes.\n# Cheap?\nNo"[:23])]
    >>> questions = find_questions(chunks)
    >>> find_answer_end(questions[0], questions, chunks)
    13
    """
    text, origin = "".join(chunk.text for chunk in chunks), chunks[0].start_char
    if question.kind == "row":
        end = origin + _find_row_end(text, question.start - origin)
    else:
        rank = _RANKS[question.kind]
        is_known = _is_known_heading(question.line, _find_chunk(question, chunks))
        chunk_starts = {chunk.start_char - origin for chunk in chunks} if is_known else None
        later = (one.start for one in questions if one.start > question.start and _RANKS[one.kind] <= rank)
        end = min(
            next(later, chunks[-1].end_char),
            _find_section_end(question, chunks),
            origin + _find_sibling(text, question.end - origin, question, chunk_starts),
        )
    if end - question.end > ANSWER_CHARS:
        most = question.end + ANSWER_CHARS
        end = max((chunk.end_char for chunk in chunks if question.end < chunk.end_char <= most), default=most)
    answer = text[question.end - origin : end - origin]
    return end if _WORD.search(answer) else question.end


def _find_row_end(text: str, start: int) -> int:
    """Return the end of a row: of its line, or of the record whose quoted cells go over several lines."""
    quotes, at = 0, start
    while at < len(text) and at - start <= QUESTION_CHARS + ANSWER_CHARS:
        stop = text.find("\n", at) + 1 or len(text)
        quotes += text.count('"', at, stop)
        if quotes % 2 == 0:
            return stop
        at = stop
    return text.find("\n", start) + 1 or len(text)


def _find_section_end(question: Question, chunks: Sequence[Chunk]) -> int:
    """Return where the section of a question ends: no chunk crosses a heading, so that is where a chunk begins."""
    own = _find_chunk(question, chunks).section
    inner = own + SEPARATOR if own else ""
    for chunk in chunks:
        below = question.kind == "heading" and chunk.section.startswith(inner)
        if chunk.start_char > question.start and chunk.section != own and not below:
            return chunk.start_char
    return chunks[-1].end_char


def _find_chunk(question: Question, chunks: Sequence[Chunk]) -> Chunk:
    return next(chunk for chunk in reversed(chunks) if chunk.start_char <= question.start)


def _find_sibling(text: str, start: int, question: Question, chunk_starts: Set[int] | None) -> int:
    """Return where the next line of the same kind begins: a heading of the level or above, or bold as a whole.

    Where the reader knows the headings, one begins its chunk; other lines with hashes may be comments of code.
    """
    hashes = _HASHES.match(question.line)
    if hashes or question.kind == "heading":
        level = len(hashes[1]) if hashes else 1
        sibling = re.compile(rf"^[ \t]{{0,3}}#{{1,{level}}}[ \t]|{_UNDERLINED}", re.MULTILINE)
    elif _BOLD.fullmatch(question.line):
        sibling, chunk_starts = _BOLD_LINE, None
    else:
        return len(text)
    found = (match.start() for match in sibling.finditer(text, start))
    return next((at for at in found if chunk_starts is None or at in chunk_starts), len(text))
