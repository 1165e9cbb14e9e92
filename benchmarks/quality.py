"""Recall, precision and refusals on questions with known answers, beside plain top-k of the same index.

Run with ``make bench-quality DATA=FOLDER`` or ``python -m benchmarks.quality --data FOLDER [--write FILE]``. The folder
holds ``chunking-en`` and ``reading-zh``, each with ``docs/`` and ``cases-dev.jsonl``; its documents are copied into a
temporary folder, because the refusals are measured by taking each one away. About four minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.plain_topk import (
    Blocks,
    cut_spans,
    fuse_ranks,
    index_words,
    join_blocks,
    rank_by_cosine,
    rank_by_words,
    read_chunks,
)
from benchmarks.processes import BenchmarkError, describe_machine, find_rse, make_environ, run_checked
from benchmarks.tables import format_table, mark_least, mark_most
from rse_cli.core.metrics import DocumentSpan, Score, average_scores, score_spans

# What the method must reach on these questions.
FILL_RECALL: dict[str, dict[int, float]] = {
    "chunking-en": {500: 62, 1000: 76, 2000: 86, 4000: 91.5},
    "reading-zh": {150: 78, 300: 89, 600: 95},
}
MOST_SEGMENTS_AT = {4000: 8}
PRESETS: dict[str, dict[str, float]] = {
    "precision": {"recall": 66, "precision": 38},
    "balanced": {"recall": 87.5, "precision": 15, "chars": 2450, "segments": 3},
    "find_all": {"recall": 93.5, "chars": 5200},
}
MOST_LOST, LEAST_REFUSED = 1, 85

Cases = Sequence[Mapping[str, Any]]

BLOCK_CHARS = {
    "blocks of 800": 800,
    "blocks of 400": 400,
    "single chunks": 1,
}  # a chunk longer than the limit is a block by itself


@dataclass(frozen=True, slots=True)
class Collection:
    """A set of documents and questions, with the copy of the documents and the store made of it."""

    name: str
    cases: Cases
    docs: Path
    store: Path


def main() -> int:
    """Measure, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.quality", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with chunking-en and reading-zh")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the tables to a file")
    args = parser.parse_args()
    try:
        check_data(args.data)
        with tempfile.TemporaryDirectory(prefix="rse-quality-") as folder:
            report = measure_quality(args.data, Path(folder))
    except BenchmarkError as fault:
        print(f"bench-quality: {fault}", file=sys.stderr)
        return 2
    print(report)
    if args.write:
        args.write.write_text(report + "\n", encoding="utf-8")
    return 0


def check_data(data: Path) -> None:
    """Raise `BenchmarkError` that names everything missing from the folder."""
    wanted = [data / name / part for name in FILL_RECALL for part in ("docs", "cases-dev.jsonl")]
    missing = [str(path) for path in wanted if not path.exists()]
    if missing:
        raise BenchmarkError(f"missing: {', '.join(missing)} (give the folder with make bench-quality DATA=FOLDER)")


def measure_quality(data: Path, folder: Path) -> str:
    """Return the whole report."""
    environ = make_environ(folder / "no-settings")
    english, chinese = (prepare_collection(data / name, folder / name, environ) for name in FILL_RECALL)
    parts = [f"Measured on {describe_machine()}."]
    for collection in (english, chinese):
        parts += report_fill(collection, environ)
    parts += report_presets(english, environ)
    parts += report_refusals(english, environ)
    return "\n\n".join(parts)


def prepare_collection(source: Path, folder: Path, environ: Mapping[str, str]) -> Collection:
    """Copy the documents and index the copy."""
    say(f"{source.name}: index")
    docs, store = folder / "docs", folder / "store"
    shutil.copytree(source / "docs", docs)
    run_checked([find_rse(), "ingest", ".", "--store", str(store), "--quiet"], docs, environ)
    cases_file = source / "cases-dev.jsonl"
    cases = [json.loads(line) for line in cases_file.read_text(encoding="utf-8").split("\n") if line.strip()]
    # A case that expects nothing has no recall.
    return Collection(source.name, [case for case in cases if case["expect"]], docs, store)


