"""Page images: pages of a PDF as PNG files with names of their own, and what of a page is picture."""

import os

import pymupdf
import pytest

from rse_cli.adapters.page_images import describe_pages, is_pdf, measure_pictures, render_pages
from rse_cli.errors import ReadError, RseError

GREY = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8))
GREY.clear_with(128)


def write_pdf(path, *pages, size=(400, 400), rotation=0, **saved):
    """Write a PDF; each page is a list of a text, of boxes of images, or of boxes of drawn areas (``("area", box)``)."""
    pdf = pymupdf.open()
    for things in pages:
        page = pdf.new_page(width=size[0], height=size[1])
        for thing in things:
            if isinstance(thing, str):
                page.insert_text((20, 30), thing)
            elif thing[0] == "area":
                page.draw_rect(pymupdf.Rect(thing[1]), fill=(1, 0, 0))
            else:
                page.insert_image(pymupdf.Rect(thing), pixmap=GREY, keep_proportion=False)
        page.set_rotation(rotation)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pdf.tobytes(**saved))
    return path


def measure(path):
    picture = pymupdf.Pixmap(str(path))
    return picture.width, picture.height


# --- rendering ---


def test_each_page_becomes_a_png_of_its_size_at_150_dpi(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"], [(0, 0, 400, 400)], ["three"], size=(144, 72))
    images = render_pages(path, [3, 2], tmp_path / "out" / "deep")
    assert [image.parent for image in images] == [tmp_path / "out" / "deep"] * 2
    assert [image.name[-7:] for image in images] == ["-p3.png", "-p2.png"]
    assert [measure(image) for image in images] == [(300, 150), (300, 150)]
    assert pymupdf.Pixmap(str(images[1])).pixel(150, 75) == (128, 128, 128)
    assert sorted(file.name for file in (tmp_path / "out" / "deep").iterdir()) == sorted(i.name for i in images)


def test_the_resolution_can_be_chosen(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"], size=(144, 72))
    assert measure(render_pages(path, [1], tmp_path, dpi=72)[0]) == (144, 72)


def test_a_huge_page_is_rendered_at_a_lower_resolution(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"], size=(14400, 3600))
    width, height = measure(render_pages(path, [1], tmp_path)[0])
    assert (width, height) == (12000, 3000)


def test_the_same_page_gives_the_same_bytes_under_the_same_name(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one", (50, 50, 90, 90)])
    (first,) = render_pages(path, [1], tmp_path / "out", document="x/a.pdf")
    before = first.read_bytes()
    (second,) = render_pages(path, [1], tmp_path / "out", document="x/a.pdf")
    assert (second, second.read_bytes()) == (first, before)
    assert first.name == "a-60574159-p1.png"


def test_a_changed_document_replaces_its_picture(tmp_path):
    (image,) = render_pages(write_pdf(tmp_path / "a.pdf", ["one"]), [1], tmp_path / "out")
    before = image.read_bytes()
    render_pages(write_pdf(tmp_path / "a.pdf", ["two"]), [1], tmp_path / "out")
    assert image.read_bytes() != before


def test_equal_names_in_different_folders_get_different_pictures(tmp_path):
    paths = [write_pdf(tmp_path / folder / "a.pdf", [folder]) for folder in ("x", "y")]
    images = [render_pages(path, [1], tmp_path, document=f"{path.parent.name}/a.pdf")[0] for path in paths]
    assert images[0] != images[1]


@pytest.mark.parametrize(
    ("document", "begins"),
    [
        ("Q3 report (final).pdf", "Q3_report_final-"),
        ("..", "page-"),
        ("../../etc/passwd", "passwd-"),
        ("-rf.pdf", "rf-"),
        ("年报 2025.pdf", "年报_2025-"),
        ("a\nb\x1b[0m.pdf", "a_b_0m-"),
        ("caf\udce9.pdf", "caf-"),
        ("***.pdf", "page-"),
    ],
)
def test_names_of_pictures_are_safe_whatever_the_documents_name(tmp_path, document, begins):
    path = write_pdf(tmp_path / "in" / "a.pdf", ["one"])
    (image,) = render_pages(path, [1], tmp_path / "out", document=document)
    assert image.parent == tmp_path / "out"
    assert image.name.startswith(begins)
    assert len(image.name) == len(begins) + len("01234567-p1.png")


def test_a_long_name_fits_the_file_system(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"])
    (image,) = render_pages(path, [1], tmp_path, document="𠀀" * 100 + ".pdf")
    assert image.exists()


def test_a_page_that_is_not_there_is_an_error_before_anything_is_written(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"])
    for page in (0, 2):
        with pytest.raises(ReadError, match=f"has no page {page}, but 1"):
            render_pages(path, [1, page], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"])
    (tmp_path / "file").write_text("")
    with pytest.raises(RseError, match=r"can't write page images to .*file"):
        render_pages(path, [1], tmp_path / "file" / "out")


def test_a_picture_that_cannot_be_put_in_place_leaves_no_draft(tmp_path):
    path = write_pdf(tmp_path / "in" / "a.pdf", ["one"])
    (image,) = render_pages(path, [1], tmp_path / "out")
    image.unlink()
    (image / "in the way").mkdir(parents=True)
    with pytest.raises(RseError, match="can't write page images"):
        render_pages(path, [1], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [image]


@pytest.mark.parametrize(
    "visit", [lambda path, out: render_pages(path, [1], out), lambda path, _: describe_pages(path)]
)
def test_files_that_cannot_be_opened_are_one_line(tmp_path, visit):
    locked = write_pdf(
        tmp_path / "locked.pdf", ["one"], encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="o", user_pw="u"
    )
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and nothing else")
    for path, reason in (
        (locked, "needs a password"),
        (broken, "damaged PDF"),
        (tmp_path / "gone.pdf", "No such file"),
    ):
        with pytest.raises(ReadError, match=reason):
            visit(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_messages_of_the_library_stay_off_the_streams(tmp_path, capfd):
    path = write_pdf(tmp_path / "a.pdf", ["one"], [(0, 0, 9, 9)])
    path.write_bytes(path.read_bytes().replace(b"endstream", b"endstrxxm"))
    render_pages(path, [1, 2], tmp_path)
    measure_pictures(path, [1, 2])
    assert describe_pages(path)[0] == "text"
    assert capfd.readouterr() == ("", "")


def test_a_damaged_page_costs_only_itself(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"], ["two"], [(0, 0, 400, 400)])
    pdf = pymupdf.open(path)
    pdf.update_stream(pdf[1].get_contents()[0], b"q " * 100_000)
    path.write_bytes(pdf.tobytes())
    assert describe_pages(path) == ["text", "empty", "picture"]
    assert measure_pictures(path, [1, 2, 3]) == [0.0, 0.0, 1.0]
    assert len(render_pages(path, [1, 3], tmp_path / "out")) == 2
    with pytest.raises(ReadError, match=r"damaged page 2: .*too many nested graphics states"):
        render_pages(path, [2], tmp_path / "out")


def test_a_document_may_claim_more_pages_than_it_has(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["one"], ["two"])
    pdf = pymupdf.open(path)
    pages = pdf.xref_get_key(pdf.pdf_catalog(), "Pages")[1].split()[0]
    pdf.xref_set_key(int(pages), "Count", "4")
    path.write_bytes(pdf.tobytes())
    assert describe_pages(path) == ["text", "text", "empty", "empty"]


# --- how much is picture ---


@pytest.mark.parametrize(
    ("things", "share"),
    [
        ([], 0.0),
        (["words"], 0.0),
        ([(0, 0, 400, 400)], 1.0),
        ([(0, 0, 200, 400)], 0.5),
        ([(100, 100, 200, 200)], 0.0625),
        ([(0, 0, 200, 200), (200, 200, 400, 400)], 0.5),
        ([(0, 0, 200, 400), (100, 0, 300, 400)], 0.75),
        ([(300, 0, 900, 400)], 0.25),
        ([(500, 500, 600, 600)], 0.0),
        ([("area", (0, 0, 400, 400))], 0.0),
    ],
)
def test_the_share_is_that_of_the_union_of_images_on_the_page(tmp_path, things, share):
    assert measure_pictures(write_pdf(tmp_path / "a.pdf", things), [1]) == [pytest.approx(share, abs=0.005)]


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_the_share_is_the_same_on_a_turned_page(tmp_path, rotation):
    path = write_pdf(tmp_path / "a.pdf", [(0, 0, 200, 100)], size=(400, 200), rotation=rotation)
    assert measure_pictures(path, [1]) == [pytest.approx(0.25, abs=0.005)]


def test_shares_come_in_the_order_of_the_pages_asked_for(tmp_path):
    path = write_pdf(tmp_path / "a.pdf", ["words"], [(0, 0, 400, 400)])
    assert measure_pictures(path, [2, 1, 2]) == [1.0, 0.0, 1.0]
    with pytest.raises(ReadError, match="has no page 3, but 2"):
        measure_pictures(path, [3])


def test_pages_are_told_apart_by_what_they_hold(tmp_path):
    path = write_pdf(
        tmp_path / "a.pdf",
        ["7"],
        ["a scan with its words beneath", (0, 0, 400, 400)],
        ["ABC-000123", (0, 0, 400, 400)],
        ["Figure 1", (0, 0, 100, 100)],
        [(0, 0, 10, 10)],
        [("area", (0, 0, 9, 9))],
        ["…"],
        [],
    )
    assert describe_pages(path) == ["text", "text", "picture", "text", "picture", "picture", "empty", "empty"]


def test_a_pdf_is_known_by_its_content(tmp_path):
    path = write_pdf(tmp_path / "a.bin", ["one"])
    (tmp_path / "junk.pdf").write_bytes(b"\r\njunk before " + path.read_bytes())
    (tmp_path / "b.pdf").write_text("no PDF")
    assert is_pdf(path)
    assert is_pdf(tmp_path / "junk.pdf")
    assert not is_pdf(tmp_path / "b.pdf")
    assert not is_pdf(tmp_path / "gone.pdf")
    assert not is_pdf(tmp_path)
    os.mkfifo(tmp_path / "pipe.pdf")
    assert not is_pdf(tmp_path / "pipe.pdf")
