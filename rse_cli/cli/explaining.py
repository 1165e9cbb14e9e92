"""One chunk in full sentences, with the arithmetic written out so that a reader can check it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rse_cli.cli.explaining_words import WordEvidence
from rse_cli.cli.glyphs import UNICODE, Glyphs, fix_minus, show_line, show_name
from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.hits import FUSION_K
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import Balance, combine_cosines, combine_words
from rse_cli.pipeline.inspect import DocumentView, Inspection
from rse_cli.pipeline.scoring import Scored
from rse_cli.pipeline.weighing import count_kept, find_penalties, get_rse_params

_PIECES = {
    "c0": ("weight_c0", "cosine of the chunk's meaning with the query's"),
    "c1": ("weight_c1", "the same over the chunk and 1 either side"),
    "c4": ("weight_c4", "the same over the chunk and 4 either side"),
    "f0": ("weight_f0", "share of the query's words (BM25F) in the chunk"),
    "f4": ("weight_f4", "the same over the chunk and 4 either side"),
    "f12": ("weight_f12", "the same over the chunk and 12 either side"),
    "p1": ("weight_p1", "how closely neighbouring words of the query stand together, 1 chunk either side"),
}


# Signs of the sentences themselves; what they quote was escaped before.
_ASCII_SIGNS = str.maketrans({"−": "-", "·": "*", "√": "sqrt", "“": '"', "”": '"'})


def localise(sentence: str, glyphs: Glyphs) -> str:
    """Return a sentence in signs that stdout can carry."""
    return sentence.translate(_ASCII_SIGNS) if glyphs.ascii else sentence


def explain_chunk(inspection: Inspection, view: DocumentView, ord_: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Return sentences on one chunk of a document that was laid open: a paragraph a query, then what became of it.

    Numbers have four decimals, so that sums can be checked to three. What is quoted is shown in `glyphs`.
    """
    row = int(view.rows[ord_])
    lines: list[str] = []
    if row < 0 and math.isnan(view.levels[ord_]):
        return [
            f"Chunk {ord_} of {show_name(view.path, glyphs)} was not weighed: it is not among the nearest chunks by "
            "meaning or by words, nor within 12 chunks of one."
        ]
    method = inspection.answer.request.method
    explain = {"rse": _explain_rse, "hierarchical": _explain_rse, "dsrag": _explain_dsrag, "average": _explain_average}
    for query, asked in enumerate(inspection.answer.request.queries):
        lines.append(f"For the query “{show_line(asked.text, glyphs)}”:")
        lines += [f"  {line}" for line in explain.get(method, _explain_hit)(inspection, view, ord_, query)]
    return lines + list(_explain_fate(inspection, view, ord_))


