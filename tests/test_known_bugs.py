"""What users of tools like this have reported as bugs, each with its right outcome, from the command line to the answer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result, Run
from tests.pdf_pages import LEFT, RIGHT, Pages
from tests.reliability.store_checks import find_faults, list_differences, read_rows

FERRY = "# Ferry\n\nThe ferry to the island leaves the northern quay at nine.\n"
BREAD = "# Bread\n\nThe dough of the rye bread rests for eleven hours in the cellar.\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def find(rse: Run, folder: Path, query: str, *flags: str) -> list[str]:
    """The paths of an answer, best first."""
    done = rse("query", query, "-l", *flags, cwd=folder)
    assert done.code in (0, 1), done.stderr
    return done.text.splitlines()


def answer(rse: Run, folder: Path, query: str, *flags: str) -> list[dict[str, Any]]:
    done = rse("query", query, "--json", *flags, cwd=folder)
    assert done.code in (0, 1), done.stderr
    return list(done.json["segments"])


def ingest(rse: Run, folder: Path, *flags: str) -> Result:
    done = rse("ingest", *flags, cwd=folder)
    assert done.code == 0, done.stderr
    return done


# Files that change


def test_two_files_whose_contents_are_swapped_are_both_indexed_anew(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {"a.md": FERRY, "b.md": BREAD})
    ingest(rse, tmp_path)
    (tmp_path / "a.md").rename(tmp_path / "c.md")
    (tmp_path / "b.md").rename(tmp_path / "a.md")
    (tmp_path / "c.md").rename(tmp_path / "b.md")

    assert ingest(rse, tmp_path).text == "new 0 · changed 2 · unchanged 0 · removed 0 · skipped 0\n"
    assert find(rse, tmp_path, "When does the ferry leave?") == ["b.md"]
    assert find(rse, tmp_path, "How long does the dough rest?") == ["a.md"]


def test_a_branch_switched_and_switched_back_equals_a_fresh_build(tmp_path: Path, rse: Run) -> None:
    folder, fresh = tmp_path / "repository", tmp_path / "fresh"
    folder.mkdir()

    def git(*arguments: str) -> None:
        setting = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *setting, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    write(folder, {"a.md": FERRY, "b.md": BREAD, "old.md": "# Old\n\nOnly on the first branch.\n"})
    git("add", ".")
    git("commit", "-m", "one")
    git("checkout", "-b", "other")
    write(folder, {"a.md": FERRY.replace("nine", "ten"), "new.md": "# New\n\nOnly on the other branch.\n"})
    git("rm", "old.md")
    git("add", ".")
    git("commit", "-m", "two")
    git("checkout", "main")
    ingest(rse, folder)
    for branch in ("other", "main"):
        git("checkout", branch)
        ingest(rse, folder)

    ingest(rse, folder, "--store", str(fresh))

    assert find_faults(read_rows(folder / ".rse")) == []
    assert list_differences(folder / ".rse", fresh) == []


def test_the_same_content_at_two_paths_is_kept_at_both(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {"a.md": FERRY, "copy/a.md": FERRY})
    ingest(rse, tmp_path)
    both = find(rse, tmp_path, "When does the ferry leave?")

    (tmp_path / "a.md").unlink()
    ingest(rse, tmp_path)

    assert both == ["a.md", "copy/a.md"]
    assert find(rse, tmp_path, "When does the ferry leave?") == ["copy/a.md"]


def test_a_file_added_after_the_index_was_built_is_found_at_once(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {f"{number}.md": f"# Part {number}\n\nA part of the machine.\n" for number in range(20)})
    ingest(rse, tmp_path)
    write(tmp_path, {"late.md": "# Late\n\nThe zymurgist arrived.\n"})
    ingest(rse, tmp_path)

    assert find(rse, tmp_path, "zymurgist", "--min-confidence", "0")[0] == "late.md"


def test_a_rule_that_hides_every_folder_with_a_dot_does_not_hide_the_root(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {".gitignore": ".*/\n", "a.md": FERRY, ".cache/b.md": BREAD})

    assert ingest(rse, tmp_path).text.startswith("new 1 ")
    assert ingest(rse, tmp_path, ".").text.startswith("new 0 · changed 0 · unchanged 1 ")


# Names and filters


@pytest.mark.parametrize(
    "name", ["O'Brien.md", '"quoted".md', "a'; DROP TABLE chunks; --.md", "100%_[x].md", "é 灯.md"]
)
def test_a_quote_in_a_path_stops_neither_filters_nor_updates(tmp_path: Path, rse: Run, name: str) -> None:
    write(tmp_path, {f"it's/{name}": FERRY, "b.md": BREAD})
    ingest(rse, tmp_path)
    pattern = "/it's/" + re.sub(r"([\[\]*?\\])", r"\\\1", name)

    assert find(rse, tmp_path, "When does the ferry leave?", "--path", pattern) == [f"it's/{name}"]
    assert find(rse, tmp_path, "When does the ferry leave?", "--path", "it's/") == [f"it's/{name}"]
    assert rse("inspect", "--document", f"it's/{name}", "--text", cwd=tmp_path).text == FERRY

    write(tmp_path, {f"it's/{name}": FERRY.replace("nine", "ten")})
    assert ingest(rse, tmp_path, f"it's/{name}").text.startswith("new 0 · changed 1 · unchanged 0 ")
    (tmp_path / "it's" / name).unlink()
    assert ingest(rse, tmp_path, "it's").text.startswith("new 0 · changed 0 · unchanged 0 · removed 1 ")
    assert find(rse, tmp_path, "rye bread") == ["b.md"]


@pytest.mark.parametrize("method", ["rse", "top-k", "hierarchical"])
def test_a_filter_is_applied_before_the_best_are_taken(tmp_path: Path, rse: Run, method: str) -> None:
    write(tmp_path, {f"many/{n:03}.md": FERRY.replace("nine", f"{n} past nine") for n in range(250)})
    write(tmp_path, {"one/far.md": "# Far\n\nA ferry is a boat.\n"})
    ingest(rse, tmp_path)

    found = find(
        rse, tmp_path, "When does the ferry leave?", "--path", "one/", "--method", method, "--min-confidence", "0"
    )

    assert found == ["one/far.md"]


# Odd queries


@pytest.mark.parametrize("query", ["???", '"', "'", "()", "* AND (", "a:b", "\\", "-", "…", "🚢"])
def test_a_query_of_punctuation_is_answered_or_finds_nothing(indexed_once: Path, rse: Run, query: str) -> None:
    done = rse("query", "--json", "--", query, cwd=indexed_once, stdin=b"?!")

    assert done.code in (0, 1)
    assert done.json["queries"] == ["?!" if query == "-" else query]


def test_a_query_of_a_hundred_thousand_characters_is_answered(indexed_once: Path, rse: Run) -> None:
    query = ("the filter of the pump, " * 5_000)[:100_000]

    done = rse("query", query, "--json", cwd=indexed_once)

    assert (done.code, done.json["truncated"]) == (0, True)
    assert done.json["segments"][0]["path"] == "docs/pump.md"
    assert done.stderr.startswith("rse: the query is longer than the model's 256 tokens")


# Texts


@pytest.mark.parametrize(
    ("character", "line"),
    [
        ("👩‍👩‍👧", "👩‍👩‍👧" * 400),
        ("灯", "灯塔的灯每十秒转一圈" * 200),
        ("👍🏽", "👍🏽" * 500),
        ("e\u0301", "e\u0301" * 900),
    ],
)
def test_a_line_without_spaces_is_never_cut_inside_a_character_nor_over_the_limit(
    tmp_path: Path, rse: Run, character: str, line: str
) -> None:
    write(tmp_path, {"a.md": f"{line}\n"})
    ingest(rse, tmp_path)

    chunks = rse("inspect", "--document", "a.md", "--json", cwd=tmp_path).json["chunks"]
    texts = [chunk["text"] for chunk in chunks]

    assert "".join(texts) == f"{line}\n"
    assert max(len(text.rstrip("\n")) for text in texts) <= 300
    if len(character) > 1:
        assert all(len(text.rstrip("\n")) % len(character) == 0 for text in texts)


def test_the_end_of_a_long_line_without_spaces_is_found(tmp_path: Path, rse: Run) -> None:
    write(
        tmp_path,
        {"a.md": "灯塔的灯每十秒转一圈" * 300 + "最后的渡轮九点离开北码头" + "。\n", "b.md": "雨" * 2_000 + "\n"},
    )
    ingest(rse, tmp_path)

    best = answer(rse, tmp_path, "渡轮什么时候离开码头", "--min-confidence", "0", "--limit", "1")[0]

    assert "最后的渡轮九点离开北码头" in best["text"]


def test_the_rows_of_a_table_are_whole(tmp_path: Path, rse: Run) -> None:
    rows = [
        f"| Boat {n} | built in {1900 + n}. Sold, twice; repaired at great cost in the yard | {n * 7} |"
        for n in range(40)
    ]
    write(tmp_path, {"boats.md": "# Boats\n\n| name | story | tons |\n|---|---|---|\n" + "\n".join(rows) + "\n"})
    ingest(rse, tmp_path)

    chunks = [one["text"] for one in rse("inspect", "--document", "boats.md", "--json", cwd=tmp_path).json["chunks"]]

    assert all(any(row in text for text in chunks) for row in rows)


def test_the_left_column_of_a_page_is_read_first(tmp_path: Path, rse: Run) -> None:
    Pages().add().lines(72, 100, LEFT).lines(320, 100, RIGHT).pdf.save(tmp_path / "report.pdf")
    ingest(rse, tmp_path)

    text = rse("inspect", "--document", "report.pdf", "--text", cwd=tmp_path).text

    assert " ".join(text.split()) == " ".join([*LEFT, *RIGHT])


def test_ligatures_and_words_hyphenated_over_a_line_end_are_found(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {f"{n}.md": f"# Note {n}\n\nSomething else about boats.\n" for n in range(5)})
    page = Pages().add().put(72, 100, "The ef\ufb01cient \ufb02ag of\ufb01cer signed the long-")
    page.put(72, 112, "term lease and the infra-").put(72, 124, "structure plan of 2019-").put(72, 136, "2020 at once.")
    page.pdf.save(tmp_path / "lease.pdf")
    ingest(rse, tmp_path)

    for query in ("efficient", "flag officer", "long-term lease", "infrastructure plan", "2020"):
        assert find(rse, tmp_path, query, "--min-confidence", "0")[0] == "lease.pdf", query
