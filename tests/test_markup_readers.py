"""What the readers of HTML, DOCX, PPTX, XLSX and EPUB make of files that the libraries themselves wrote."""

from __future__ import annotations

import datetime
import functools
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Inches

from rse_cli.adapters.readers import archive
from rse_cli.adapters.readers.archive import check_archive, report_broken
from rse_cli.adapters.readers.archive import parse_xml as parse_part
from rse_cli.adapters.readers.building import Cell, TextBuilder, describe_picture, fold_spaces, lay_out_rows
from rse_cli.adapters.readers.docx import read_docx
from rse_cli.adapters.readers.epub import read_epub
from rse_cli.adapters.readers.html import read_html
from rse_cli.adapters.readers.pptx import read_pptx
from rse_cli.adapters.readers.xlsx import read_xlsx, show_number
from rse_cli.core.models import Document
from rse_cli.errors import ReadError

Reading = Callable[[Path, bytes], Document]


def html(markup: str | bytes, name: str = "page.html") -> Document:
    return read_html(Path(name), markup.encode() if isinstance(markup, str) else markup)


def atoms(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in document.atoms]


def headings(document: Document) -> list[tuple[int, str]]:
    for heading in document.headings:
        assert document.text.startswith(heading.text, heading.start_char)
    return [(heading.level, heading.text) for heading in document.headings]


