"""``--return``: pages of segments as pictures, always or where a page is mostly picture; text for all else."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from tests.conftest import Run

GREY = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8))
GREY.clear_with(128)

CLOCK = "The pendulum clock of the meridian room loses half a second a week, and is wound on Mondays by the porter."
COMET = "Plate 7: the great comet of 1858 over the roof of the observatory at dusk, drawn by hand"
GATE = "Visitors are admitted on Thursdays after nine, by the small gate beside the chestnut tree, at no charge."
LEDGER = "Ledger of 1872: paid to the glazier for the panes of the orangery, eleven thalers and four groschen."


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    """A PDF with pages of prose and of scans, a scan in strips with its text laid invisibly over it, and a note."""
    folder = tmp_path_factory.mktemp("library")
    pdf = pymupdf.open()
    pdf.new_page().insert_textbox((72, 72, 520, 700), CLOCK)
    plate = pdf.new_page()
    plate.insert_image(plate.rect, pixmap=GREY, keep_proportion=False)
    plate.insert_text((72, 820), COMET, fontsize=9)
    pdf.new_page().insert_textbox((72, 72, 520, 700), GATE)
    pdf.save(folder / "observatory.pdf")
    scan = pymupdf.open()
    page = scan.new_page()
    for top in range(0, 842, 100):
        page.insert_image((0, top, 595, top + 100), pixmap=GREY, keep_proportion=False)
    page.insert_text((72, 400), LEDGER, fontsize=9, render_mode=3)
    scan.save(folder / "ledger.pdf")
    (folder / "note.md").write_text("# Kites\n\nKites fly best in a steady breeze from the lake.\n", encoding="utf-8")
    assert rse_process("ingest", cwd=folder).code == 0
    return folder


def ask(rse: Run, library: Path, query: str, kind: str, images: Path) -> list[tuple[str, list[str]]]:
    """The pages of each segment, and the names of its pictures without the hash."""
    flags = ["--preset", "precision", "--min-confidence", "0", "--return", kind, "--images", images, "--json"]
    found = rse("query", query, *flags, cwd=library).json["segments"]
    for one in found:
        assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in one["images"])
        assert one["text"]
    return [
        (f"{one['path']} {one['start_page']}-{one['end_page']}", [Path(path).stem[-2:] for path in one["images"]])
        for one in found
    ]


@pytest.mark.parametrize(
    ("query", "place", "dynamic", "always"),
    [
        ("the great comet of 1858 over the roof", "observatory.pdf 2-2", ["p2"], ["p2"]),
        ("how much does the pendulum clock lose?", "observatory.pdf 1-1", [], ["p1"]),
        ("what was paid to the glazier?", "ledger.pdf 1-1", ["p1"], ["p1"]),
        ("kites in a steady breeze", "note.md None-None", [], []),
    ],
)
def test_pictures_come_for_scans_when_dynamic_and_for_every_page_else(
    library: Path, rse: Run, tmp_path: Path, query: str, place: str, dynamic: list[str], always: list[str]
) -> None:
    assert ask(rse, library, query, "dynamic", tmp_path / "a")[0] == (place, dynamic)
    assert ask(rse, library, query, "page-images", tmp_path / "b")[0] == (place, always)


def test_a_segment_over_prose_and_a_scan_gets_all_its_pages(library: Path, rse: Run, tmp_path: Path) -> None:
    flags = ["-m", "parent", "--set", "k=1", "--path", "observatory.pdf", "--return", "dynamic", "--images", tmp_path]

    (segment,) = rse("query", "pendulum clock", *flags, "--json", cwd=library).json["segments"]

    assert (segment["start_page"], segment["end_page"]) == (1, 3)
    assert [Path(path).stem[-2:] for path in segment["images"]] == ["p1", "p2", "p3"]


def test_pictures_stand_below_the_text_of_their_segment(library: Path, rse: Run, tmp_path: Path) -> None:
    flags = ["--preset", "precision", "--return", "page-images", "--images", tmp_path / "shots"]

    done = rse("query", "great comet of 1858", "kites in a steady breeze", *flags, cwd=library)

    comet, kites = sorted(done.text.rstrip("\n").split("\n\n", 1), key=lambda part: "Kites" in part)
    *_, text, picture = comet.split("\n")
    assert text == f"  {COMET}"
    assert picture.startswith(f"  {tmp_path}/shots/observatory-") and picture.endswith("-p2.png")
    assert Path(picture.strip()).exists()
    assert "shots" not in kites


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--return", "dynamic"], "--return page-images and dynamic go with --images DIR"),
        (["--images", "shots"], "--return page-images and dynamic go with --images DIR"),
        (["--return", "page-images", "--images", "note.md"], "can't write page images to note.md: File exists"),
    ],
)
def test_pictures_that_can_not_be_made_are_one_line(library: Path, rse: Run, flags: list[str], reason: str) -> None:
    done = rse("query", "great comet of 1858", *flags, cwd=library)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {reason}\n")
