"""Text to measure speed and memory on: sentences of the sample documents, cut at a word and put together anew.

Pure and seeded, so that every run and machine gets the same text. Imports nothing heavy: see `processes.run_measured`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

SAMPLES = ("handbook.md", "faq.md", "incident-report.md", "notes.txt", "policies/leave.rst")

_SENTENCE = re.compile(r"[A-Z][^.!?\n]{30,220}[.!?]")


def read_sentences(sample_docs: Path) -> list[str]:
    """Return the English sentences of the sample documents, in order, once each."""
    text = "\n".join((sample_docs / name).read_text(encoding="utf-8") for name in SAMPLES)
    return list(dict.fromkeys(_SENTENCE.findall(text)))


def splice_sentence(sentences: Sequence[str], rng: random.Random) -> str:
    """Return the first part of one sentence with the last part of another."""
    first, last = (rng.choice(sentences).split() for _ in range(2))
    return " ".join(first[: rng.randint(2, len(first) - 1)] + last[rng.randint(1, len(last) - 2) :])


def write_document(sentences: Sequence[str], n_sentences: int, rng: random.Random) -> str:
    """Return a Markdown document of so many spliced sentences, in paragraphs of four and sections of twelve."""
    parts = [f"# {make_heading(sentences, rng)}"]
    for at in range(0, n_sentences, 4):
        if at % 12 == 0:
            parts.append(f"## {make_heading(sentences, rng)}")
        parts.append(" ".join(splice_sentence(sentences, rng) for _ in range(min(4, n_sentences - at))))
    return "\n\n".join(parts) + "\n"


def make_heading(sentences: Sequence[str], rng: random.Random) -> str:
    """Return four words out of a sentence."""
    words = rng.choice(sentences).rstrip(".!?").split()
    at = rng.randrange(max(len(words) - 4, 1))
    return " ".join(words[at : at + 4]).capitalize()


def make_question(sentences: Sequence[str], rng: random.Random) -> str:
    """Return a question in words of the sample documents that none of them asks."""
    words = splice_sentence(sentences, rng).rstrip(".!?").split()[:14]
    return f"{rng.choice(('How does', 'When is', 'Why would', 'Who says that'))} {' '.join(words).lower()}?"