def saved(thing: object) -> bytes:
    buffer = io.BytesIO()
    thing.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def repack(data: bytes, changes: dict[str, bytes]) -> bytes:
    """The zip container `data` with entries put in place of others, or added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        parts = {name: old.read(name) for name in old.namelist()} | changes
        for name, content in parts.items():
            new.writestr(name, content)
    return buffer.getvalue()


def part(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        return container.read(name)


# Building blocks


def test_blocks_stand_apart_while_items_and_rows_follow_line_by_line() -> None:
    builder = TextBuilder()
    builder.add_heading("One", 1)
    builder.add_paragraph("a\n b")
    builder.add_item("x")
    builder.add_item("y", depth=2)
    builder.add_table([["k", "v"], ["1", "2"]])
    builder.add_table([["z"]])
    builder.add_code("\n\n  f()\n\n  g()\n\n")
    document = builder.document()
    assert document.text == "One\n\na\nb\n\n- x\n  - y\n\nk | v\n1 | 2\n\nz\n\n  f()\n\n  g()\n"
    assert atoms(document) == ["k | v\n", "1 | 2\n", "z\n", "  f()\n\n  g()\n"]
    assert not document.verbatim and not document.wrapped


def test_an_empty_row_or_column_of_a_table_is_left_out_and_an_inner_gap_kept() -> None:
    builder = TextBuilder()
    builder.add_table([["", "", "2019", "2020"], ["", "Sales", "", "7"], ["", "", "", ""], ["", "Costs", "3", ""]])
    assert builder.document().text == "| 2019 | 2020\nSales |  | 7\nCosts | 3\n"


def test_pages_start_where_their_text_starts_and_an_empty_page_where_the_next_does() -> None:
    builder = TextBuilder()
    for text in ("", "one", "", "two"):
        builder.start_page()
        builder.add_paragraph(text)
    document = builder.document()
    assert (document.text, document.page_starts) == ("one\n\ntwo\n", (0, 0, 5, 5))


def test_a_builder_takes_over_another_with_its_offsets() -> None:
    inner = TextBuilder()
    inner.add_heading("H", 2)
    inner.add_table([["r"]])
    builder = TextBuilder()
    builder.add_paragraph("before")
    builder.extend(inner)
    builder.extend(TextBuilder())
    builder.add_paragraph("after")
    document = builder.document()
    assert document.text == "before\n\nH\n\nr\n\nafter\n"
    assert headings(document) == [(2, "H")]
    assert atoms(document) == ["r\n"]


def test_a_heading_as_long_as_a_paragraph_is_one() -> None:
    builder = TextBuilder()
    builder.add_heading("w" * 301, 1)
    assert builder.document().headings == ()


def test_invisible_characters_go_but_the_joiners_of_persian_stay() -> None:
    assert fold_spaces("co\xadop\u200b\ufeff \x00\ud800 a\xa0\u3000b\u200d") == "coop ab"[:5] + "a b"
    assert fold_spaces("می\u200cخواهم") == "می\u200cخواهم"


@given(st.lists(st.tuples(st.sampled_from(["paragraph", "item", "heading", "row", "code", "page"]), st.text())))
def test_text_headings_and_atoms_agree_for_any_blocks(blocks: list[tuple[str, str]]) -> None:
    builder = TextBuilder()
    builder.start_page()
    builder.add_paragraph("x")
    for kind, text in blocks:
        if kind == "page":
            builder.start_page()
        elif kind == "row":
            builder.add_table([[text, text]])
        elif kind == "heading":
            builder.add_heading(text, 1)
        else:
            getattr(builder, f"add_{kind}")(text)
    document = builder.document()
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\xad\u200b\ufeff\ud800-\udfff\xa0]", document.text.replace("\x0b", "").replace("\x0c", "")
    )
    assert document.text.endswith("\n") and document.text.encode("utf-8")
    for heading in document.headings:
        assert document.text.startswith(heading.text + "\n", heading.start_char)
    for start, end in document.atoms:
        assert document.text[end - 1] == "\n" and start + 1 < end
        assert start == 0 or document.text[start - 1] == "\n"


def test_absurd_spans_are_ignored() -> None:
    rows = [[Cell("x", columns=1000, rows=1000)] for _ in range(300)]
    assert sum(map(len, lay_out_rows(rows))) < 20_000


@pytest.mark.parametrize(
    "alt",
    [
        "",
        None,
        "image",
        "Image 3",
        "logo",
        "DSC_001.JPG",
        "12",
        "-",
        "A picture containing text\n\nDescription automatically generated",
    ],
)
def test_an_alternative_text_that_says_nothing_is_dropped(alt: str | None) -> None:
    assert describe_picture(alt) == ""


# HTML


def test_a_page_becomes_headings_paragraphs_items_rows_and_code() -> None:
    document = html("""<!DOCTYPE html><html><head><title> My&nbsp;&amp; page </title><style>p {}</style></head><body>
        <h1>Guide<a class="headerlink" href="#g">¶</a></h1>
        <p>One   <b>bo</b>ld &mdash; two<br>line&shy;s <a href="u">link</a> <img src="s.png" alt="Sales by region"></p>
        <ul><li>one<ul><li>inner</ul><li><p>two</p></ul>
        <h2>Code in C#</h2>
        <pre>\n  if x:\n\n      y()\n</pre>
        <table><caption>Units</caption><tr><th rowspan=2>Region<th colspan=2>2019<tr><th>Q1<th>Q2
        <tr><td>North<td>1<td><p>2</p></table>
        <script>var hidden = "<p>";</script><noscript>on</noscript><template><p>t</p></template>
        <svg><text>s</text></svg>
        </body></html>""")
    assert document.title == "My & page"
    assert document.text == (
        "Guide\n\nOne bold — two\nlines link [Sales by region]\n\n- one\n  - inner\n- two\n\nCode in C#\n\n"
        "  if x:\n\n      y()\n\nUnits\n\nRegion | 2019\n| Q1 | Q2\nNorth | 1 | 2\n"
    )
    assert headings(document) == [(1, "Guide"), (2, "Code in C#")]
    assert atoms(document) == ["  if x:\n\n      y()\n", "Region | 2019\n", "| Q1 | Q2\n", "North | 1 | 2\n"]
    assert not document.verbatim and not document.wrapped


def test_hidden_elements_are_dropped() -> None:
    document = html(
        '<p>a</p><p hidden>b</p><div style="color:red; display : none">c<p>d</p></div><dialog>e</dialog><p>f'
    )
    assert document.text == "a\n\nf\n"


def test_boilerplate_goes_where_main_holds_most_of_the_text() -> None:
    frame = "<header>Site</header><nav>Menu</nav>{}<aside>Ads</aside><footer>Imprint</footer>"
    page = "<main><header>Byline</header><nav>Crumbs</nav><p>A long enough text.</p><aside>Note</aside></main>"
    assert html(frame.format(page)).text == "Byline\n\nA long enough text.\n\nNote\n"
    assert (
        html(frame.format("<div role=main>A long enough text of the page.</div>")).text
        == "A long enough text of the page.\n"
    )
    menu = "<nav>" + "Chapter and verse. " * 9 + "</nav>"
    assert html(menu + "<main><p>Short.</p></main>").text == "Short.\n"
    small = html(frame.format("<article>Hi</article><p>Most of the text is elsewhere.</p>")).text
    assert small == "Site\n\nMenu\n\nHi\n\nMost of the text is elsewhere.\n\nAds\n\nImprint\n"


def test_a_table_that_arranges_the_page_is_read_as_blocks() -> None:
    document = html("<table><tr><td><h2>News</h2><p>Text</p><td><table><tr><td>k<td>v</table></table>")
    assert document.text == "News\n\nText\n\nk | v\n"
    assert atoms(document) == ["k | v\n"]


def test_a_heading_left_open_ends_at_the_next_paragraph() -> None:
    document = html("<h2>Open<p>Text</p><p>More</p>")
    assert document.text == "Open\n\nText\n\nMore\n"
    assert headings(document) == [(2, "Open")]


def test_code_keeps_the_lines_that_a_highlighter_wraps_in_elements() -> None:
    assert atoms(html("<pre><code><div>a = 1</div><div>  b</div>c<br>d</code></pre>")) == ["a = 1\n  b\nc\nd\n"]


def test_the_title_falls_back_to_the_first_h1() -> None:
    assert html("<title>Untitled Document</title><h2>Sub</h2><h1>Real</h1>").title == "Real"
    assert html("<p>no title").title is None


@pytest.mark.parametrize(
    ("text", "encoding", "declared"),
    [
        ("naïve", "utf-8", ""),
        ("naïve", "utf-8", "iso-8859-1"),
        ("naïve", "utf-8-sig", ""),
        ("naïve “q” €", "cp1252", "iso-8859-1"),
        ("中文網頁說明", "big5", "big5"),
        ("简体中文①", "gb18030", "gb2312"),
        ("日本語", "iso2022_jp", "iso-2022-jp"),
        ("日本語の文章", "shift_jis", "Shift_JIS"),
        ("naïve 中文", "utf-16", ""),
        ("naïve text of some length", "utf-16-le", ""),
    ],
)
def test_the_encoding_is_found(text: str, encoding: str, declared: str) -> None:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}">' if declared else ""
    assert html(f"<html><head>{meta}</head><body><p>{text}</p></body></html>".encode(encoding)).text == text + "\n"


@pytest.mark.parametrize("declared", ["rot13", "idna", "no-such-set", "utf-8", "utf-16"])
def test_a_declaration_that_can_not_be_true_is_not_followed(declared: str) -> None:
    text = "Die Prüfung der Geräte für größere Höhen läuft über mehrere Wochen."
    assert html(f'<meta charset="{declared}"><p>{text}'.encode("latin-1")).text == text + "\n"


def test_xhtml_is_read_as_xml_so_that_an_empty_title_swallows_nothing() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
        "<body><p>a&nbsp;&eacute; &amp;</p></body></html>"
    )
    assert html(page, "page.xhtml").text == "a é &\n"


def test_entities_that_a_page_declares_are_not_resolved(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    declared = f'<!DOCTYPE html [<!ENTITY x SYSTEM "{secret.as_uri()}"><!ENTITY y "LOL">]>'
    page = declared + "<html><body><p>text &x; &y;</p></body></html>"
    for name in ("page.html", "page.xhtml"):
        text = html('<?xml version="1.0"?>' + page, name).text
        assert "text" in text and "SECRET" not in text and "LOL" not in text


@pytest.mark.parametrize(
    ("tag", "depth"),
    [("div", 100_000), *[(tag, 20_000) for tag in ("b", "ul", "table", "table><tr><td", "h1", "main", "pre")]],
)
def test_elements_nested_however_deep_lose_nothing(tag: str, depth: int) -> None:
    document = html("<p>before</p>" + f"<{tag}>" * depth + "deep")
    assert "before" in document.text and "deep" in document.text


@pytest.mark.parametrize("data", [b"", b" \n", b"<!-- x -->", b"<p>&nbsp;</p>", b"<title>x</title>"])
def test_a_page_without_text_is_empty(data: bytes) -> None:
    with pytest.raises(ReadError, match="no text") as caught:
        html(data)
    assert caught.value.status == "empty"


PIECES = re.findall(
    r"\S+",
    "<p> <table> </table> <tr> <td> <pre> </pre> <h1> </h1> <li> <ul> </ul> <main> <nav> <br> <!-- --> &#0; é < > & x",
)


@given(st.lists(st.sampled_from([*PIECES, " ", "\n"])).map("".join))
@settings(max_examples=200)
def test_any_markup_gives_a_document_or_is_empty(markup: str) -> None:
    try:
        document = html(markup)
    except ReadError as error:
        assert error.status == "empty"
    else:
        assert document.text.strip() and "\0" not in document.text


# DOCX


def word_file() -> bytes:
    document = docx.Document()
    document.core_properties.title = ""
    document.add_heading("The Handbook", 0)
    document.add_heading("Setup", 1)
    document.add_paragraph("First, install it.\nThen\tstart it.")
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Number")
    table = document.add_table(rows=3, cols=3)
    for at, text in enumerate(["Region", "2019", "2020", "North", "1", "2", "South", "3", "4"]):
        table.cell(at // 3, at % 3).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(1, 0).merge(table.cell(2, 0))
    document.add_heading("Details", 2)
    document.sections[0].header.paragraphs[0].text = "Confidential"
    document.sections[0].footer.paragraphs[0].text = "Page 1"
    document.add_paragraph("After the table.")
    return saved(document)


def test_a_word_file_keeps_the_order_of_paragraphs_and_tables() -> None:
    document = read_docx(Path("a.docx"), word_file())
    assert document.title == "The Handbook"
    assert document.text == (
        "The Handbook\n\nSetup\n\nFirst, install it.\nThen start it.\n\n- one\n- two\n\n"
        "Region | 2019 2020\nNorth South | 1 | 2\n| 3 | 4\n\nDetails\n\nAfter the table.\n"
    )
    assert headings(document) == [(1, "The Handbook"), (1, "Setup"), (2, "Details")]
    assert atoms(document) == ["Region | 2019 2020\n", "North South | 1 | 2\n", "| 3 | 4\n"]
    assert not document.verbatim and not document.wrapped


def test_the_properties_title_wins_unless_a_program_gave_it() -> None:
    document = docx.Document()
    document.add_paragraph("Styled", style="Title")
    document.core_properties.title = "Annual report"
    assert read_docx(Path("a.docx"), saved(document)).title == "Annual report"
    document.core_properties.title = "Word Document"
    assert read_docx(Path("a.docx"), saved(document)).title == "Styled"


def word_with(body: str) -> Document:
    """A Word file whose body is the given XML."""
    document = docx.Document()
    wrapper = parse_xml(
        f"<w:body {nsdecls('w', 'wp', 'r')} xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'>{body}</w:body>"
    )
    for at, child in enumerate(list(wrapper)):
        document.element.body.insert(at, child)
    return read_docx(Path("a.docx"), saved(document))


def test_insertions_are_kept_and_deletions_dropped() -> None:
    document = word_with(
        "<w:p><w:r><w:t>We </w:t></w:r><w:del><w:r><w:delText>reject</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>accept</w:t></w:r></w:ins><w:moveFrom><w:r><w:t> moved</w:t></w:r></w:moveFrom>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t> hidden</w:t></w:r><w:r><w:t>.</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>k</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>v</w:t></w:r></w:p></w:tc></w:tr>"
        "<w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p><w:r><w:t>gone</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    assert document.text == "We accept.\n\nk | v\n"


def test_content_controls_are_read_but_for_contents_and_prompts() -> None:
    def control(properties: str, text: str) -> str:
        content = f"<w:sdtContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:sdtContent>"
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr>{content}</w:sdt>"

    contents = "<w:docPartObj><w:docPartGallery w:val='Table of Contents'/></w:docPartObj>"
    document = word_with(
        control("", "kept") + control(contents, "Setup 3") + control("<w:showingPlcHdr/>", "Click here")
    )
    assert document.text == "kept\n"


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    document = word_with(
        f"<w:p><w:r><w:t>text</w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert document.text == "text\n\nboxed\n"


def test_nested_tables_are_flattened_and_a_table_of_one_cell_is_a_box() -> None:
    document = docx.Document()
    outer = document.add_table(rows=1, cols=2)
    outer.cell(0, 0).text = "a"
    inner = outer.cell(0, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "b", "c"
    box = document.add_table(rows=1, cols=1)
    box.cell(0, 0).paragraphs[0].text = "Mind"
    box.cell(0, 0).add_paragraph("the gap", style="List Bullet")
    result = read_docx(Path("a.docx"), saved(document))
    assert result.text == "a | b c\n\nMind\n\n- the gap\n"
    assert atoms(result) == ["a | b c\n"]


def test_headings_are_found_by_outline_level_and_through_styles_that_they_are_based_on() -> None:
    document = docx.Document()
    style = document.styles.add_style("Überschrift Firma", 1)
    style.base_style = document.styles["Heading 2"]
    document.add_paragraph("Based", style="Überschrift Firma")
    outlined = document.add_paragraph("Outlined")
    outlined._p.get_or_add_pPr().append(parse_xml(f"<w:outlineLvl {nsdecls('w')} w:val='2'/>"))
    body = document.add_paragraph("Not one", style="Heading 1")
    body._p.get_or_add_pPr().append(parse_xml(f"<w:outlineLvl {nsdecls('w')} w:val='9'/>"))
    assert headings(read_docx(Path("a.docx"), saved(document))) == [(2, "Based"), (3, "Outlined")]


def test_paragraphs_in_a_code_style_are_one_block() -> None:
    document = docx.Document()
    document.styles.add_style("Source Code", 1)
    for line in ("def f():", "    return 1"):
        document.add_paragraph(line, style="Source Code")
    document.add_paragraph("Prose.")
    result = read_docx(Path("a.docx"), saved(document))
    assert result.text == "def f():\n    return 1\n\nProse.\n"
    assert atoms(result) == ["def f():\n    return 1\n"]


def word_with_footnote() -> bytes:
    data = word_file()
    relations = part(data, "word/_rels/document.xml.rels").replace(
        b"</Relationships>",
        b'<Relationship Id="rId99" Target="footnotes.xml" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"/>'
        b'<Relationship Id="rId98" Type="http://x/image" Target="../NULL"/></Relationships>',
    )
    notes = (
        f'<w:footnotes {nsdecls("w")}><w:footnote w:type="separator" w:id="-1">'
        "<w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>"
        '<w:footnote w:id="1"><w:p><w:r><w:t>See the annex.</w:t></w:r></w:p></w:footnote></w:footnotes>'
    )
    return repack(data, {"word/_rels/document.xml.rels": relations, "word/footnotes.xml": notes.encode()})


def test_footnotes_follow_the_body_and_a_dangling_relationship_does_no_harm() -> None:
    assert read_docx(Path("a.docx"), word_with_footnote()).text.endswith("After the table.\n\nSee the annex.\n")


def test_strict_and_macro_enabled_word_files_are_read() -> None:
    data = word_file()
    strict = part(data, "word/document.xml").replace(
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        b"http://purl.oclc.org/ooxml/wordprocessingml/main",
    )
    types = part(data, "[Content_Types].xml").replace(
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        b"application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    expected = read_docx(Path("a.docx"), data)
    assert (
        read_docx(Path("a.docx"), repack(data, {"word/document.xml": strict, "[Content_Types].xml": types})) == expected
    )


# PPTX


def deck_file() -> bytes:
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Results"
    first.placeholders[1].text = "Sales rose\nCosts fell"
    first.placeholders[1].text_frame.paragraphs[1].level = 1
    first.notes_slide.notes_text_frame.text = "Smile."
    deck.slides.add_slide(deck.slide_layouts[6])
    third = deck.slides.add_slide(deck.slide_layouts[6])
    inch = Inches(1)
    for text, left, top in (("bottom", 0, 5), ("right", 4, 1), ("left", 0, 1.1)):
        third.shapes.add_textbox(int(left * inch), int(top * inch), inch, inch).text_frame.text = text
    group = third.shapes.add_group_shape()
    group.shapes.add_textbox(0, 3 * inch, inch, inch).text_frame.text = "in a group"
    table = third.shapes.add_table(2, 2, 0, 6 * inch, inch, inch).table
    for at, text in enumerate(["Year", "", "2019", "7"]):
        table.cell(at // 2, at % 2).text = text
    table.cell(0, 0).merge(table.cell(0, 1))
    return saved(deck)


def test_each_slide_is_a_page_in_reading_order() -> None:
    document = read_pptx(Path("a.pptx"), deck_file())
    assert document.title == "Results"
    assert document.text == (
        "Results\n\n- Sales rose\n  - Costs fell\n\nNotes: Smile.\n\n"
        "Slide 3\n\nleft\n\nright\n\nin a group\n\nbottom\n\nYear\n2019 | 7\n"
    )
    assert headings(document) == [(1, "Results"), (1, "Slide 3")]
    third = document.text.index("Slide 3")
    assert document.page_starts == (0, third, third)
    assert atoms(document) == ["Year\n", "2019 | 7\n"]


def test_a_chart_gives_its_title_and_numbers_and_a_picture_its_description() -> None:
    deck = pptx.Presentation()
    deck.core_properties.title = "Quarterly review"
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Growth"
    chart_data = CategoryChartData()
    chart_data.categories = ["Q1", "Q2"]
    chart_data.add_series("North", (1.5, 0.1 + 0.2))
    size = (0, Inches(2), Inches(4), Inches(2))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, chart_data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Sales"
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    shape = slide.shapes.add_picture(picture, 0, Inches(5))
    shape._element.nvPicPr.cNvPr.set("descr", "The team on stage")
    document = read_pptx(Path("a.pptx"), saved(deck))
    assert document.title == "Quarterly review"
    assert document.text == "Growth\n\nSales\n\n| Q1 | Q2\nNorth | 1.5 | 0.3\n\n[The team on stage]\n"


def test_a_diagram_gives_the_texts_of_its_boxes() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    boxes = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in ("Plan", "Do"))
    model = f'<d:dataModel xmlns:d="{drawing}/diagram" xmlns:a="{drawing}/main">{boxes}<a:p/></d:dataModel>'
    kind = "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml"
    data_part = Part(PackURI("/ppt/diagrams/data1.xml"), kind, deck.part.package, model.encode())
    relation = slide.part.relate_to(
        data_part, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"
    )
    frame = slide.shapes.add_table(1, 1, 0, 0, 100, 100)._element
    graphic = frame.graphic.graphicData
    graphic.set("uri", f"{drawing}/diagram")
    graphic.remove(graphic.tbl)
    namespaces = (
        f'xmlns:d="{drawing}/diagram" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    )
    graphic.append(parse_part(f'<d:relIds {namespaces} r:dm="{relation}"/>'.encode()))
    assert read_pptx(Path("a.pptx"), saved(deck)).text == "Slide 1\n\n- Plan\n- Do\n"


# XLSX


def test_a_sheet_becomes_its_name_and_rows() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Sales 2020"
    sheet["B2"], sheet["C2"], sheet["D2"] = "Region", "2019", "Share"
    sheet["B3"], sheet["C3"], sheet["D3"] = "North", 0.1 + 0.2, 0.253
    sheet["D3"].number_format = "0.0%"
    sheet["B4"], sheet["D4"] = "South\nEast", True
    sheet["B7"], sheet["C7"] = datetime.date(2020, 3, 31), datetime.datetime(2020, 3, 31, 9, 30)
    sheet["B8"], sheet["C8"] = "=1+1", "=NA()"
    sheet.merge_cells("B9:C9")
    sheet["B9"] = 1200.0
    workbook.create_sheet("Empty")
    workbook.create_sheet("Notes")["A1"] = "as of May"
    workbook.properties.title = "Figures"
    document = read_xlsx(Path("a.xlsx"), saved(workbook))
    assert document.title == "Figures"
    assert document.text == (
        "Sales 2020\n\nRegion | 2019 | Share\nNorth | 0.3 | 25.3%\nSouth East |  | TRUE\n\n"
        "2020-03-31 | 2020-03-31 09:30:00\n\n1200\n\nNotes\n\nas of May\n"
    )
    assert headings(document) == [(1, "Sales 2020"), (1, "Notes")]
    assert len(document.atoms) == 6


def test_a_formula_shows_the_value_that_was_saved() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "=1+1"
    data = saved(workbook)
    sheet = (
        part(data, "xl/worksheets/sheet1.xml")
        .replace(b"<v />", b"<v>2</v>")
        .replace(b"<v></v>", b"<v>2</v>")
        .replace(b"<v/>", b"<v>2</v>")
    )
    assert read_xlsx(Path("a.xlsx"), repack(data, {"xl/worksheets/sheet1.xml": sheet})).text == "Sheet\n\n2\n"


def test_a_wrong_stated_size_hides_no_rows() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", "b"])
    workbook.active.append(["c", "d"])
    data = saved(workbook)
    sheet = re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', part(data, "xl/worksheets/sheet1.xml"))
    assert (
        read_xlsx(Path("a.xlsx"), repack(data, {"xl/worksheets/sheet1.xml": sheet})).text == "Sheet\n\na | b\nc | d\n"
    )


def test_a_workbook_with_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(list(range(10)))
    monkeypatch.setattr("rse_cli.adapters.readers.xlsx.MAX_CELLS", 9)
    with pytest.raises(ReadError, match="more than 9 cells"):
        read_xlsx(Path("a.xlsx"), saved(workbook))


def test_a_stray_cell_far_out_costs_little_and_a_damaged_row_number_ends() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "near"
    workbook.active["XFD200000"] = "far"
    assert read_xlsx(Path("a.xlsx"), saved(workbook)).text == "Sheet\n\nnear\n\nfar\n"
    data = saved(workbook)
    sheet = part(data, "xl/worksheets/sheet1.xml").replace(b"200000", b"999999999999")
    assert read_xlsx(Path("a.xlsx"), repack(data, {"xl/worksheets/sheet1.xml": sheet})).text == "Sheet\n\nnear\n"


@given(st.floats(min_value=-1e307, max_value=1e307))
def test_a_shown_number_has_the_digits_that_excel_keeps(value: float) -> None:
    assert float(show_number(value)) == pytest.approx(value, rel=1e-14, abs=1e-307)


# EPUB


def book_file(encrypted: str = "") -> bytes:
    def page(body: str) -> str:
        return f'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{body}</body></html>'

    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
        "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The  Book</dc:title></metadata><manifest>"
        '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        '<item id="b" href="text/b%201.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="f" href="f.otf" media-type="font/otf"/></manifest>'
        '<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="lost"/></spine></package>',
        "OEBPS/nav.xhtml": page("<nav><ol><li>Contents</li></ol></nav>"),
        "OEBPS/text/b 1.xhtml": page("<h1>Second</h1><pre>x\n  y</pre>"),
        "OEBPS/text/a.xhtml": page("<h1>First</h1><p>Caf&eacute;.</p>"),
        "OEBPS/f.otf": "font",
    }
    if encrypted:
        parts["META-INF/encryption.xml"] = (
            '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#">'
            f'<CipherData><CipherReference URI="{encrypted}"/></CipherData></EncryptedData></encryption>'
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)
    return buffer.getvalue()


def test_a_book_gives_its_chapters_in_the_order_of_the_spine() -> None:
    document = read_epub(Path("a.epub"), book_file())
    assert document.title == "The Book"
    assert document.text == "First\n\nCafé.\n\nSecond\n\nx\n  y\n"
    assert headings(document) == [(1, "First"), (1, "Second")]
    assert atoms(document) == ["x\n  y\n"]
    assert document.page_starts == ()


def test_an_encrypted_chapter_is_drm_and_an_encrypted_font_is_not() -> None:
    assert read_epub(Path("a.epub"), book_file("OEBPS/f.otf")).title == "The Book"
    with pytest.raises(ReadError, match="DRM") as caught:
        read_epub(Path("a.epub"), book_file("OEBPS/text/b%201.xhtml"))
    assert caught.value.status == "encrypted"


# Containers: limits, damage, attacks


@functools.cache
def make_once(make: Callable[[], bytes]) -> bytes:
    """Files hold the time when they are made, so that their sizes differ, which Hypothesis takes for chance."""
    return make()


def small_workbook() -> bytes:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "x"
    return saved(workbook)


OFFICE: list[tuple[Reading, Callable[[], bytes], str]] = [
    (read_docx, word_file, "word/document.xml"),
    (read_pptx, deck_file, "ppt/slides/slide1.xml"),
    (read_xlsx, small_workbook, "xl/worksheets/sheet1.xml"),
]
CONTAINERS = [*OFFICE, (read_epub, book_file, "OEBPS/content.opf")]


@pytest.mark.parametrize(("read", "make", "_"), CONTAINERS)
def test_a_damaged_container_is_a_failed_file(read: Reading, make: Callable[[], bytes], _: str) -> None:
    data = make()
    for broken in (b"", b"not a zip", data[: len(data) // 2], data[:-30]):
        with pytest.raises(ReadError, match="not a valid") as caught:
            read(Path("a"), broken)
        assert caught.value.status == "failed"


@pytest.mark.parametrize(("read", "make", "main"), CONTAINERS)
def test_a_damaged_part_is_a_failed_file(read: Reading, make: Callable[[], bytes], main: str) -> None:
    for content in (b"", b"<broken", part(make(), main)[:-40]):
        with pytest.raises(ReadError, match="not a valid") as caught:
            read(Path("a"), repack(make(), {main: content}))
        assert caught.value.status == "failed"


@pytest.mark.parametrize(("read", "make", "_"), CONTAINERS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_document_or_a_read_error(
    read: Reading, make: Callable[[], bytes], _: str, data: st.DataObject
) -> None:
    content = bytearray(make_once(make))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
        content[at] = data.draw(st.integers(0, 255))
    try:
        assert read(Path("a"), bytes(content)).text
    except ReadError as error:
        assert "\n" not in error.reason and len(error.reason) < 200


@pytest.mark.parametrize(("read", "make", "_"), OFFICE)
def test_an_office_file_with_a_password_says_so(read: Reading, make: Callable[[], bytes], _: str) -> None:
    ole = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500)
    with pytest.raises(ReadError, match="needs a password") as caught:
        read(Path("a"), ole + "EncryptedPackage".encode("utf-16-le"))
    assert caught.value.status == "encrypted"
    with pytest.raises(ReadError, match="before 2007") as caught:
        read(Path("a"), ole)
    assert caught.value.status == "failed"


@pytest.mark.parametrize(("read", "make", "_"), [case for case in OFFICE if case[0] is not read_xlsx])
def test_an_office_file_without_text_is_empty(read: Reading, make: Callable[[], bytes], _: str) -> None:
    blank = docx.Document() if read is read_docx else pptx.Presentation()
    with pytest.raises(ReadError, match="no text") as caught:
        read(Path("a"), saved(blank))
    assert caught.value.status == "empty"


@pytest.mark.parametrize(("read", "make", "main"), OFFICE)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_office_file_with_a_document_type_is_refused(
    read: Reading, make: Callable[[], bytes], main: str, encoding: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    attack = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY x SYSTEM "{secret.as_uri()}">]><x>&x;</x>'
    )
    with pytest.raises(ReadError, match="document type"):
        read(Path("a"), repack(make(), {main: attack.encode(encoding)}))


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


TEXT_ENDS = {read_docx: "</w:t>", read_pptx: "</a:t>", read_xlsx: "</t>"}


@pytest.mark.parametrize(("read", "make", "main"), OFFICE)
def test_entities_stay_unresolved_even_where_the_document_type_goes_unseen(
    read: Reading, make: Callable[[], bytes], main: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second line of defence: the parsers of the libraries themselves."""
    for module in ("docx", "pptx", "xlsx"):
        monkeypatch.setattr(f"rse_cli.adapters.readers.{module}.refuse_doctypes", lambda _: None)
    (tmp_path / "secret.txt").write_text("SECRET")
    outside = f'<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">'
    content = re.sub(r"<\?xml.*?\?>", "", part(make(), main).decode())
    end = TEXT_ENDS[read]
    assert end in content
    for declared in (outside, f'<!ENTITY l0 "lol">{LAUGHS}<!ENTITY x "&l9;">'):
        attack = f'<?xml version="1.0"?><!DOCTYPE x [{declared}]>' + content.replace(end, "&x;" + end)
        try:
            text = read(Path("a"), repack(make(), {main: attack.encode()})).text
        except ReadError as error:
            text = error.reason
        assert "SECRET" not in text and "lol" not in text and len(text) < 10_000


