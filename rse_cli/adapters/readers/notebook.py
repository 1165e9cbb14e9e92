"""Jupyter notebooks: the text of their cells, code and outputs as fences."""

from __future__ import annotations

import json
import re
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.markdown import find_outline
from rse_cli.adapters.readers.plain import is_wrapped
from rse_cli.core.models import Document, Heading
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError

_LONGEST_OUTPUT = 2000
"""Characters kept of one output: tables and logs beyond that repeat themselves."""

_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(slots=True)
class _Draft:
    """The document so far."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    headings: list[Heading] = field(default_factory=list)
    atoms: list[tuple[int, int]] = field(default_factory=list)
    title: str | None = None


def read_notebook(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read a Jupyter notebook of format 3, 4 or 5.

    Markdown cells are taken as they are; code cells and their text outputs become code fences, which are atoms.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file.

    Returns
    -------
    Document
        Extracted text, titled by a Markdown cell's front matter or first level-1 heading.

    Raises
    ------
    ReadError
        If it is no JSON, or not that of a notebook.
    """
    try:
        notebook = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise ReadError("failed", f"notebook: broken JSON: {error}") from error
    language = _find_language(notebook)
    draft = _Draft()
    for cell in _find_cells(notebook):
        source = _join(cell.get("source", cell.get("input")))
        kind = cell.get("cell_type")
        if kind == "code":
            _add_fence(draft, source, language)
            for output in cell.get("outputs") or []:
                _add_fence(draft, _extract_output(output), "")
        elif kind == "heading":  # of format 3
            _add_markdown(draft, f"{'#' * int(cell.get('level', 1))} {source}")
        elif kind == "markdown":
            _add_markdown(draft, source)
        else:
            _add(draft, source)
    text = "".join(draft.parts)
    return Document(
        text=text,
        title=draft.title,
        headings=tuple(draft.headings),
        atoms=tuple(draft.atoms),
        wrapped=is_wrapped(text),
    )


def _find_cells(notebook: Any) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict):
        worksheets = notebook.get("worksheets")
        cells = [cell for sheet in worksheets for cell in sheet.get("cells", [])] if worksheets else None
    if not isinstance(cells, list):
        raise ReadError("failed", "notebook: the JSON has no cells")
    return [cell for cell in cells if isinstance(cell, dict)]


def _find_language(notebook: Any) -> str:
    """Return the language of the code cells, or nothing if it isn't said."""
    try:
        metadata = notebook["metadata"]
        language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name") or ""
    except (KeyError, TypeError, AttributeError):
        return ""
    return language if isinstance(language, str) and "`" not in language else ""


def _join(source: Any) -> str:
    """Return a text that may be stored as a list of its lines."""
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _extract_output(output: Any) -> str:
    """Return the text of one output, without terminal codes, cut at its longest; nothing for images and widgets."""
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") in {"error", "pyerr"}:
        text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    else:
        bundle = output.get("data")
        text = _join(bundle.get("text/plain")) if isinstance(bundle, dict) else _join(output.get("text"))
    return _TERMINAL_CODE.sub("", text[: 2 * _LONGEST_OUTPUT])[:_LONGEST_OUTPUT]


def _add(draft: _Draft, text: str) -> int:
    """Add a part, with a blank line after it, and return where it starts; nothing for a blank one."""
    start = draft.length
    if text.strip():
        part = _mend_surrogates(text.rstrip("\n")) + "\n\n"
        draft.parts.append(part)
        draft.length += len(part)
    return start


def _mend_surrogates(text: str) -> str:
    """Join halves of characters that JSON escapes name apart; a half without the other becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _add_fence(draft: _Draft, text: str, language: str) -> None:
    """Add code or output between fences that it doesn't itself hold."""
    if text.strip():
        mark = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])
        text = text.strip("\r\n")
        start = _add(draft, f"{mark}{language}\n{text}\n{mark}")
        draft.atoms.append((start, draft.length - 1))


def _add_markdown(draft: _Draft, text: str) -> None:
    """Add a Markdown cell with its headings and atoms."""
    start = _add(draft, text)
    if draft.length == start:
        return
    outline = find_outline(draft.parts[-1])
    draft.title = draft.title or outline.title
    draft.headings += [Heading(start + h.start_char, h.level, h.text) for h in outline.headings]
    draft.atoms += [(start + begin, start + end) for begin, end in outline.atoms]