def _show(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def _get(view: DocumentView, query: int, name: str, ord_: int) -> float:
    return float(view.numbers[query][name][ord_])


def _explain_terms(inspection: Inspection, view: DocumentView, ord_: int, query: int) -> str:
    terms = inspection.match_terms(view, ord_, query)
    return f"Its own words that match: {', '.join(terms)}." if terms else "None of its own words match."


def _explain_rse(inspection: Inspection, view: DocumentView, ord_: int, query: int) -> Iterator[str]:
    answer, row = inspection.answer, int(view.rows[ord_])
    scored, params = answer.trace.scored[query], get_rse_params(answer)
    yield _explain_terms(inspection, view, ord_, query)
    words = WordEvidence(
        answer.trace.retrieval.words[query], answer.trace.retrieval.candidates[query], row, answer.trace.retrieval
    )
    yield from words.explain_weights()
    for name, (_, meaning) in _PIECES.items():
        summed, norm = words.compose_sum(name)
        yield f"{name} = {summed}{_show(_get(view, query, name, ord_))}: {meaning}{norm}."
    yield from _explain_z(scored, params, row)
    z, highest = float(scored.z[row]), float(scored.z.max())
    p = np.exp(scored.z - highest)
    mean = float(np.sort(p)[-3:].mean())
    calibrated = float(p[row]) / mean
    yield (
        f"The best candidate has z = {_show(highest)}, so p = exp({_show(z)} − {highest:.4f}) = {p[row]:.4f}; "
        f"the best three average {mean:.4f}, so relevance = {p[row]:.4f} / {mean:.4f} = {calibrated:.4f}."
    )
    relevance = _get(view, query, "relevance", ord_)
    if relevance > calibrated + 1e-12:
        yield (
            f"It is a row of a table, which gets at least {params.table_share:g} of the table's best relevance: "
            f"{relevance:.4f}."
        )
    asked, penalty = find_penalties(answer)[query]
    if penalty > asked:
        yield f"To fit max_chars {params.max_chars:,} the penalty was raised from {asked:g} to {penalty:.4f}."
    kept = int(count_kept(answer)[row])
    value = _get(view, query, "value", ord_)
    yield f"value = ({relevance:.4f} − {penalty:.4f}) · {kept}/100 = {_show(value)}."


def _explain_z(scored: Scored, params: RseParams, row: int) -> Iterator[str]:
    """Write out the sum of the evidence, in two steps where cosines and words don't count by their weights alone."""
    cosines, words = (
        [_multiply(getattr(params, _PIECES[name][0]), float(getattr(scored.evidence, name)[row])) for name in names]
        for names in (("c0", "c1", "c4"), ("f0", "f4", "f12", "p1"))
    )
    z, balance = _show(float(scored.z[row])), scored.balance
    if balance == Balance():
        yield f"z = {' + '.join(cosines + words)} = {z}."
        return
    total = _show(float(combine_words(scored.evidence, params)[row]))
    summed = f"words = {' + '.join(words)} = {total}"
    if not balance.cosines:
        yield (
            "Meaning is left out, as the model knows the query's script too little; words count "
            f"{balance.words:.4f} times in its place."
        )
        yield f"{summed}; z = {balance.words:.4f}·{total} = {z}."
        return
    yield (
        f"The index knows {balance.words / balance.cosines:.4f} of the query's words, by their rarity: they count "
        f"{balance.words:.4f} times, and meaning {balance.cosines:.4f} times."
    )
    meaning = _show(float(combine_cosines(scored.evidence, params)[row]))
    yield f"meaning = {' + '.join(cosines)} = {meaning}; {summed}."
    yield f"z = {balance.cosines:.4f}·{_bracket(meaning)} + {balance.words:.4f}·{total} = {z}."


def _multiply(factor: float, value: float) -> str:
    return f"{factor:g}·{_bracket(_show(value))}"


def _bracket(number: str) -> str:
    return f"({number})" if number.startswith("−") else number


def _explain_dsrag(inspection: Inspection, view: DocumentView, ord_: int, query: int) -> Iterator[str]:
    if view.rows[ord_] >= 0:
        yield _explain_terms(inspection, view, ord_, query)
    params = inspection.answer.request.params
    assert isinstance(params, DsragParams)
    rank, penalty = _get(view, query, "rank", ord_), params.irrelevant_chunk_penalty
    if math.isnan(rank):
        yield f"Its block is not among the hits, so its similarity is 0 and its value {_show(-penalty)}."
        return
    similarity, decay = _get(view, query, "similarity", ord_), _get(view, query, "decay", ord_)
    factor, value = _get(view, query, "length_factor", ord_), _get(view, query, "value", ord_)
    by_cosine = params.similarity == "cosine" and inspection.answer.request.queries[query].vector is not None
    source = "its cosine with the query" if by_cosine else "the best relevance of its chunks, 1 at most"
    yield f"Its block has rank {rank:.0f} and similarity {_show(similarity)}: {source}."
    yield f"decay = exp(−{rank:.0f}/{params.decay_rate:g}) = {decay:.4f}."
    if math.isnan(value):
        yield "Its document was not searched: none of its blocks is among the first hits."
        return
    yield (
        f"value of the block = ({decay:.4f} · {_show(similarity)} − {penalty:.4f}) · {factor:.4f} for its length "
        f"= {_show(value)}."
    )


def _explain_average(inspection: Inspection, view: DocumentView, ord_: int, query: int) -> Iterator[str]:
    yield _explain_terms(inspection, view, ord_, query)
    numbers = view.numbers[query]
    similarity, value = _get(view, query, "similarity", ord_), _get(view, query, "value", ord_)
    if math.isnan(similarity):
        yield "The query has no vector, so nothing is similar to it."
        return
    yield f"Its block has similarity {_show(similarity)}."
    worth = similarity
    if "quality" in numbers:
        quality, density = _get(view, query, "quality", ord_), _get(view, query, "density", ord_)
        worth = 0.5 * similarity + 0.3 * quality + 0.2 * density
        sums = f"0.5·{_show(similarity)} + 0.3·{quality:.4f} + 0.2·{density:.4f}"
        yield f"With quality and density: {sums} = {_show(worth)}."
    below = ", a tenth as it is below 0.2" if worth < 0.2 else ""
    yield f"value of the block = {_show(value)}{below}."


def _explain_hit(inspection: Inspection, view: DocumentView, ord_: int, query: int) -> Iterator[str]:
    from rse_cli.pipeline.weighing_named import count_hits_taken

    answer = inspection.answer
    yield _explain_terms(inspection, view, ord_, query)
    unit = "Its block" if inspection.weighed.by_blocks else "It"
    similarity, bm25 = _get(view, query, "similarity", ord_), _get(view, query, "bm25", ord_)
    ranks = [_get(view, query, name, ord_) for name in ("dense_rank", "lexical_rank")]
    if not math.isnan(similarity):
        yield f"{unit} has similarity {_show(similarity)} by meaning, which is rank {ranks[0]:.0f}."
    place = "no rank, as no word matches" if math.isnan(ranks[1]) else f"rank {ranks[1]:.0f}"
    yield f"{unit} has {bm25:.4f} by words (BM25), which is {place}."
    rank, score = _get(view, query, "rank", ord_), _get(view, query, "score", ord_)
    retriever = answer.request.retriever
    if math.isnan(rank):
        yield f"The retriever {retriever} doesn't rank it."
        return
    shares = [f"1/({FUSION_K + 1} + {one:.0f})" for one in ranks if not math.isnan(one)]
    fused = f"{' + '.join(shares)} = " if retriever == "hybrid" else ""
    yield f"The retriever {retriever} gives it the score {fused}{score:.4f}, which is rank {rank:.0f}."
    yield f"The method looks at ranks 0 to {count_hits_taken(answer) - 1}."


def _explain_fate(inspection: Inspection, view: DocumentView, ord_: int) -> Iterator[str]:
    """Say in which segment the chunk is, or why it is in none."""
    held = [mark for mark in view.marks if mark.start_chunk <= ord_ < mark.end_chunk]
    for mark in held:
        span = f"chunks {mark.start_chunk} to {mark.end_chunk - 1}"
        yield f"It is in segment {mark.place + 1} ({span}), score {_show(mark.score)}"
        if not inspection.weighed.adds_up:
            yield f"  which is that of {'a row that was cut off' if mark.rest else 'its best row'}."
            continue
        total = float(np.nansum(view.values[mark.start_chunk : mark.end_chunk]))
        cost = f" − {mark.cost:.4f} for a segment" if mark.cost else ""
        rest = f" + {_show(mark.rest)} for what was cut or joined" if mark.rest else ""
        yield f"  = {_show(total)}, the sum of its rows,{cost}{rest}.".replace(",.", ".")
    if held:
        return
    reasons = [
        one for one in inspection.not_chosen if one.path == view.path and one.start_chunk <= ord_ < one.end_chunk
    ]
    for one in reasons:
        yield f"It is in no segment: {fix_minus(one.why)}."
    if not reasons:
        yield "It is in no segment: others were worth more."