def ask(store: Path, cases: Cases, environ: Mapping[str, str], *flags: str) -> list[list[Mapping[str, Any]]]:
    """Return the segments of each case's answer, from one process; a blank question (reading-zh has one) has none."""
    asked = [case for case in cases if case["query"].strip()]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write("".join(json.dumps(case) + "\n" for case in asked))
        file.flush()
        command = [find_rse(), "query", "--store", str(store), "--batch", file.name, "--jsonl", *flags]
        # Exit code 1 says that every answer is empty.
        run = run_checked(command, store.parent, environ, codes=(0, 1))
    lines = run.stdout.decode().split("\n")[:-1]
    if len(lines) != len(asked):
        raise BenchmarkError(f"{len(asked)} questions but {len(lines)} answers")
    answers = iter([json.loads(line)["segments"] for line in lines])
    return [next(answers) if case["query"].strip() else [] for case in cases]


def score_answers(collection: Collection, answers: Sequence[Sequence[Mapping[str, Any]]]) -> Score:
    """Return the mean over cases."""
    return average_scores(
        [
            score_spans(locate(case["expect"]), locate(segments))
            for case, segments in zip(collection.cases, answers, strict=True)
        ]
    )


def locate(spans: Sequence[Mapping[str, Any]]) -> list[DocumentSpan]:
    """Return spans without what else is said of them."""
    return [DocumentSpan(span["path"], span["start_char"], span["end_char"]) for span in spans]


def report_fill(collection: Collection, environ: Mapping[str, str]) -> list[str]:
    """Return the tables for exactly N characters: `rse` with its targets, and all methods side by side."""
    targets = FILL_RECALL[collection.name]
    rows, recalls = [], []
    for max_chars, target in targets.items():
        say(f"{collection.name}: rse, {max_chars} characters")
        answers = ask(collection.store, collection.cases, environ, "--max-chars", str(max_chars), "--fill")
        score = score_answers(collection, answers)
        most = MOST_SEGMENTS_AT.get(max_chars) if collection.name == "chunking-en" else None
        segments = mark_most(score.n_spans, most) if most else f"{score.n_spans:.1f}"
        recalls.append(f"{100 * score.recall:.1f}")
        rows.append([f"{max_chars:,}", mark_least(100 * score.recall, target, 2), *describe_score(score, segments)])
    say(f"{collection.name}: plain top-k")
    others = measure_plain(collection, list(targets))
    return [
        f"## {collection.name}: {len(collection.cases)} questions, `--max-chars N --fill`",
        format_table(["N", "recall", "precision", "IoU", "chars", "segments", "empty"], rows),
        "Recall when N characters are returned, beside plain top-k of the same index:",
        format_table(["method", *(f"{one:,}" for one in targets)], [["**rse**", *recalls], *others]),
    ]


def describe_score(score: Score, segments: str) -> list[str]:
    """Return the columns after recall."""
    shares = [f"{100 * one:.1f}" for one in (score.precision, score.iou)]
    return [*shares, f"{score.chars:,.0f}", segments, f"{100 * score.empty:.2f}"]


def measure_plain(collection: Collection, budgets: Sequence[int]) -> list[list[str]]:
    """Return a row of recalls for each classic method."""
    from rse_cli.cli.wiring import load_index_encoder, open_index

    index = open_index(str(collection.store))
    chunks = read_chunks(index.store.snapshot())
    queries = [case["query"] for case in collection.cases]
    vectors, _ = load_index_encoder(index, for_query=True).encode_queries(queries)
    rows = []
    for name, block_chars in BLOCK_CHARS.items():
        blocks = join_blocks(chunks, block_chars)
        words = index_words(blocks, queries)
        by_cosine = [rank_by_cosine(blocks, vector) for vector in vectors]
        by_words = [rank_by_words(words, query) for query in queries]
        fused = [fuse_ranks(*pair) for pair in zip(by_cosine, by_words, strict=True)]
        for label, rankings in (("cosine", by_cosine), ("BM25", by_words), ("both, fused by rank", fused)):
            rows.append([f"{name}, {label}", *measure_rankings(collection, blocks, rankings, budgets)])
    return rows


def measure_rankings(
    collection: Collection, blocks: Blocks, rankings: Sequence[Sequence[int]], budgets: Sequence[int]
) -> list[str]:
    """Return the mean recall in percent at each budget."""
    recalls = []
    for budget in budgets:
        # No block is empty, so `budget` blocks always suffice.
        answers = [cut_spans([blocks.spans[at] for at in ranking[:budget]], budget) for ranking in rankings]
        scores = [
            score_spans(locate(case["expect"]), found) for case, found in zip(collection.cases, answers, strict=True)
        ]
        recalls.append(f"{100 * average_scores(scores).recall:.1f}")
    return recalls


