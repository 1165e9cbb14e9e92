"""Readers of text formats, and the registry that chooses among all readers."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.adapters import readers
from rse_cli.adapters.readers import find_reader, is_binary_suffix, read_document
from rse_cli.adapters.readers.plain import is_wrapped, iterate_lines
from rse_cli.core.models import Document
from rse_cli.errors import ReadError


def read(name: str, text: str) -> Document:
    return read_document(Path(name), text.encode())[1]


def headings(document: Document) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in document.headings]


def atoms(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in document.atoms]


def begins(document: Document) -> list[str]:
    """The first line of what each heading stands on."""
    return [document.text[heading.start_char :].splitlines()[0] for heading in document.headings]


# The registry


@pytest.mark.parametrize(
    ("name", "reader"),
    [("a/Guide.MD", "markdown"), ("x.rst", "rst"), ("x.py", "source"), ("Makefile", "source"), ("Dockerfile", "source"),
     ("README", "text"), ("LICENSE", "text"), ("x.TXT", "text"), ("x.unknown", "text"), ("noext", "text"),
     ("x.csv", "csv"), ("x.tsv", "csv"), ("x.jsonl", "jsonl"), ("x.json", "json"), ("x.ipynb", "notebook"),
     ("CMakeLists.txt", "source"), ("x.pdf", "pdf"), ("x.htm", "html"), ("x.xhtml", "html"), ("x.docx", "docx"),
     ("x.pptx", "pptx"), ("x.xlsm", "xlsx"), ("x.epub", "epub")],
)  # fmt: skip
def test_a_reader_is_found_by_suffix_in_any_case_or_by_name(name: str, reader: str) -> None:
    assert find_reader(Path(name)).name == reader


def test_no_suffix_belongs_to_two_readers_or_is_binary_too() -> None:
    suffixes = [suffix for spec in readers.READERS for suffix in spec.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert not readers.BINARY_SUFFIXES & set(suffixes)


def test_a_document_comes_with_the_name_and_version_of_its_reader() -> None:
    assert read_document(Path("x.md"), b"# A\n")[0] == "markdown/1"


@pytest.mark.parametrize(
    ("name", "data"), [("a.PNG", b"text"), ("a.tar.gz", b""), ("a.txt", b"ab\0cd"), ("a", bytes(9))]
)
def test_binary_files_are_refused_by_suffix_or_nul(name: str, data: bytes) -> None:
    with pytest.raises(ReadError) as caught:
        read_document(Path(name), data)
    assert caught.value.status == "binary"


def test_wide_unicode_has_nul_bytes_but_is_text() -> None:
    assert read_document(Path("a.txt"), "Hello\n".encode("utf-16"))[1].text == "Hello\n"
    assert read_document(Path("a.txt"), "Hello\n".encode("utf-16-be"))[1].text == "Hello\n"


def test_only_suffixes_without_any_reader_are_binary() -> None:
    assert [is_binary_suffix(Path(name)) for name in ("a.woff2", "a.pyc", "a.pdf", "a.py", "a")] == [
        True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf", "\u3000\n".encode()])
def test_white_space_alone_is_empty(data: bytes) -> None:
    with pytest.raises(ReadError, match="no text") as caught:
        read_document(Path("a.md"), data)
    assert caught.value.status == "empty"


def test_any_failure_of_a_reader_becomes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, data: bytes) -> Document:
        raise KeyError("no part\nsecond line")

    monkeypatch.setattr("rse_cli.adapters.readers.plain.read_plain", fail)
    with pytest.raises(ReadError) as caught:
        read_document(Path("a.txt"), b"x")
    assert (caught.value.status, caught.value.reason) == ("failed", "text: 'no part\\nsecond line'")


def test_running_out_of_memory_is_no_fault_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, data: bytes) -> Document:
        raise MemoryError

    monkeypatch.setattr("rse_cli.adapters.readers.plain.read_plain", fail)
    with pytest.raises(MemoryError):
        read_document(Path("a.txt"), b"x")


# Lines


def test_only_carriage_returns_and_line_feeds_end_lines() -> None:
    text = "a\r\nb\x0bc\x0cd\u2028e\rf\n\ng"
    assert [text[start:end] for start, end, _ in iterate_lines(text)] == ["a", "b\x0bc\x0cd\u2028e", "f", "", "g"]


@given(st.text(alphabet="a\r\n\x0c\u2028"))
def test_lines_tile_the_text(text: str) -> None:
    lines = list(iterate_lines(text))
    assert "".join(text[start:after] for start, _, after in lines) == text
    assert all(text[end:after] in {"\n", "\r", "\r\n"} for _, end, after in lines[:-1])


PIECES = st.sampled_from(
    [
        "# A", "Title", "===", "---", "```", "~~~", "| a | b |", "|---|---|", "- item", "    code", "", "text.",
        ".. note::", "::", "+--+", "| x|", "== ==", "<!--", "-->", ">>> 1", "def f():", "class A:", "/*", "*/", "[a]",
        '"q', 'a,"b""', "title: x",
    ]
)  # fmt: skip


@given(st.sampled_from(["a.md", "a.txt", "a.rst", "a.py", "a.js", "a.c", "a.csv", "a.jsonl", "a.toml"]),
       st.lists(PIECES, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))  # fmt: skip
def test_text_formats_are_verbatim_and_their_spans_begin_and_end_at_lines(
    name: str, lines: list[str], end: str
) -> None:
    text = "x" + end + end.join(lines)
    document = read(name, text)
    starts = {start for start, _, _ in iterate_lines(text)}
    assert (document.text, document.verbatim) == (text, True)
    assert {heading.start_char for heading in document.headings} <= starts
    assert set(document.breaks) <= starts
    assert all(start in starts and (stop in starts or stop == len(text)) for start, stop in document.atoms)


# Wrapping


def test_prose_broken_at_seventy_columns_is_wrapped_and_verse_is_not() -> None:
    line = "This line has about seventy characters, as lines of e-mails often have"
    assert is_wrapped(f"# Title\n\n{line}\n{line}\nand an end.\n")
    assert not is_wrapped("Roses are red\nviolets are blue\nsugar is sweet\nand so are you\n")
    assert not is_wrapped((line * 4 + "\n") * 3)
    assert not is_wrapped(f"{line}\n\n{line}\n\n")


def test_lists_tables_and_code_say_nothing_about_wrapping() -> None:
    line = "an item of about seventy characters that stands for itself and is short"
    assert not is_wrapped(f"- {line}\n" * 5)
    assert not is_wrapped(f"```\n{line}\n{line}\n```\n")
    assert not is_wrapped(f"| {line} |\n" * 5)
    assert not is_wrapped(f"    {line}\n" * 5)


# Plain text


def test_a_short_line_on_its_own_is_a_heading() -> None:
    document = read(
        "a.txt", "Setting up\n\nPlug it in. Wait.\n\n2 Safety\nKeep it away from water at all times, please.\n"
    )
    assert headings(document) == [(1, "Setting up"), (1, "2 Safety")]
    assert document.title is None


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red\nViolets are blue\n\nSugar is sweet\nAnd so are you\n\nEnd\n",  # verse, and a last line
        "Milk\n\nEggs\n\nBread\n\nButter\n\nThat is all we need.\n",  # a list with blank lines
        "It ends here.\n\nWhat follows:\n\nis text\n",  # punctuation at the end
        "VOICE: (Inaudible.)\n\nText.\n",
        "2010 | high | low\n\nText.\n",
        "lower case\n\nText.\n",
        "第一章\n\n正文在这里。\n",
        "Text above\nThe Line\n\nText.\n",  # no blank line before it
        "A heading has twelve words at most but this one has more words\n\nText.\n",
        "This wrapped paragraph begins with a line of few long words\nand its second line is as long as the first one was.\n",
    ],
)
def test_what_only_looks_like_a_heading_is_text(text: str) -> None:
    assert [h for h in headings(read("a.txt", text)) if h[1] != "Text above"] == []


def test_underlined_lines_are_headings_and_the_one_at_the_top_is_the_title() -> None:
    document = read("a.txt", "the manual\n==========\n\nParts\n-----\nText.\n")
    assert (document.title, headings(document)) == ("the manual", [(1, "the manual"), (2, "Parts")])


# Markdown


def test_markdown_headings_lose_their_markup() -> None:
    document = read(
        "a.md",
        "# **The** [guide](a_(b).md) ##\n## `rse` #1\n### <a name='x'></a>A \\* b {#id}\n"
        "####### seven\n#tag\n    # code\n"
        "\nSet _up_\n===\n\nPart\n---\n",
    )
    assert headings(document) == [
        (1, "The guide"), (2, "rse #1"), (3, "A * b"), (1, "Set up"), (2, "Part"),
    ]  # fmt: skip
    assert begins(document)[-2:] == ["Set _up_", "Part"]
    assert document.title == "The guide"


def test_a_rule_below_a_list_or_a_blank_line_is_no_underline() -> None:
    assert headings(read("a.md", "- item\n  more\n---\n\nText.\n\n---\n> quote\n---\n")) == []


def test_front_matter_is_an_atom_and_gives_the_title() -> None:
    document = read("a.md", '---\ntitle: "Store: a guide"  \ntags: [x]\n---\n# Other\n')
    assert (document.title, atoms(document)) == ("Store: a guide", ['---\ntitle: "Store: a guide"  \ntags: [x]\n---\n'])
    assert read("a.md", "---\ntitle: >-\n  Folded one\n---\nx\n").title == "Folded one"
    assert read("a.md", "+++\ntitle = 'Toml'\n+++\nx\n").title == "Toml"
    assert read("a.md", "---\r\ntitle: Crlf\r\n---\r\nx\r\n").title == "Crlf"
    assert atoms(read("a.md", "---\nno end: of it\n\ntext\n")) == []


def test_code_fences_are_whole_and_hide_headings() -> None:
    text = "~~~~ text\n# no\n~~~\n~~~~\nA ```b``` c\n   ```py\n# no\n   ```\n# Yes\n````\n```\n# no\n"
    document = read("a.md", text)
    assert headings(document) == [(1, "Yes")]
    assert atoms(document) == ["~~~~ text\n# no\n~~~\n~~~~\n", "   ```py\n# no\n   ```\n", "````\n```\n# no\n"]


def test_a_fence_in_a_list_item_ends_with_the_item() -> None:
    document = read("a.md", "1. ```sh\n   # no\n   ```\n2. Then\n\n    ```\n    open\n\n# Yes\n")
    assert atoms(document) == ["1. ```sh\n   # no\n   ```\n", "    ```\n    open\n\n"]
    assert headings(document) == [(1, "Yes")]


def test_table_rows_are_whole_and_the_header_goes_with_its_delimiter() -> None:
    document = read("a.md", "Text\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\nx | y\n\nno | row\n")
    assert atoms(document) == ["| a | b |\n|:--|--:|\n", "| 1 | 2 |\n", "x | y\n"]


def test_headings_in_html_comments_do_not_count() -> None:
    assert headings(read("a.md", "<!--\n# no\n-->\n# Yes\n<!-- never closed\n# Too\n")) == [(1, "Yes"), (1, "Too")]


# reStructuredText


def test_section_levels_follow_the_order_of_their_styles() -> None:
    document = read(
        "a.rst", "=====\nGuide\n=====\n\nA ``b``\n=======\n\nSub\n~~~\n\nC\n==\n\n=====\nTwo\n=====\n\n----\n\nEnd.\n"
    )
    assert headings(document) == [(1, "Guide"), (2, "A b"), (3, "Sub"), (1, "Two")]
    assert document.title == "Guide"


def test_literal_blocks_and_directives_of_code_are_whole_and_notes_are_prose() -> None:
    text = (
        "Run::\n\n   make\n\n   all\n\nThen:\n\n.. code-block:: py\n   :x:\n\n   y = 1\n\n"
        ".. note::\n   Prose.\n\n>>> 1\n1\n\nEnd\n"
    )
    assert atoms(read("a.rst", text)) == [
        "   make\n\n   all\n",
        ".. code-block:: py\n   :x:\n\n   y = 1\n",
        ">>> 1\n1\n",
    ]


def test_rows_of_grid_and_simple_tables_are_whole() -> None:
    grid = "+--+--+\n|a |b |\n+==+==+\n|1 |2 |\n|  |3 |\n+--+--+\n|4 |5 |\n+--+--+\n"
    assert atoms(read("a.rst", grid)) == [grid[:24], grid[24:48], grid[48:]]
    simple = "==  ==\na   b\n==  ==\n1   2\n    3\n4   5\n==  ==\n"
    assert atoms(read("a.rst", simple)) == ["==  ==\na   b\n==  ==\n", "1   2\n    3\n", "4   5\n==  ==\n"]


# Source code


def test_python_definitions_take_their_decorators_and_comments_along() -> None:
    text = (
        "import a\n\n# about\n@d(\n  1)\nclass A(B):\n    # m\n    def f(self): ...\n    class In:\n        def g(self): ...\n"
        "if x:\n    def h(): ...\nasync def k():\n    def inner(): ...\n'''\ndef no(): ...\n'''\n"
    )
    document = read("a.py", text)
    assert headings(document) == [
        (1, "class A"), (2, "def f"), (2, "class In"), (3, "def g"), (1, "def h"), (1, "def k"),
    ]  # fmt: skip
    assert begins(document)[:2] == ["# about", "    # m"]
    assert [text[at:].splitlines()[0] for at in document.breaks] == ["# about", "    def h(): ...", "async def k():"]


def test_python_that_does_not_parse_is_matched_line_by_line() -> None:
    assert headings(read("a.py", "def a(:\n  pass\n@d\nclass B:\n")) == [(1, "def a"), (1, "class B")]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.js", "/**\n * function no() {}\n */\nexport default async function run(a) {\n}\n"
         "export const add = (a) => a;\n"
         "const x = 1;\nclass Foo {\n  bar() {}\n}\n", [("/**", "function run"), ("export const add = (a) => a;", "add"),
                                                      ("class Foo {", "class Foo")]),
        ("A.java", "package a;\n\n@Entity\npublic final class Store {\n  void a() {}\n}\n", [("@Entity", "class Store")]),
        ("a.go", "// Open it.\nfunc (s *Store) Open() {\n}\ntype T struct {\n}\n",
         [("// Open it.", "func Store.Open"), ("type T struct {", "type T")]),
        ("a.rs", "/// D\n#[x]\npub(crate) async fn go<T>() {\n}\nimpl<T> Clone for S<T> {\n}\n",
         [("/// D", "fn go"), ("impl<T> Clone for S<T> {", "impl<T> Clone for S<T>")]),
        ("a.c", "#include <x.h>\n// doc\nstatic int foo(int a,\n  int b)\n{\n  if (x) {}\n}\n"
         "int proto(void);\nstruct p {\n};\n",
         [("// doc", "foo"), ("struct p {", "struct p")]),
        ("a.cpp", "template <class T>\nclass Foo : Bar {\n};\nvoid Foo::run(int a) const {\n}\n",
         [("template <class T>", "class Foo"), ("void Foo::run(int a) const {", "Foo::run")]),
        ("a.rb", "# d\nclass A < B\n  def x\n  end\nend\n", [("# d", "class A")]),
        ("a.sh", "run() {\n}\nfunction b {\n}\n", [("run() {", "run"), ("function b {", "function b")]),
        ("a.sql", "-- d\nCREATE TABLE IF NOT EXISTS users (\n id int\n);\n", [("-- d", "table users")]),
        ("a.toml", "x = 1\n# c\n[tool.ruff]\ny = 2\n[[a.b]]\n", [("# c", "tool.ruff"), ("[[a.b]]", "a.b")]),
        ("Makefile", "CC := gcc\nall: x\n\techo\n.PHONY: all\n", [("all: x", "all")]),
        ("a.yaml", "a:\n  b: 1\n", []),
    ],
)  # fmt: skip
def test_definitions_of_other_languages_are_headings_and_breaks(
    name: str, text: str, found: list[tuple[str, str]]
) -> None:
    document = read(name, text)
    assert list(zip(begins(document), [h.text for h in document.headings], strict=True)) == found
    assert document.breaks == tuple(h.start_char for h in document.headings)
    assert not document.wrapped


# Notebooks


def test_a_notebook_becomes_markdown_with_code_and_outputs_in_fences() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text ```"]},
        {"cell_type": "code", "source": "x = '```'", "outputs": [
            {"output_type": "stream", "text": ["a\n", "\x1b[31mb\x1b[0m\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "z" * 5000, "image/png": "AAAA"}},
            {"output_type": "error", "ename": "KeyError", "evalue": "'k'", "traceback": []},
            {"output_type": "display_data", "data": {"image/png": "AAAA"}},
        ]},
        {"cell_type": "markdown", "source": "```\nunclosed"},
        {"cell_type": "markdown", "source": "## Part"},
        {"cell_type": "code", "source": " ", "outputs": []},
    ]  # fmt: skip
    document = read("a.ipynb", json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}))
    assert atoms(document) == [
        "````python\nx = '```'\n````\n", "```\na\nb\n```\n", f"```\n{'z' * 2000}\n```\n", "```\nKeyError: 'k'\n```\n",
        "```\nunclosed\n\n",
    ]  # fmt: skip
    assert (document.title, document.verbatim, headings(document)) == ("Title", False, [(1, "Title"), (2, "Part")])
    assert begins(document) == ["# Title", "## Part"]


def test_halves_of_characters_that_a_notebook_escapes_join_and_a_half_alone_is_replaced() -> None:
    cells = [{"cell_type": "markdown", "source": ["# \ud83d", "\ude00 \ud800\n"]}]
    document = read("a.ipynb", json.dumps({"cells": cells}))
    assert (document.text, document.title) == ("# 😀 \ufffd\n\n", "😀 \ufffd")


@pytest.mark.parametrize("text", ['{"cells": [', "[]", '{"a": 1}', '{"cells": 3}'])
def test_a_broken_notebook_fails_with_its_reason(text: str) -> None:
    with pytest.raises(ReadError, match="notebook: ") as caught:
        read("a.ipynb", text)
    assert caught.value.status == "failed"


# Tables and records


def test_each_csv_record_is_whole_even_over_several_lines() -> None:
    text = 'name;note\r\n"a;b";"two\r\nlines ""quoted"""\r\n\r\n5";inch\r\n'
    assert atoms(read("a.csv", text)) == ["name;note\r\n", '"a;b";"two\r\nlines ""quoted"""\r\n', '5";inch\r\n']


