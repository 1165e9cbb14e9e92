"""What a case expects is found in the indexed text, exactly; what isn't there is told, all at once, before any query."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.cases import Case, Expectation
from rse_cli.core.models import Document, Heading
from rse_cli.errors import CasesError
from rse_cli.pipeline.expectations import find_expected, resolve_cases
from rse_cli.pipeline.generated_cases import generate_cases
from rse_cli.pipeline.preparation import attach_vectors, encode_missing, list_missing, prepare_file
from rse_cli.ports import FileStamp, FoundFile
from tests.fake_encoder import DIMENSION, FakeEncoder
from tests.fake_store import FakeSnapshot, FakeStore


def build(documents: dict[str, Document]) -> FakeSnapshot:
    store = FakeStore(DIMENSION)
    for path, document in documents.items():
        found = FoundFile(path, Path(path), FileStamp(1, 1, 1))
        file = prepare_file(found, b"", "reader/1", lambda _, __, read=document: ("reader", read), 300)
        vectors = encode_missing(list_missing([file], {}), FakeEncoder(), 0.3, lambda _: None)
        store.replace([attach_vectors(file, vectors, DIMENSION)], [])
    return store.snapshot()


NOTES = (
    "The lamp turns once in ten seconds, every night of the year, whatever the weather brings.\n"
    "\n"
    "Its lens was ground in Paris\nin 1862. The lamp turns once more\t after   the storm is over.\r\n"
    "Nobody  knows why the keeper wrote this down, but here it stands for all to read.\n"
)
PAGES = ["First page. " * 10 + "\n", "  \n", "Third page. " * 10 + "\n"]
DOCUMENTS = {
    "notes.txt": Document(NOTES, verbatim=True),
    "manual.pdf": Document("".join(PAGES), page_starts=(0, 121, 124)),
    "minutes.docx": Document("We met. " * 20),
    "empty.txt": Document("", verbatim=True),
}


@pytest.fixture(scope="module")
def snapshot() -> FakeSnapshot:
    return build(DOCUMENTS)


def resolve(snapshot: FakeSnapshot, *expect: Expectation) -> list[tuple[str, int, int]]:
    (case,) = resolve_cases(snapshot, [Case("a", ("q",), expect)])
    return [(span.path, span.start_char, span.end_char) for span in case.spans]


def find_faults(snapshot: FakeSnapshot, *expect: Expectation) -> list[str]:
    return [f"{one.line}: {one.message}" for one in find_expected(snapshot, [Case("a", ("why?",), expect)])[1]]


def find_fault(snapshot: FakeSnapshot, expect: Expectation) -> str:
    (fault,) = find_faults(snapshot, expect)
    return fault.removeprefix("1: a “why?”: ")


def test_characters_are_taken_as_given(snapshot: FakeSnapshot) -> None:
    assert resolve(snapshot, Expectation("notes.txt", chars=(4, 8))) == [("notes.txt", 4, 8)]


def test_a_path_alone_is_the_whole_document(snapshot: FakeSnapshot) -> None:
    assert resolve(snapshot, Expectation("minutes.docx")) == [("minutes.docx", 0, 160)]


def test_a_quote_is_found_whatever_its_white_space(snapshot: FakeSnapshot) -> None:
    quote = "  turns once more after\nthe storm is over. Nobody knows "
    ((_, start, end),) = resolve(snapshot, Expectation("notes.txt", text=quote))
    assert NOTES[start:end] == "turns once more\t after   the storm is over.\r\nNobody  knows"


def test_a_quote_may_run_over_the_ends_of_chunks(snapshot: FakeSnapshot) -> None:
    ((_, start, end),) = resolve(snapshot, Expectation("notes.txt", text=NOTES))
    assert NOTES[start:end] == NOTES.strip()


def test_lines_end_before_their_line_end(snapshot: FakeSnapshot) -> None:
    ((_, start, end),) = resolve(snapshot, Expectation("notes.txt", lines=(3, 4)))
    assert (
        NOTES[start:end]
        == "Its lens was ground in Paris\nin 1862. The lamp turns once more\t after   the storm is over."
    )


def test_pages_are_found_by_their_starts_without_the_white_space_around_them(snapshot: FakeSnapshot) -> None:
    assert resolve(snapshot, Expectation("manual.pdf", pages=(1, 3))) == [
        ("manual.pdf", 0, 119),
        ("manual.pdf", 124, 243),
    ]


def test_a_case_that_expects_nothing_has_no_spans(snapshot: FakeSnapshot) -> None:
    assert resolve(snapshot) == []


def test_every_place_that_is_not_there_is_told_with_its_line_and_query(snapshot: FakeSnapshot) -> None:
    with pytest.raises(CasesError) as caught:
        resolve_cases(
            snapshot,
            [
                Case("a", ("how?",), (Expectation("notes.txt", 9, lines=(1, 6)), Expectation("none.txt", 12))),
                Case("b", ("why?",), (Expectation("notes.txt", 3, text="not in there"), Expectation("notes.txt", 4))),
            ],
        )
    assert caught.value.faults == (
        (3, "b “why?”: the quote “not in there” is not in notes.txt"),
        (9, "a “how?”: notes.txt has 5 lines, so no line 6"),
        (12, "a “how?”: none.txt is not in the index; did you mean notes.txt?"),
    )


@pytest.mark.parametrize(
    ("expect", "fault"),
    [
        (Expectation("else/notes.txt"), "else/notes.txt is not in the index; did you mean notes.txt?"),
        (Expectation("manaul.pdf"), "manaul.pdf is not in the index; did you mean manual.pdf?"),
        (Expectation("xyz"), "xyz is not in the index"),
        (Expectation("empty.txt"), "empty.txt has no text in the index (no text)"),
        (Expectation("minutes.docx", chars=(0, 161)), "minutes.docx ends at character 160, before 161"),
        (
            Expectation("minutes.docx", lines=(1, 1)),
            "minutes.docx has no lines, as its text is extracted: give text",
        ),
        (
            Expectation("manual.pdf", lines=(1, 1)),
            "manual.pdf has no lines, as its text is extracted: give pages or text",
        ),
        (Expectation("notes.txt", lines=(2, 2)), "lines 2 to 2 of notes.txt are blank"),
        (Expectation("notes.txt", pages=(1,)), "notes.txt has no pages: give lines or text"),
        (Expectation("minutes.docx", pages=(1,)), "minutes.docx has no pages: give text"),
        (Expectation("manual.pdf", pages=(2,)), "page 2 of manual.pdf has no text"),
        (Expectation("manual.pdf", pages=(4,)), "manual.pdf has 3 pages, so no page 4"),
        (
            Expectation("manual.pdf", pages=(1, 2, 4)),
            "page 2 of manual.pdf has no text; manual.pdf has 3 pages, so no page 4",
        ),
        (
            Expectation("notes.txt", text="The lamp turns once"),
            "the quote “The lamp turns once” is 2 times in notes.txt (line 1, line 4): quote more, or give lines",
        ),
        (
            Expectation("minutes.docx", text="We met."),
            "the quote “We met.” is 20 times in minutes.docx (character 0, character 8, character 16, character 24, "
            "character 32, …): quote more, or give start_char and end_char",
        ),
        (
            Expectation("notes.txt", text="Nobody knows why the captain wrote this down"),
            "the quote “Nobody knows why the captain wrote this down” is not in notes.txt; its first 4 words are "
            "(line 5), up to “captain”",
        ),
    ],
)
def test_a_fault_says_what_is_there_instead(snapshot: FakeSnapshot, expect: Expectation, fault: str) -> None:
    assert find_fault(snapshot, expect) == fault


@given(st.text("ab \n.", min_size=1, max_size=80).filter(str.strip), st.data())
def test_lines_are_those_that_splitting_at_line_ends_gives(text: str, data: st.DataObject) -> None:
    snapshot = build({"a.txt": Document(text, verbatim=True)})
    lines = text.removesuffix("\n").split("\n")
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    wanted = "\n".join(lines[first - 1 : last]).rstrip("\n")
    found, faults = find_expected(snapshot, [Case("a", ("q",), (Expectation("a.txt", lines=(first, last)),))])
    assert bool(faults) == (not wanted.strip())
    assert [text[span.start_char : span.end_char] for span in found[0].spans] == ([wanted] if wanted.strip() else [])


# Cases from headings


def make_markdown(*sections: tuple[str, str]) -> Document:
    text, headings = "", []
    for heading, body in sections:
        level = len(heading) - len(heading.lstrip("#"))
        headings.append(Heading(len(text), level, heading.lstrip("# ")))
        text += f"{heading}\n\n{body}\n\n"
    return Document(text, title="Pump manual", headings=tuple(headings), verbatim=True)


BODY = "Here stands what has to be known about it, in a sentence long enough to count."


def test_a_heading_becomes_a_query_that_expects_its_section() -> None:
    document = make_markdown(("# Pump manual", BODY), ("## 2.1 Cleaning", BODY), ("## Storage", BODY))
    cases = generate_cases(build({"docs/pump.md": document}))
    assert cases == [
        Case("pump-cleaning", ("Cleaning",), (Expectation("docs/pump.md", lines=(5, 7)),), generated=True),
        Case("pump-storage", ("Storage",), (Expectation("docs/pump.md", lines=(9, 11)),), generated=True),
    ]


def test_a_heading_that_occurs_twice_gets_what_stands_above_it_and_else_is_left_out() -> None:
    one = make_markdown(("## Pump", "."), ("### Care", BODY), ("## Valve", "."), ("### Care", BODY))
    two = make_markdown(("## Valve", "."), ("### Care", BODY))
    cases = generate_cases(build({"one.md": one, "two.md": two}))
    assert [case.queries for case in cases] == [("Care (Pump)",)]


def test_a_heading_without_words_or_with_little_below_it_is_no_case() -> None:
    document = make_markdown(("## 4.2", BODY), ("## Contents", "Short."), ("## 保养", BODY))
    assert [case.queries for case in generate_cases(build({"a.md": document}))] == [("保养",)]


def test_without_lines_a_section_is_expected_by_its_characters() -> None:
    text = f"Title\n\nCleaning\n{BODY}\n\n"
    document = Document(text, title="Title", headings=(Heading(7, 1, "Cleaning"),))
    (case,) = generate_cases(build({"a.docx": document}))
    start, end = case.expect[0].chars or (0, 0)
    assert text[start:end] == f"Cleaning\n{BODY}"


def test_fewer_cases_are_spread_evenly() -> None:
    document = make_markdown(*((f"## Part {chr(65 + n)}bc", BODY) for n in range(10)))
    cases = generate_cases(build({"a.md": document}), most=3)
    assert [case.queries[0] for case in cases] == ["Part Abc", "Part Dbc", "Part Gbc"]


def test_ids_are_distinct_though_file_names_and_headings_are_alike() -> None:
    one = make_markdown(("## Care", BODY))
    cases = generate_cases(build({"a/x.md": one, "b/x.md": make_markdown(("## care!", BODY)), "x.md": one}))
    assert [case.id for case in cases] == ["x-care"]
    cases = generate_cases(build({"a/x.md": one, "b/x.md": make_markdown(("## Care!", BODY))}))
    assert [case.id for case in cases] == ["x-care", "x-care-2"]


def test_generated_cases_resolve_to_what_they_were_made_from() -> None:
    snapshot = build({"docs/pump.md": make_markdown(("# Pump manual", BODY), ("## Cleaning", BODY))})
    (resolved,) = resolve_cases(snapshot, generate_cases(snapshot))
    text = "".join(stored.chunk.text for stored in snapshot.chunks(range(200)))
    assert [text[span.start_char : span.end_char] for span in resolved.spans] == [f"## Cleaning\n\n{BODY}"]
