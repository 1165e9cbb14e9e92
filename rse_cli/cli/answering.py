"""``--format context`` and ``--answer``: segments for a prompt, and what a language model says to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from rse_cli.cli.output import make_visible, write_result
from rse_cli.cli.printing import Output, Shown
from rse_cli.errors import UsageError


def format_answer_context(shown: Shown, output: Output, count_tokens: Callable[[str], int]) -> str:
    """Return the numbered segments of an answer, at least one, within the token budget.

    Raises
    ------
    UsageError
        If the budget doesn't hold the beginning of the first segment; says how much it takes.
    """
    from rse_cli.core.context import count_least_tokens, format_context

    segments = shown.answer.segments
    summaries = {segment.path: segment.summary for segment in segments}
    context = format_context(segments, count_tokens, output.max_tokens, summaries=summaries, headers=output.headers)
    if context:
        return context
    first = segments[0]
    least = count_least_tokens(first, count_tokens, summary=first.summary, headers=output.headers)
    hint = ", or less with --no-header" if output.headers else ""
    raise UsageError(f"--max-tokens {output.max_tokens} is too few: where the first segment lies takes {least}{hint}")


def ask_language_model(shown: Shown, context: str, model: str | None) -> Iterator[str]:
    """Ask the server of ``OPENAI_BASE_URL`` and yield its answer as it comes.

    Raises
    ------
    AnswerError
        If there is no server, no key, or no whole answer; one line that says which.
    """
    from rse_cli.adapters.answerer import load_answerer
    from rse_cli.core.context import compose_prompt

    answerer = load_answerer(model, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))
    yield from answerer.stream(compose_prompt(shown.asked.queries, context))


def print_stream(pieces: Iterator[str]) -> None:
    """Print an answer as it comes, controls made visible."""
    for piece in pieces:
        write_result(make_visible(piece))
        sys.stdout.flush()
    write_result("\n")
