"""Draws PDF files for tests."""

from __future__ import annotations

from pathlib import Path

import pymupdf

from rse_cli.adapters.readers.pdf import read_pdf
from rse_cli.core.models import Document

ROMAN, BOLD = "tiro", "tibo"
LEFT = (
    "Net sales grew in every region of the world",
    "because demand for safety products was strong",
    "and prices rose. Currency took back a part of",
    "the growth, above all in Europe and in Brazil.",
    "Organic growth was highest in the industrial",
    "segment, where new products made the gain.",
)
RIGHT = (
    "Operating margins improved on lower costs of",
    "raw materials and on productivity, less what",
    "was spent on new plants. The effective rate of",
    "income tax fell with the reform of the federal",
    "law, which also brought a charge that will be",
    "paid over eight years, as the law allows us.",
)
BALANCE = (
    ("Years ended December 31", "2018", "2017", "2016"),
    ("Net sales", "32,765", "31,657", "30,109"),
    ("Gain on sale of businesses", "(547)", "(586)", "(111)"),
    ("Effective tax rate", "23.4%", "35.5%", "28.3%"),
)


class Pages:
    """Draws a PDF."""

    def __init__(self) -> None:
        self.pdf = pymupdf.open()

    def add(self, width: float = 612, height: float = 792) -> Pages:
        self.page = self.pdf.new_page(width=width, height=height)
        return self

    def put(self, x: float, y: float, text: str, size: float = 10, font: str = ROMAN, *, rotate: int = 0) -> Pages:
        if text.isascii():
            self.page.insert_text((x, y), text, fontsize=size, fontname=font, rotate=rotate)
        else:
            writer = pymupdf.TextWriter(self.page.rect)
            writer.append((x, y), text, font=pymupdf.Font(font), fontsize=size)
            writer.write_text(self.page)
        return self

    def right(self, x: float, y: float, text: str, size: float = 10) -> Pages:
        return self.put(x - pymupdf.get_text_length(text, ROMAN, size), y, text, size)

    def lines(self, x: float, y: float, lines: tuple[str, ...], leading: float = 12) -> Pages:
        for i, line in enumerate(lines):
            self.put(x, y + i * leading, line)
        return self

    def table(self, x: float, y: float, rows: tuple[tuple[str, ...], ...], first: float, step: float = 70) -> Pages:
        """Labels at `x`, numbers right-aligned at ``x + first`` and every `step` after it, with $ in the second row."""
        for i, (label, *numbers) in enumerate(rows):
            self.put(x, y + 12 * i, label)
            for j, number in enumerate(numbers):
                self.right(x + first + step * j, y + 12 * i, number)
                if i == 1:
                    self.put(x + first + step * j - 50, y + 12 * i, "$")
        return self

    def read(self, name: str = "report.pdf") -> Document:
        return read_pdf(Path(name), self.pdf.tobytes())


def pages_of(document: Document) -> list[str]:
    ends = (*document.page_starts[1:], len(document.text))
    return [document.text[a:b].strip() for a, b in zip(document.page_starts, ends, strict=True)]
