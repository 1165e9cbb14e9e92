"""Which files are indexed. Each tree is written as path -> content; answers are paths from the root."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rse_cli.adapters.discovery import Discovery, Selection, discover_files
from rse_cli.adapters.given_paths import choose_root
from rse_cli.adapters.ignore import compile_path_filter
from rse_cli.adapters.wildmatch import parse_rules
from rse_cli.errors import UsageError
from rse_cli.ports import FileStamp, FoundFile


def write_tree(root: Path, tree: dict[str, str]) -> None:
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def discover(root: Path, *paths: str, store: str = ".rse", **selection: object) -> Discovery:
    return discover_files(root, [root / path for path in paths], Selection(**selection), root / store)  # type: ignore[arg-type]


def find(root: Path, *paths: str, **selection: object) -> list[str]:
    return [file.path for file in discover(root, *paths, **selection).files]  # type: ignore[arg-type]


# What is found


def test_files_come_sorted_with_path_from_the_root_place_and_stamp(tmp_path: Path) -> None:
    write_tree(tmp_path, {"b.md": "bb", "a/c.md": "", "a-b.md": ""})
    found = discover(tmp_path).files
    assert [file.path for file in found] == ["a-b.md", "a/c.md", "b.md"]
    info = (tmp_path / "b.md").stat()
    assert found[2] == FoundFile("b.md", tmp_path / "b.md", FileStamp(2, info.st_mtime_ns, info.st_ctime_ns))


def test_only_what_lies_below_the_given_paths_is_found_and_each_file_once(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/x.md": "", "a/deep/y.md": "", "b/z.md": "", "c.md": ""})
    assert find(tmp_path, "a/deep", "a", "c.md", "a/deep/y.md") == ["a/deep/y.md", "a/x.md", "c.md"]


def test_names_that_differ_in_case_only_are_two_files(tmp_path: Path) -> None:
    write_tree(tmp_path, {"A.md": "", "a.md": ""})
    assert find(tmp_path) == ["A.md", "a.md"]


def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(1_200):
        folder /= "d"
        folder.mkdir()
    (folder / "x.md").touch()
    try:
        assert find(tmp_path) == ["d/" * 1_200 + "x.md"]
    finally:
        # pytest removes its folders by recursion.
        (folder / "x.md").unlink()
        while folder != tmp_path:
            folder.rmdir()
            folder = folder.parent


def test_missing_paths_are_all_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no such file or folder: .*/none, .*/a/b$"):
        discover(tmp_path, "none", ".", "a/b")


def test_a_path_outside_the_root_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, {"root/a.md": "", "rootless/b.md": ""})
    with pytest.raises(UsageError, match=r"^outside the indexed folder .*/root: .*rootless$"):
        discover(tmp_path / "root", "../rootless")


# Hidden files and ignore files


def test_hidden_files_and_folders_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "", ".b.md": "", ".c/d.md": ""})
    assert find(tmp_path) == ["a.md"]
    assert find(tmp_path, hidden=True) == [".b.md", ".c/d.md", "a.md"]


def test_a_path_given_is_taken_though_hidden_or_ignored_and_so_is_what_lies_below_it(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {".gitignore": "build/\n*.log", ".c/d.md": "", "build/e.md": "", "build/f.log": "", "g.log": ""}
    )
    assert find(tmp_path, ".c", "build", "g.log") == [".c/d.md", "build/e.md", "g.log"]


def test_deeper_ignore_files_override_those_above_and_rules_are_relative_to_their_folder(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".gitignore": "*.log\n/top.md\n",
            "top.md": "",
            "x.log": "",
            "sub/.gitignore": "!keep.log\n/own.md\n",
            "sub/top.md": "",
            "sub/keep.log": "",
            "sub/own.md": "",
            "sub/deep/keep.log": "",
            "sub/deep/own.md": "",
        },
    )
    assert find(tmp_path) == ["sub/deep/keep.log", "sub/deep/own.md", "sub/keep.log", "sub/top.md"]


def test_below_an_ignored_folder_nothing_is_brought_back(tmp_path: Path) -> None:
    write_tree(tmp_path, {".gitignore": "a/\nb/*\n!a/x.md\n!b/x.md\n", "a/x.md": "", "b/x.md": "", "b/y.md": ""})
    assert find(tmp_path) == ["b/x.md"]


def test_an_rseignore_wins_over_every_gitignore_even_a_deeper_one(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".rseignore": "drafts/\n!*.pdf\n",
            "sub/.gitignore": "*.pdf\n!drafts/\n",
            "sub/a.pdf": "",
            "sub/drafts/b.md": "",
        },
    )
    assert find(tmp_path) == ["sub/a.pdf"]


def test_a_rule_with_an_exclamation_mark_brings_back_a_hidden_folder(tmp_path: Path) -> None:
    write_tree(tmp_path, {".rseignore": "!.github/\n", ".github/a.md": "", ".github/.b.md": ""})
    assert find(tmp_path) == [".github/a.md"]


def test_no_ignore_reads_no_ignore_file(tmp_path: Path) -> None:
    write_tree(tmp_path, {".gitignore": "a.md", ".rseignore": "b.md", "a.md": "", "b.md": ""})
    assert find(tmp_path) == []
    assert find(tmp_path, no_ignore=True) == ["a.md", "b.md"]


def test_ignore_files_between_the_top_of_the_repository_and_the_root_apply(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".gitignore": "*.md\n",  # above the repository: not read
            "repo/.git/HEAD": "",
            "repo/.git/info/exclude": "*.tmp\n",
            "repo/.gitignore": "/docs/old/\n*.bak\n",
            "repo/.rseignore": "/docs/raw/",
            "repo/docs/a.md": "",
            "repo/docs/a.tmp": "",
            "repo/docs/sub/a.bak": "",
            "repo/docs/old/a.md": "",
            "repo/docs/raw/a.md": "",
            "repo/docs/sub/old/a.md": "",
        },
    )
    assert find(tmp_path / "repo/docs") == ["a.md", "sub/old/a.md"]
    assert find(tmp_path / "repo", "docs/sub") == ["docs/sub/old/a.md"]


def test_a_repository_inside_another_follows_its_own_gitignore_only(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".git/HEAD": "",
            ".gitignore": "*.log",
            ".rseignore": "*.tmp",
            "vendor/.git/HEAD": "",
            "vendor/.gitignore": "*.md",
            "vendor/a.log": "",
            "vendor/a.md": "",
            "vendor/a.tmp": "",
        },
    )
    assert find(tmp_path) == ["vendor/a.log"]


def test_a_worktree_finds_the_excludes_of_its_repository(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "main/.git/info/exclude": "*.tmp\n",
            "main/.git/worktrees/w/commondir": "../..\n",
            "w/.git": f"gitdir: {tmp_path}/main/.git/worktrees/w\n",
            "w/a.tmp": "",
            "w/a.md": "",
        },
    )
    assert find(tmp_path / "w") == ["a.md"]


@pytest.mark.parametrize(
    "content", ["gitdir: evil\n", "gitdir: a\0b\n", "gitdir: \n", "gitdir: " + "x/" * 3000, "\udcff"]
)
def test_a_git_file_that_names_no_repository_does_no_harm(tmp_path: Path, content: str) -> None:
    write_tree(tmp_path, {"a.md": "", "evil/b.md": ""})
    (tmp_path / ".git").write_bytes(os.fsencode(content))
    os.mkfifo(tmp_path / "evil" / "commondir")

    found = discover(tmp_path)

    assert [file.path for file in found.files] == ["a.md", "evil/b.md"]


def test_rules_that_ignore_the_root_itself_do_not_hide_it(tmp_path: Path) -> None:
    root = tmp_path / "repo" / ".notes"
    write_tree(root, {"a.md": "", ".gitignore": ".*/\n"})
    write_tree(tmp_path / "repo", {".git/HEAD": "", ".gitignore": ".notes\n"})
    assert find(root) == ["a.md"]


def test_ignore_files_may_hold_a_byte_order_mark_windows_line_ends_and_any_bytes(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "", "b.md": "", "c.md": ""})
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfa.md\r\n\xff\xfe\r\nb.md")
    assert find(tmp_path) == ["c.md"]


def test_a_pipe_in_place_of_an_ignore_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    write_tree(tmp_path, {"a.md": ""})
    assert find(tmp_path) == ["a.md"]


def test_a_huge_ignore_file_is_reported(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "", ".gitignore": "*.md\n" * 300_000})
    found = discover(tmp_path)
    assert [file.path for file in found.files] == ["a.md"]
    assert found.problems == ((".gitignore", "its rules don't apply: it has more than 1,000,000 bytes"),)


# Stores and git's own folder


def test_git_and_stores_are_never_indexed(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".git/config": "",
            ".rse/manifest.json": "",
            "sub/.rse/x.md": "",
            "mine/x.md": "",
            "other/manifest.json": "",
            "other/chunks.lance/x.txt": "",
            "site/manifest.json": "",
            "a.md": "",
        },
    )
    assert find(tmp_path, hidden=True, no_ignore=True, store="mine") == ["a.md", "site/manifest.json"]


@pytest.mark.parametrize("path", [".git", ".git/config", "other", "other/chunks.lance/x.txt", "mine/deep"])
def test_a_path_given_inside_a_store_or_git_is_reported(tmp_path: Path, path: str) -> None:
    write_tree(
        tmp_path,
        {".git/config": "", "other/manifest.json": "", "other/chunks.lance/x.txt": "", "mine/deep/x.md": ""},
    )
    found = discover(tmp_path, path, store="mine")
    assert (found.files, found.problems) == ((), ((path, "belongs to a store or to git"),))


# Globs


def test_include_and_exclude_take_gitignore_patterns_relative_to_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "", "a.txt": "", "docs/b.md": "", "docs/c.txt": "", "docs/old/d.md": ""})
    assert find(tmp_path, include=("*.md",)) == ["a.md", "docs/b.md", "docs/old/d.md"]
    assert find(tmp_path, include=("/*.md", "docs/**/*.txt")) == ["a.md", "docs/c.txt"]
    assert find(tmp_path, include=("./docs/",)) == ["docs/b.md", "docs/c.txt", "docs/old/d.md"]
    assert find(tmp_path, include=("docs", "!old/")) == ["docs/b.md", "docs/c.txt"]
    assert find(tmp_path, exclude=("docs/",)) == ["a.md", "a.txt"]
    assert find(tmp_path, exclude=("docs/**", "!d.md")) == ["a.md", "a.txt", "docs/old/d.md"]
    assert find(tmp_path, include=("*.md",), exclude=("old",)) == ["a.md", "docs/b.md"]


def test_globs_hold_for_the_paths_given_too(tmp_path: Path) -> None:
    write_tree(tmp_path, {"docs/old/a.md": "", "docs/b.txt": ""})
    assert find(tmp_path, "docs/old/a.md", "docs/b.txt", include=("*.md",)) == ["docs/old/a.md"]
    assert find(tmp_path, "docs/old", "docs/b.txt", exclude=("old/",)) == ["docs/b.txt"]
    assert find(tmp_path, "docs/old", include=("docs/",)) == ["docs/old/a.md"]


def test_globs_bring_back_nothing_ignored_or_hidden(tmp_path: Path) -> None:
    write_tree(tmp_path, {".gitignore": "a.md", "a.md": "", ".b.md": "", "c.md": ""})
    assert find(tmp_path, include=("*.md",)) == ["c.md"]


@pytest.mark.parametrize("glob", ["", "/", "a[b", "!"])
def test_a_glob_that_can_match_nothing_is_refused(tmp_path: Path, glob: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"the glob {glob!r} can match nothing")):
        discover(tmp_path, include=(glob,))


def test_the_path_filter_joins_globs_and_types() -> None:
    paths = ["a.md", "docs/a.MD", "docs/b.tar.gz", "docs/mdx", "#1.md"]

    def passing(globs: list[str], types: list[str]) -> list[str]:
        return list(filter(compile_path_filter(globs, types), paths))

    assert passing([], []) == paths
    assert passing([], ["md", ".gz"]) == ["a.md", "docs/a.MD", "docs/b.tar.gz", "#1.md"]
    assert passing(["docs/*"], ["md"]) == ["docs/a.MD"]
    assert passing(["!docs/"], []) == ["a.md", "#1.md"]
    assert passing(["#*"], []) == ["#1.md"]
    for kind in ("", ".", "a/b", "*.md"):
        with pytest.raises(UsageError, match="is no type of file"):
            compile_path_filter([], [kind])


@given(
    st.lists(st.text(st.sampled_from("ab/*?[]!\\.'\"# é")), max_size=4),
    st.lists(st.text(st.sampled_from("md./*A"), max_size=4), max_size=2),
    st.lists(st.text(st.sampled_from("ab/.'\" é"), min_size=1), max_size=5),
)
def test_any_filter_is_refused_in_one_line_or_decides_each_path_alone(
    globs: list[str], types: list[str], paths: list[str]
) -> None:
    try:
        passes = compile_path_filter(globs, types)
    except UsageError as fault:
        assert len(str(fault).splitlines()) == 1
        return
    together = [passes(path) for path in paths]
    assert together == [compile_path_filter(globs, types)(path) for path in paths]
    if not globs and not types:
        assert all(together)


# What can't be indexed


def test_files_above_the_cap_are_reported_with_their_size(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "123", "b.md": "1234"})
    found = discover(tmp_path, max_size=3)
    assert [file.path for file in found.files] == ["a.md"]
    assert found.oversize == (("b.md", 4),)


def test_a_link_to_a_file_in_the_root_is_followed_unless_the_file_is_found_itself(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.md": "a", ".hidden.md": "text"})
    for name, target in [("1.md", "a.md"), ("2.md", ".hidden.md"), ("3.md", ".hidden.md"), ("4.md", "1.md")]:
        (tmp_path / name).symlink_to(target)
    found = discover(tmp_path)
    assert [(file.path, file.stamp.size) for file in found.files] == [("2.md", 4), ("a.md", 1)]
    assert found.problems == ()


def test_links_out_of_the_root_and_broken_ones_are_reported(tmp_path: Path) -> None:
    write_tree(tmp_path, {"secret/x.md": "", "root/sub/a.md": ""})
    root = tmp_path / "root"
    for name, target in [
        ("out.md", "../secret/x.md"),
        ("out", "../secret"),
        ("gone.md", "nothing"),
        ("loop.md", "loop.md"),
        ("ignored.md", "nothing"),
    ]:
        (root / name).symlink_to(target)
    write_tree(root, {".gitignore": "ignored.md"})
    found = discover(root)
    assert [file.path for file in found.files] == ["sub/a.md"]
    assert found.problems == (
        ("gone.md", "a broken link: No such file or directory"),
        ("loop.md", "a broken link: Too many levels of symbolic links"),
        ("out", "a link out of the indexed folder"),
        ("out.md", "a link out of the indexed folder"),
    )


def test_a_link_brings_in_nothing_that_is_ignored_or_excluded(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            ".gitignore": "/private/\n*.key\n",
            "private/plan.md": "",
            "a/server.key": "",
            "a/.rseignore": "draft.txt\n",
            "a/draft.txt": "",
            "old/x.md": "",
            ".config/notes.md": "",
        },
    )
    targets = ("private/plan.md", "a/server.key", "a/draft.txt", "old/x.md", ".config/notes.md")
    for number, target in enumerate(targets):
        (tmp_path / f"{number}.md").symlink_to(target)

    found = discover(tmp_path, exclude=("old/",))

    # Hidden is only the name, and the link has another.
    assert [file.path for file in found.files] == ["4.md"]
    assert found.problems == tuple((f"{number}.md", "a link to an ignored file") for number in range(4))
    assert find(tmp_path, no_ignore=True, exclude=("old/",)) == [
        "4.md",
        "a/draft.txt",
        "a/server.key",
        "private/plan.md",
    ]
    assert find(tmp_path, "0.md") == ["0.md"]  # named itself


def test_the_settings_file_of_the_root_is_no_document(tmp_path: Path) -> None:
    write_tree(tmp_path, {"rse.toml": "", "a.md": "", "sub/rse.toml": ""})

    found = discover(tmp_path, ".", "rse.toml", hidden=True, no_ignore=True)

    assert [file.path for file in found.files] == ["a.md", "sub/rse.toml"]
    assert found.problems == (("rse.toml", "the settings of rse, not a document"),)


def test_links_to_folders_are_not_followed_so_no_cycle_ends_badly(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/x.md": ""})
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "b").symlink_to("a")
    found = discover(tmp_path)
    assert ([file.path for file in found.files], found.problems) == (["a/x.md"], ())
    assert find(tmp_path, "b") == ["a/x.md"]  # a folder given is the one that it links to


def test_a_link_into_git_or_a_store_is_not_followed(tmp_path: Path) -> None:
    write_tree(tmp_path, {".git/config": "", "s/manifest.json": "", "s/chunks.lance/x": ""})
    (tmp_path / "a").symlink_to(".git/config")
    (tmp_path / "b").symlink_to("s/manifest.json")
    assert find(tmp_path) == []


def test_pipes_and_sockets_are_reported_and_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # the path of a socket may have 107 bytes only
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        found = discover(tmp_path)
    reason = "not a file: a pipe, socket or device"
    assert (found.files, found.problems) == ((), (("pipe.md", reason), ("sock", reason)))
    assert discover(tmp_path, include=("*.txt",)).problems == ()


def test_names_that_are_not_utf8_are_reported_in_a_form_that_prints(tmp_path: Path) -> None:
    write_tree(tmp_path, {"café.md": ""})
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    folder.mkdir()
    (folder / "x.md").touch()
    found = discover(tmp_path)
    assert [file.path for file in found.files] == ["café.md"]
    assert found.problems == (("caf\\xe9.md", "the name is not UTF-8"), ("d\\xff", "the name is not UTF-8"))


def test_folders_that_cannot_be_read_are_reported_and_those_that_vanish_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"a/x.md": "", "locked/x.md": "", "gone/x.md": ""})
    scandir: Callable[[str], AbstractContextManager[Iterator[os.DirEntry[str]]]] = os.scandir

    def scan(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        faults = {"locked": PermissionError(13, "Permission denied"), "gone": FileNotFoundError(2, "No such file")}
        if fault := faults.get(Path(path).name):
            raise fault
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    found = discover(tmp_path)
    assert [file.path for file in found.files] == ["a/x.md"]
    assert found.problems == (("locked", "the folder can't be read: Permission denied"),)


def test_a_file_that_vanishes_during_the_walk_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"a.md": "", "b.md": ""})
    lstat = os.lstat

    def stat_late(path: str) -> os.stat_result:
        if path.endswith("a.md"):
            (tmp_path / "a.md").unlink()
        return lstat(path)

    monkeypatch.setattr(os, "lstat", stat_late)
    found = discover(tmp_path)
    assert ([file.path for file in found.files], found.problems) == (["b.md"], ())


# The root of a new store


def test_the_root_is_the_current_folder_if_it_holds_all_paths_else_the_deepest_that_does(tmp_path: Path) -> None:
    write_tree(tmp_path, {"here/a/x.md": "", "here/b/y.md": "", "there/c/z.md": "", "there/d.md": ""})
    here = tmp_path / "here"

    def root_of(*paths: str) -> str:
        return choose_root([Path(path) for path in paths], here).relative_to(tmp_path).as_posix()

    assert root_of() == "here"
    assert root_of("a", "b/y.md") == "here"
    assert root_of(".") == "here"
    assert root_of("../there") == "there"
    assert root_of("../there/c/z.md") == "there/c"
    assert root_of("../there/c", "../there/d.md") == "there"
    assert root_of("a", "../there") == "."
    assert root_of("..") == "."


# The patterns, against git itself

TRICKY = {
    "*.md": "",
    "!*.md": "",
    "doc/*.txt": "",
    "/**/foo": "",
    "a/**/b": "",
    "a/**": "",
    "**/": "",
    "*/": "!a/",
    "\\#x": "",
    "\\!x": "",
    "trail ": "",
    "trail\\ ": "",
    "[z-a]": "",
    "[!a-c]x": "",
    "[]x]": "",
    "[[:digit:]]*": "",
    "a?b": "",
    "x\\": "",
    "****/b": "",
}
NAMES = ["a", "b", "x", "foo", "#x", "!x", "trail", "trail ", "axb", "1st", "z.md", "]", "\\"]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    write_tree(root, {f"{first}/{second}/{third}": "" for first in "ab" for second in "ac" for third in NAMES})
    write_tree(root, {f"{folder}{name}": "" for folder in ("", "doc/", "a/") for name in ("z.md", "q.txt", "x", "#x")})
    subprocess.run(["git", "init", "-q", root], check=True, env=quiet_git())
    return root


def quiet_git() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def ask_git(root: Path, rules: list[str]) -> list[str]:
    (root / ".git/info/exclude").write_text("".join(f"{rule}\n" for rule in rules))
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "--others", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        env=quiet_git(),
    )
    return sorted(listing.stdout.decode().split("\0")[:-1])


@needs_git
@pytest.mark.parametrize(("first", "second"), TRICKY.items())
def test_tricky_patterns_leave_the_files_that_git_leaves(repository: Path, first: str, second: str) -> None:
    expected = ask_git(repository, [first, second])
    assert find(repository) == expected


@needs_git
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.sampled_from(["a", "b", "x", "*", "**", "/", "?", "[ab]", "[^a]", "!", "\\", ".md", "c/"]), min_size=1
        ).map(lambda parts: "".join(parts[:6])),
        max_size=4,
    )
)
def test_any_patterns_leave_the_files_that_git_leaves(repository: Path, rules: list[str]) -> None:
    # git takes a `**` after plain letters for a whole part of the path, against its own manual.
    assume(not any(re.search(r"[^/*!]\*\*|/\\", rule) for rule in rules))
    expected = ask_git(repository, rules)
    assert find(repository) == expected


def test_no_pattern_is_slow_to_match() -> None:
    name = "a" * 250
    for glob in ("*a" * 60 + "b", "a/" + "**/*a*/" * 30 + "b", "**/" * 40 + "b", "?*" * 80 + "b"):
        rules = parse_rules([glob])
        assert rules is not None
        assert rules.find_last_match("/".join([name] * 15), name, False) == -1
