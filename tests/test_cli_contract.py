"""What holds for every command: exit codes, streams, what is imported, help, version and completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run, clean_environment

COMMANDS = ("ingest", "query", "status")


# Wrong use


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["qurey"], "rse: No such command 'qurey'. Did you mean 'query'? (see rse --help)"),
        (["--verison"], "rse: No such option '--verison'. Did you mean '--version'? (see rse --help)"),
        (["query", "--jsno", "x"], "rse: No such option '--jsno'. (Did you mean one of: '--json', '--jsonl', '--store'?) (see rse query --help)"),
        (["query", "x", "--limit"], "rse: Option '--limit' requires an argument"),
        (["query", "x", "--limit", "two"], "rse: Invalid value for '--limit' / '-n': 'two' is not a valid integer (see rse query --help)"),
        (["status", "extra"], "rse: Got unexpected extra argument (extra) (see rse status --help)"),
        (["ingest", "--bad\x1b[31m\noption"], r"rse: No such option '--bad\x1b[31m\noption' (see rse ingest --help)"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_on_stderr(tmp_path: Path, rse: Run, arguments: list[str], line: str) -> None:
    done = rse(*arguments, cwd=tmp_path)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"{line}\n")


def test_rse_alone_shows_its_help_on_stderr(tmp_path: Path, rse: Run) -> None:
    done = rse(cwd=tmp_path)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.startswith("Usage: rse [OPTIONS] COMMAND [ARGS]...\n")


def test_a_process_ends_with_the_code_of_its_command(indexed_once: Path, rse_process: Run) -> None:
    found = rse_process("query", "filter of the pump", "-l", cwd=indexed_once)
    nothing = rse_process("query", "opera in Vienna", cwd=indexed_once)
    wrong = rse_process("query", "", cwd=indexed_once)

    assert (found.code, found.text, found.stderr) == (0, "docs/pump.md\n", "")
    assert (nothing.code, nothing.stdout, nothing.stderr[:18]) == (1, b"", "rse: nothing found")
    assert (wrong.code, wrong.stdout, wrong.stderr) == (2, b"", "rse: a query is empty\n")


def test_a_deleted_current_folder_is_one_line(tmp_path: Path, home: Path) -> None:
    script = (
        "import os, sys; from rse_cli.cli.main import run; os.rmdir(os.getcwd()); "
        "print([run([command, *more]) for command, *more in (['ingest'], ['query', 'x'], ['status'])])"
    )
    gone = tmp_path / "gone"
    gone.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=gone,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout == "[2, 2, 2]\n"
    assert done.stderr == "rse: the current folder was deleted: change to another one\n" * 3


# Streams


def run_in_shell(folder: Path, home: Path, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rse_cli", *arguments]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *command],
        cwd=folder,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "filter of the pump"],
        ["query", "filter of the pump", "--json"],
        ["status"],
        ["--help"],
        ["query", "--help"],
        ["--version"],
        ["query", "--list-methods"],
    ],
)
def test_a_full_disk_is_one_line(indexed_once: Path, home: Path, arguments: list[str]) -> None:
    done = run_in_shell(indexed_once, home, ">/dev/full", *arguments)

    assert (done.returncode, done.stderr) == (2, "rse: can't write the output: No space left on device\n")


@pytest.mark.parametrize(
    ("redirection", "arguments", "code", "stderr"),
    [
        (">&-", ["query", "filter of the pump"], 2, "rse: can't write the output: Bad file descriptor\n"),
        (">&-", ["--help"], 2, "rse: can't write the output: Bad file descriptor\n"),
        (">&- 2>&-", ["query", "filter of the pump", "--json"], 2, ""),
        (">&-", ["ingest", "--quiet", "--dry-run", "docs"], 0, ""),
        ("2>&-", ["query", "opera in Vienna"], 1, ""),
        ("<&-", ["query", "-"], 2, "rse: a query is empty\n"),
    ],
)
def test_closed_streams_are_no_bug(
    indexed_once: Path, home: Path, redirection: str, arguments: list[str], code: int, stderr: str
) -> None:
    done = run_in_shell(indexed_once, home, redirection, *arguments)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


def test_what_the_encoding_of_stdout_lacks_is_escaped(tmp_path: Path, rse: Run, rse_process: Run) -> None:
    (tmp_path / "zh.md").write_text("灯塔的灯每十秒转一圈。它的透镜是在巴黎磨制的。\n", encoding="utf-8")
    rse("ingest", cwd=tmp_path)

    plain = rse_process("query", "灯塔", "--plain", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    json = rse_process("query", "灯塔", "--json", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})

    assert plain.text.startswith("zh.md:1: \\u706f\\u5854")
    assert json.json["segments"][0]["text"].startswith("灯塔的灯")
    assert (plain.code, json.code) == (0, 0)


QUESTIONS = ("safe climbing", "battery")
EVERY_SCREEN = (
    *(["query", *QUESTIONS, *flags] for flags in ([], ["--json"], ["--plain"], ["-l"], ["--format", "context"])),
    *(["query", *QUESTIONS, "--json", "--method", method] for method in ("dsrag", "hierarchical", "window-parent", "average")),
    ["query", *QUESTIONS, "--json", "--dedupe", "--composite", "--mmr", "0.5", "--expand-short", "--complete-faq"],
    *(["inspect", QUESTIONS[0], *flags] for flags in ([], ["--json"], ["--explain"], ["--compare", "top-k"])),
    *(["check", "cases.yaml", *flags] for flags in ([], ["--json"])),
    *(["status", *flags] for flags in ([], ["--json"], ["-v"])),
    ["ingest", "--dry-run"],
    ["ingest", "--json"],
)  # fmt: skip


def test_every_screen_is_the_same_byte_for_byte_whatever_the_hash_seed(sample: Path, home: Path) -> None:
    script = (
        "import json, os, sys; from rse_cli.cli.main import run\n"
        "for arguments in json.loads(sys.argv[1]): print(arguments, run(arguments), flush=True)"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script, json.dumps(EVERY_SCREEN)],
            cwd=sample,
            env=clean_environment(home, {"PYTHONHASHSEED": str(seed)}),
            capture_output=True,
            timeout=300,
            check=True,
        )
        for seed in (0, 1)
    ]

    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stderr == outputs[1].stderr
    for arguments in EVERY_SCREEN:
        assert f"{arguments} 0\n".encode() in outputs[0].stdout
    assert len(outputs[0].stdout) > 100_000


# What is imported


def list_modules(folder: Path, home: Path, *arguments: str) -> set[str]:
    """The modules that a process of `rse` has imported when its command is done."""
    script = "import sys; from rse_cli.cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout
    return set(done.stderr.split())


def find_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


HEAVY = {
    "torch",
    "sentence_transformers",
    "transformers",
    "lancedb",
    "onnxruntime",
    "pymupdf",
    "fitz",
    "pydantic",
    "scipy",
    "pandas",
    "openai",
    "httpx",
    "asyncio",
}


@pytest.mark.parametrize("arguments", [["query", "filter of the pump"], ["query", "frost", "--json"], ["status"]])
def test_reading_commands_import_nothing_heavy(indexed_once: Path, home: Path, arguments: list[str]) -> None:
    modules = list_modules(indexed_once, home, *arguments)

    assert find_packages(modules) & HEAVY == set()
    assert "lance" in modules


# Modules that are not Python's own, of which each version has others, and five more for other versions of libraries:
# what takes longer to start shows here, on every machine alike.
@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["--help"], 51),
        (["status"], 264),
        (["query", "frost", "--json"], 277),
        (["query", "frost"], 320),
        (["inspect", "frost", "--json"], 284),
        (["inspect", "frost"], 319),
        (["check", "cases.jsonl", "--json"], 299),
    ],
)
def test_a_command_imports_no_more_modules_than_it_did(
    indexed: Path, home: Path, arguments: list[str], most: int
) -> None:
    (indexed / "cases.jsonl").write_text('{"query": "frost", "expect": [{"path": "docs/pump.md"}]}\n', encoding="utf-8")
    modules = list_modules(indexed, home, *arguments)

    assert len([name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names]) <= most


def test_a_first_ingest_imports_no_torch(documents: Path, home: Path) -> None:
    packages = find_packages(list_modules(documents, home, "ingest"))

    assert packages & {"torch", "transformers", "sentence_transformers", "scipy", "pandas"} == set()
    assert "tokenizers" in packages


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)])
def test_help_imports_next_to_nothing(tmp_path: Path, home: Path, arguments: list[str]) -> None:
    light = HEAVY | {"numpy", "rich", "lance", "pyarrow", "tokenizers", "yaml", "snowballstemmer"}

    assert find_packages(list_modules(tmp_path, home, *arguments)) & light == set()


# Help, version, completion


def test_the_version_is_that_of_the_package(tmp_path: Path, rse: Run) -> None:
    from importlib.metadata import version

    for flag in ("--version", "-V"):
        done = rse(flag, cwd=tmp_path)
        assert (done.code, done.text, done.stderr) == (0, f"rse {version('rse-cli')}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(tmp_path: Path, rse: Run, flag: str) -> None:
    done = rse(flag, cwd=tmp_path)

    assert (done.code, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.text.partition("Commands:\n")[2].splitlines() if line.strip()]
    assert set(COMMANDS) <= set(listed)
    assert all(len(line) <= 80 for line in done.text.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_80_columns_and_explains_every_flag(tmp_path: Path, rse: Run, command: str) -> None:
    done = rse(command, "--help", cwd=tmp_path)

    assert (done.code, done.stderr) == (0, "")
    assert done.text.startswith(f"Usage: rse {command} ")
    assert all(len(line) <= 80 for line in done.text.splitlines())


def complete(rse: Run, folder: Path, words: str) -> list[str]:
    env = {"_RSE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = rse(cwd=folder, env=env)
    assert (done.code, done.stderr) == (0, "")
    return done.text.split()


def test_bash_completes_commands_and_flags(tmp_path: Path, rse: Run) -> None:
    assert complete(rse, tmp_path, "rse qu") == ["query"]
    assert complete(rse, tmp_path, "rse query --pres") == ["--preset"]
    assert "ingest" in complete(rse, tmp_path, "rse ")


def test_the_completion_script_for_bash_is_valid_and_is_for_rse(tmp_path: Path, home: Path) -> None:
    program = Path(sys.executable).parent / "rse"
    if not program.exists():
        pytest.skip("rse is not installed beside this Python")
    show = 'script="$("$0" --show-completion)" && eval "$script" && complete -p rse'

    done = subprocess.run(
        ["bash", "-c", show, str(program)],
        cwd=tmp_path,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "complete -o default -F _rse_completion rse\n", "")


def test_no_code_of_the_indexed_folder_is_ever_run(tmp_path: Path) -> None:
    ran, folder = tmp_path / "ran", tmp_path / "hostile"
    folder.mkdir()
    for name in ("multiprocessing", "numpy", "lance", "json", "sitecustomize", "tokenizers", "pymupdf", "rse_cli"):
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')\n", encoding="utf-8")
    (folder / "page.html").write_text("<p>The pump is oiled in spring.</p>", encoding="utf-8")
    lines = "".join(f"Line {n} of a text that needs many vectors of its own.\n" for n in range(900))
    (folder / "many.txt").write_text(lines, encoding="utf-8")
    # The console script: `python -m` itself puts the current folder first, before any of our code runs.
    script = Path(sys.executable).with_name("rse")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}

    for arguments in (["ingest", "-j", "2"], ["query", "--refresh", "when is the pump oiled"]):
        done = subprocess.run([script, *arguments], cwd=folder, env=environ, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not ran.exists()


# Timings


@pytest.mark.parametrize(
    ("arguments", "stages"),
    [
        (["status", "--json"], {"fetch", "find", "compare", "render"}),
        (["status", "--verify"], {"verify"}),
        (["query", "frost", "--json"], {"encode", "fetch", "search", "score", "segments", "compare", "render"}),
        (["query", "--batch", "batch"], {"encode", "fetch", "search", "score", "segments", "compare", "render"}),
        (["inspect", "frost", "--json"], {"encode", "fetch", "search", "score", "segments", "compare", "render"}),
        (["inspect", "--document", "docs/pump.md"], {"fetch", "render"}),
        (["check", "cases.jsonl", "--json"], {"encode", "fetch", "search", "score", "segments", "compare", "render"}),
        (["ingest", "docs", "--json"], {"find", "read", "encode", "write", "index", "render"}),
    ],
)
def test_timings_say_on_stderr_where_the_time_went_and_change_nothing_else(
    indexed: Path, rse: Run, arguments: list[str], stages: set[str]
) -> None:
    (indexed / "batch").write_text("frost\nlens\n", encoding="utf-8")
    (indexed / "cases.jsonl").write_text('{"query": "frost", "expect": [{"path": "docs/pump.md"}]}\n', encoding="utf-8")
    plain = rse(*arguments, cwd=indexed)
    if arguments[0] == "ingest":
        (indexed / "docs" / "new.txt").write_text("Oars lie in the shed.\n", encoding="utf-8")

    timed = rse(*arguments, "--timings", cwd=indexed)

    assert timed.code == plain.code == 0
    if arguments[0] != "ingest":
        assert timed.stdout == plain.stdout
    *others, line = timed.stderr.splitlines()
    assert others == plain.stderr.splitlines()
    total, told = line.removeprefix("rse: ").split(" s: ")
    seconds = {name: float(one) for name, one in (stage.split(" ") for stage in told.split(", "))}
    assert stages | {"import"} <= seconds.keys()
    assert min(seconds.values()) >= 0
    if "rest" in seconds:
        assert sum(seconds.values()) == pytest.approx(float(total), abs=0.02)


def test_timings_of_an_interrupted_command_say_how_far_it_came(
    indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rse_cli.cli.querying.show_answer", interrupt)
    interrupted = rse("query", "frost", "--timings", cwd=indexed)

    told, timings = interrupted.stderr.splitlines()
    assert (interrupted.code, interrupted.stdout, told) == (130, b"", "rse: interrupted")
    assert {"encode", "search", "score"} <= set(timings.split())


def test_timings_of_an_error_are_not_told(tmp_path: Path, rse: Run) -> None:
    assert len(rse("status", "--timings", cwd=tmp_path).stderr.splitlines()) == 1