def report_presets(collection: Collection, environ: Mapping[str, str]) -> list[str]:
    """Return the table of presets, and whether every segment is a slice of its file."""
    rows, n_segments, n_wrong = [], 0, 0
    for preset, targets in PRESETS.items():
        say(f"{collection.name}: preset {preset}")
        answers = ask(collection.store, collection.cases, environ, "--preset", preset)
        score = score_answers(collection, answers)
        segments = [segment for answer in answers for segment in answer]
        n_segments += len(segments)
        n_wrong += count_wrong_slices(collection.docs, segments)
        rows.append([preset, *mark_preset(score, targets)])
    return [
        f"## {collection.name}: presets",
        format_table(["preset", "recall", "precision", "IoU", "chars", "segments", "empty"], rows),
        f"Segments whose text is not `file[start_char:end_char]`: {mark_most(n_wrong, 0, 0)} of {n_segments:,}.",
    ]


def mark_preset(score: Score, targets: Mapping[str, float]) -> list[str]:
    """Return the columns of a preset, marked where it has a target."""
    recall, precision, iou = (100 * one for one in (score.recall, score.precision, score.iou))
    return [
        mark_least(recall, targets["recall"], 2),
        mark_least(precision, targets["precision"], 2) if "precision" in targets else f"{precision:.2f}",
        f"{iou:.1f}",
        mark_most(score.chars, targets["chars"], 0) if "chars" in targets else f"{score.chars:,.0f}",
        mark_most(score.n_spans, targets["segments"], 2) if "segments" in targets else f"{score.n_spans:.2f}",
        f"{100 * score.empty:.2f}",
    ]


def count_wrong_slices(docs: Path, segments: Sequence[Mapping[str, Any]]) -> int:
    """Return how many segments differ from the slice of the decoded file, line ends and all."""
    texts = {path: (docs / path).read_bytes().decode("utf-8-sig") for path in {one["path"] for one in segments}}
    return sum(one["text"] != texts[one["path"]][one["start_char"] : one["end_char"]] for one in segments)


def report_refusals(collection: Collection, environ: Mapping[str, str]) -> list[str]:
    """Return how many questions are lost at the default floor, and how many rightly refused without their document."""
    say(f"{collection.name}: refusals")
    answers = ask(collection.store, collection.cases, environ)
    lost = 100 * sum(not segments for segments in answers) / len(answers)
    rows, refused_all, asked_all = [], 0, 0
    for path in sorted({span["path"] for case in collection.cases for span in case["expect"]}):
        say(f"{collection.name}: without {path}")
        refused, asked = refuse_without(collection, path, environ)
        rows.append([path, f"{asked}", f"{refused}", f"{100 * refused / asked:.1f}"])
        refused_all, asked_all = refused_all + refused, asked_all + asked
    share = 100 * refused_all / asked_all
    return [
        f"## {collection.name}: nothing found",
        f"Answerable questions lost at the default floor: {mark_most(lost, MOST_LOST, 2)} percent.",
        f"Refused by an index without their document: {mark_least(share, LEAST_REFUSED, 1)} percent.",
        format_table(["index without", "questions", "refused", "percent"], rows),
    ]


def refuse_without(collection: Collection, path: str, environ: Mapping[str, str]) -> tuple[int, int]:
    """Return how many of a document's questions an index without it refuses, and how many were asked.

    The index is a copy whose document is removed by an incremental ingest, which encodes nothing.
    """
    cases = [case for case in collection.cases if any(span["path"] == path for span in case["expect"])]
    with tempfile.TemporaryDirectory(dir=collection.store.parent) as folder:
        store, away = Path(folder) / "store", Path(folder) / "away"
        shutil.copytree(collection.store, store)
        (collection.docs / path).rename(away)
        try:
            run = run_checked([find_rse(), "ingest", ".", "--store", str(store), "--json"], collection.docs, environ)
            if path not in json.loads(run.stdout)["removed"]:
                raise BenchmarkError(f"ingest didn't remove {path}")
            answers = ask(store, cases, environ)
        finally:
            away.rename(collection.docs / path)
    return sum(not segments for segments in answers), len(cases)


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"bench-quality: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
