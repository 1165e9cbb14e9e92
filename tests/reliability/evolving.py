"""A folder of small documents that changes step by step, the same way for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

WORDS = [
    "anchor",
    "buoy",
    "channel",
    "current",
    "deck",
    "engine",
    "fender",
    "galley",
    "harbour",
    "hull",
    "jetty",
    "keel",
    "lantern",
    "mast",
    "needle",
    "oar",
    "pump",
    "quay",
    "rope",
    "rudder",
    "sail",
    "tide",
    "tiller",
    "vane",
    "wake",
    "winch",
    "yard",
    "zephyr",
    "filter",
    "spring",
    "water",
    "shade",
    "soap",
    "seal",
    "frost",
    "rats",
]

SUFFIXES = (".md", ".txt", ".csv", ".html", ".py", ".json")


@dataclass(slots=True)
class EvolvingFolder:
    """A folder and the dice that change it."""

    root: Path
    random: random.Random
    made: int = 0

    def grow(self, count: int) -> None:
        """Add files."""
        for _ in range(count):
            self.made += 1
            place = self.root / self.random.choice(("", "deep", "deep/er", "O'Brien's \"x\"", "灯塔"))
            place.mkdir(parents=True, exist_ok=True)
            path = place / f"{self.random.choice(WORDS)} {self.made}{self.random.choice(SUFFIXES)}"
            path.write_text(self.write_document(path.suffix), encoding="utf-8")

    def step(self) -> None:
        """Change a few things."""
        acts = (self.add, self.edit, self.edit, self.append, self.delete, self.rename, self.swap, self.touch, self.copy)
        for _ in range(self.random.randint(2, 8)):
            self.random.choice(acts)()

    def list_files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file() and ".rse" not in path.parts)

    def pick(self) -> Path:
        if not self.list_files():
            self.grow(1)
        return self.random.choice(self.list_files())

    def add(self) -> None:
        self.grow(self.random.choice((1, 1, 2, 14)))

    def edit(self) -> None:
        path = self.pick()
        path.write_text(self.write_document(path.suffix), encoding="utf-8")

    def append(self) -> None:
        path = self.pick()
        path.write_bytes(path.read_bytes() + f"\n{self.write_sentence()}\n".encode())

    def delete(self) -> None:
        self.pick().unlink()

    def rename(self) -> None:
        path = self.pick()
        self.made += 1
        path.rename(path.with_name(f"renamed {self.made}{path.suffix}"))

    def swap(self) -> None:
        one, other = self.pick(), self.pick()
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)

    def touch(self) -> None:
        path = self.pick()
        path.write_bytes(path.read_bytes())

    def copy(self) -> None:
        path = self.pick()
        self.made += 1
        path.with_name(f"copy {self.made}{path.suffix}").write_bytes(path.read_bytes())

    def write_sentence(self) -> str:
        words = self.random.choices(WORDS, k=self.random.randint(6, 20))
        return f"{' '.join(words).capitalize()}."

    def write_document(self, suffix: str) -> str:
        if self.random.random() < 0.05:
            return ""
        sentences = [self.write_sentence() for _ in range(self.random.randint(1, 12))]
        if suffix == ".html":
            return "<html><body>" + "".join(f"<p>{sentence}</p>" for sentence in sentences) + "</body></html>"
        if suffix == ".csv":
            return "name,value\n" + "".join(f"{sentence[:20]},{at}\n" for at, sentence in enumerate(sentences))
        if suffix == ".json" and self.random.random() < 0.3:
            return "{broken"
        return f"# {sentences[0]}\n\n" + "\n\n".join(sentences) + "\n"