def test_a_package_document_resolves_no_entities(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("SECRET")
    declared = f'<!DOCTYPE package [<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
    package = part(book_file(), "OEBPS/content.opf").decode().replace("The  Book", "The Book&x;")
    document = read_epub(Path("a.epub"), repack(book_file(), {"OEBPS/content.opf": (declared + package).encode()}))
    assert document.title == "The Book"


def test_a_container_that_unpacks_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def container(content: bytes, count: int = 1, name: str = "part{}.bin") -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
            for at in range(count):
                made.writestr(name.format(at), content)
        return buffer.getvalue()

    assert check_archive(container(bytes(100)), "DOCX").namelist() == ["part0.bin"]
    with pytest.raises(ReadError, match="over 200 times its size"):
        check_archive(container(bytes(20_000_000)), "DOCX")
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    with pytest.raises(ReadError, match="holds 4 parts"):
        check_archive(container(b"x", count=4), "DOCX")
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1_500_000)
    with pytest.raises(ReadError, match="unpacks to 2 MB, more than 1 MB"):
        check_archive(container(bytes(1_000_000), count=2), "DOCX")
    monkeypatch.setattr(archive, "MAX_XML_BYTES", 1_000_000)
    with pytest.raises(ReadError, match="1 MB of XML"):
        check_archive(container(bytes(1_000_001), name="a.xml"), "DOCX")


def test_a_part_that_is_larger_than_it_says_is_never_unpacked_whole() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("word/document.xml", bytes(1_000_000))
    size = (1_000_000).to_bytes(4, "little")
    lying = buffer.getvalue().replace(size, (10).to_bytes(4, "little"))
    assert lying != buffer.getvalue()
    with pytest.raises(ReadError, match="not a valid DOCX file"), report_broken("DOCX"):
        check_archive(lying, "DOCX").read("word/document.xml")


def test_xml_nested_too_deep_is_refused_not_crashed_on() -> None:
    deep = b"<a>" * 100_000 + b"</a>" * 100_000
    with pytest.raises(ReadError), report_broken("DOCX"):
        parse_part(deep)
