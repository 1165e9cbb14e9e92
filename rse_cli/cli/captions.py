"""What stands above and below the picture: query, method, parameters; what was not chosen, and how to read it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from rse_cli.cli.glyphs import Glyphs, fit, fix_minus, format_number, show_line, show_name
from rse_cli.cli.output import name_count
from rse_cli.cli.picture import choose_decimals
from rse_cli.core.segments import UNIT_CHARS
from rse_cli.pipeline.inspect import NotChosen
from rse_cli.pipeline.query import Answer

_READINGS = {
    "rse": (
        f"value = (relevance - penalty) * characters/{UNIT_CHARS}; score = sum of its rows - segment_cost/{UNIT_CHARS}"
    ),
    "dsrag": "value = (decay * similarity - penalty) * length factor, of a block; score = sum of its blocks",
    "average": "value = similarity of a block, below 0.2 a tenth of it; score = sum of its blocks",
    "top-k": "value = score of a block by the retriever; score = that of its best block",
}
_READINGS["hierarchical"] = _READINGS["rse"]
_HITS = "value = score of a hit by the retriever; score = that of its best hit"


def render_summary(answer: Answer, label: str, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines above the picture."""
    lines = []
    for number, query in enumerate(answer.request.queries):
        several = f"{number}  " if len(answer.request.queries) > 1 else ""
        text = fit(show_line(query.text, glyphs), width - len(several) - 2, glyphs)
        lines.append(Text(f"{several}{glyphs.quotes[0]}{text}{glyphs.quotes[1]}", "bold"))
    chars = sum(len(segment.text) for segment in answer.segments)
    facts = [
        label,
        f"confidence {answer.confidence:.2f}",
        name_count(len(answer.segments), "segment"),
        name_count(chars, "character"),
        name_count(answer.n_candidates, "candidate"),
    ]
    lines += [Text(line) for line in flow(facts, glyphs.sep, width)]
    return lines + [Text(line, "dim") for line in flow(describe_params(answer.used), glyphs.sep, width)]


def describe_params(used: Mapping[str, Any]) -> list[str]:
    """Return the parameters as they were used, but for weights of evidence."""
    return [
        f"{name} {_format_param(value)}"
        for name, value in used.items()
        if not name.startswith("weight_") and name != "table_share" and not (name == "fill" and not value)
    ]


def _format_param(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format_param, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def flow(facts: Sequence[str], sep: str, width: int) -> list[str]:
    """Return facts on as few lines as hold them.

    Examples
    --------
    >>> flow(["one", "two", "three"], " · ", 10)
    ['one · two', 'three']
    """
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(sep) + len(fact) <= width:
            lines[-1] += sep + fact
        else:
            lines.append(fact[:width])
    return lines


def render_not_chosen(
    entries: Sequence[NotChosen], n_queries: int, width: int, glyphs: Glyphs, most: int = 8
) -> list[Text]:
    """Return what came next, each with the rule that kept it out."""
    if not entries:
        return []
    decimals = choose_decimals([one.score for one in entries])
    lines = [Text("Not chosen", "bold")]
    names = [fit(name_chunks(one, glyphs), max(16, width // 2), glyphs) for one in entries[:most]]
    column = max(Text(name).cell_len for name in names)
    for one, name in zip(entries, names, strict=False):
        score = format_number(one.score, decimals, glyphs, signed=True)
        why = one.why if glyphs.ascii else fix_minus(one.why)
        why = f"query {one.query}: {why}" if n_queries > 1 else why
        line = Text("  ")
        line.append(name, "magenta")
        line.append(" " * (column - Text(name).cell_len))
        line.append(f"  {score:>{decimals + 4}}  ", "red" if one.score < 0 else "green")
        if line.cell_len + len(why) <= width:
            line.append(why)
            lines.append(line)
            continue
        line.rstrip()
        lines.append(line)
        lines += [Text(f"    {part}") for part in flow(why.split(" "), " ", width - 4)]
    return lines


def name_chunks(one: NotChosen, glyphs: Glyphs) -> str:
    """Return the place as ``--chunk`` takes it: ``docs/pump.md#12``, or ``#12–14`` for several."""
    last = one.end_chunk - 1
    span = str(one.start_chunk) if last == one.start_chunk else f"{one.start_chunk}{glyphs.dash}{last}"
    return f"{show_name(one.path, glyphs)}#{span}"


def render_hidden(words: str, width: int, glyphs: Glyphs) -> list[Text]:
    """Return what is said of documents that were left out."""
    return [Text(line, "dim") for line in flow([glyphs.fold, *words.split(" ")], " ", width)]


def render_reading(method: str, width: int, glyphs: Glyphs) -> list[Text]:
    """Return how values and scores come about."""
    words = _READINGS.get(method, _HITS)
    if not glyphs.ascii:
        words = words.replace(" - ", " − ").replace(" * ", " · ")
    return [Text(line, "dim") for line in flow(words.split(" "), " ", width)]
