"""Answers to stdout, in each of the formats of ``rse query``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rse_cli.cli.asking import Asked
from rse_cli.cli.output import dump_json, has_colour, is_terminal, make_visible_line, say, write_bytes, write_result
from rse_cli.core.spelling import suggest_name
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.pipeline.query import Answer
from rse_cli.timings import stage

SCHEMA_VERSION = 1

FORMATS = ("text", "json", "jsonl", "plain", "files", "context")


@dataclass(frozen=True, slots=True)
class Output:
    """How answers are printed.

    Parameters
    ----------
    format : str
        One of `FORMATS`.
    null : bool
        Whether paths end with NUL.
    headers : bool
        Whether each segment is headed by where it lies.
    max_tokens : int
        Most tokens of the format ``context``.
    """

    format: str = "text"
    null: bool = False
    headers: bool = True
    max_tokens: int = 12_000


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer with what is printed beside it.

    Parameters
    ----------
    asked : Asked
        The queries as given.
    answer : Answer
        The segments.
    label : str
        Method and preset.
    model : str
        The model of the index.
    images : sequence of sequence of str
        Per segment, the pictures of its pages.
    reranker : str or None
        What scored the candidates again.
    """

    asked: Asked
    answer: Answer
    method: str
    preset: str | None
    model: str
    images: Sequence[Sequence[str]] = ()
    reranker: str | None = None

    @property
    def label(self) -> str:
        """Method and preset as they are printed: ``rse/balanced``, ``top-k``."""
        return self.method if self.preset is None else f"{self.method}/{self.preset}"


def choose_format(named: str | None, switches: Mapping[str, bool], is_batch: bool) -> str:
    """Return the one format that ``--format`` or its short forms name.

    Raises
    ------
    UsageError
        If it is unknown, or there are several.
    """
    if named is not None and named not in FORMATS:
        raise UsageError(f"--format takes {', '.join(FORMATS)}, not {named!r}{suggest_name(named, FORMATS)}")
    chosen = {name for name, given in switches.items() if given} | ({named} if named else set())
    if len(chosen) > 1:
        raise UsageError(f"give one format, not {' and '.join(sorted(chosen))}")
    return chosen.pop() if chosen else "jsonl" if is_batch else "text"


def describe_answer_json(shown: Shown) -> dict[str, Any]:
    """Return the document of ``--json``: the contract with scripts. Fields are added, never renamed."""
    answer = shown.answer
    images = list(shown.images) or [()] * len(answer.segments)
    document: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    if shown.asked.id is not None:
        document["id"] = shown.asked.id
    return document | {
        "queries": list(shown.asked.queries),
        "method": shown.method,
        "preset": shown.preset,
        "params": dict(answer.used),
        "model": shown.model,
        "truncated": any(query.truncated for query in answer.request.queries),
        "confidence": round(answer.confidence, 6),
        "confidences": [round(one.confidence, 6) for one in answer.trace.scored],
        "segments": [
            {field.name: getattr(segment, field.name) for field in fields(segment)}
            | {"score": round(segment.score, 9), "images": list(pictures)}
            for segment, pictures in zip(answer.segments, images, strict=True)
        ],
        "refinement": list(answer.trace.refined.steps),
        "refinement_params": {} if answer.request.refinement is None else answer.request.refinement.to_dict(),
        "reranker": shown.reranker,
        "stats": {
            "chars": sum(len(segment.text) for segment in answer.segments),
            "candidates": answer.n_candidates,
        },
    }


@stage("render")
def encode_answer(shown: Shown, extra: Mapping[str, Any] | None = None, *, line: bool = False) -> bytes:
    """Return an answer as JSON with `extra` fields; on one line for JSON lines."""
    return dump_json(describe_answer_json(shown) | dict(extra or {}), line=line)


@stage("render")
def print_answer(shown: Shown, output: Output, extra: Mapping[str, Any] | None = None) -> None:
    """Print an answer; `extra` fields go into JSON documents."""
    if output.format in ("json", "jsonl"):
        write_bytes(encode_answer(shown, extra, line=output.format == "jsonl"))
    elif output.format == "files":
        _print_paths(list(dict.fromkeys(segment.path for segment in shown.answer.segments)), output.null)
    else:
        _print_readable(shown, output)


def _print_paths(paths: Sequence[str], null: bool) -> None:
    """Print paths as they are, for other programs; on a terminal with control characters made visible."""
    if sys.stdout.isatty() and not null:
        write_result("".join(f"{make_visible_line(path)}\n" for path in paths))
    else:
        write_bytes(b"".join(os.fsencode(path) + (b"\0" if null else b"\n") for path in paths))


def _print_readable(shown: Shown, output: Output) -> None:
    from rse_cli.cli import render

    if output.format == "plain":
        write_result(render.render_plain(shown.answer))
        return
    if not shown.answer.segments:
        return
    on_terminal = is_terminal(sys.stdout)
    width = render.measure_width() if on_terminal else None
    write_result(
        render.print_segments(
            shown.answer, colour=has_colour(sys.stdout), width=width, headers=output.headers, images=shown.images
        )
    )
    if on_terminal:
        say(render.describe_answer(shown.answer, shown.label))