def test_a_quote_that_is_never_closed_costs_no_record() -> None:
    text = 'a,b\n"open,1\n' + "x,2\n" * 300
    assert atoms(read("a.csv", text)) == ["a,b\n", '"open,1\n', *["x,2\n"] * 300]


def test_tabs_separate_tsv_and_each_json_line_is_whole() -> None:
    assert atoms(read("a.tsv", 'a\t"b\nc"\n1,"\t2\n')) == ['a\t"b\nc"\n', '1,"\t2\n']
    assert atoms(read("a.jsonl", '{"a": 1}\n\n{"b": "\u2028"}')) == ['{"a": 1}\n', '{"b": "\u2028"}']
    assert atoms(read("a.json", '{"a":\n 1}')) == []


# Time


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.rst", "a.csv", "a.js", "a.c"])
@pytest.mark.parametrize(
    "text",
    ["x" * 5_000_000, "# " * 2_000_000, "|" * 3_000_000, " " * 3_000_000 + "x", "`" * 3_000_000, "a\n" * 100_000,
     '"a\n' * 50_000, "<!-- a\n" * 20_000, "```\n" * 50_001,
     "a|b\n" + "|-" * 1_000_000, "#" + " " * 3_000_000 + "#x"],
    ids=["one line", "hashes", "bars", "spaces", "ticks", "short lines", "quotes", "comments", "fences", "cells", "gap"],
)  # fmt: skip
def test_endless_lines_and_endless_files_take_linear_time(name: str, text: str) -> None:
    # What takes quadratic time would take minutes or hours here.
    read(name, text)
