"""The application: its subcommands, and what becomes of errors, signals and closed pipes."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from rse_cli.cli import check, ingest, inspect, query, status, tune
from rse_cli.cli.output import discard_stdout, flush_streams, make_visible_line, say
from rse_cli.cli.timing_flag import report_timings
from rse_cli.errors import DamagedStoreError, RseError, Terminated
from rse_cli.timings import stop_timings

EXIT_OK, EXIT_NOTHING, EXIT_ERROR, EXIT_INTERRUPTED, EXIT_TERMINATED = 0, 1, 2, 130, 143

OUTPUT_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO)
"""What a write fails with; files are written where their names are known."""

app = typer.Typer(
    name="rse",
    help="Index folders and answer queries with segments: runs of adjacent chunks as long as the evidence says.",
    no_args_is_help=True,
    suggest_commands=False,  # click does, and both would
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ingest")(ingest.ingest)
app.command("query")(query.query)
app.command("inspect")(inspect.inspect)
app.command("status")(status.status)
app.command("check")(check.check)
app.command("tune")(tune.tune)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rse {version('rse-cli')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Index folders and answer queries with segments: runs of adjacent chunks as long as the evidence says."""


def _on_terminate(_number: int, _frame: object) -> NoReturn:
    raise Terminated


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; one line on stderr says what went wrong."""
    signal.signal(signal.SIGTERM, _on_terminate)
    stop_timings()  # of a command before in this process, which may have failed
    code = _run_and_explain(arguments)
    if code != EXIT_ERROR:
        # Also where it was interrupted, perhaps because it took so long.
        report_timings()
    return code


def _run_and_explain(arguments: Sequence[str]) -> int:
    import click

    try:
        code = _run_command(arguments)
        flush_streams()
    except click.exceptions.NoArgsIsHelpError as fault:
        say(fault.format_message())
        return EXIT_ERROR
    except click.ClickException as fault:
        context = getattr(fault, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        say(f"rse: {make_visible_line(fault.format_message()).rstrip('.')}{hint}")
        return EXIT_ERROR
    except KeyboardInterrupt:
        say(f"rse: interrupted{_mention_kept(arguments)}")
        return EXIT_INTERRUPTED
    except Terminated:
        say(f"rse: terminated{_mention_kept(arguments)}")
        return EXIT_TERMINATED
    except DamagedStoreError as fault:
        from rse_cli.cli.wiring import name_ingest
        from rse_cli.config import read_place

        command = name_ingest(read_place(fault.folder, os.environ), fault.flag)
        say(f"rse: {make_visible_line(fault.fault)}: {fault.remedy} with `{make_visible_line(command)}`")
        return EXIT_ERROR
    except RseError as fault:
        say(f"rse: {make_visible_line(str(fault))}")
        return EXIT_ERROR
    except BrokenPipeError:
        discard_stdout()
        return EXIT_OK
    except OSError as fault:
        say(f"rse: {_describe_system_fault(fault)}")
        return EXIT_ERROR
    except Exception:
        return _report_bug()
    return code if isinstance(code, int) else EXIT_OK


def _run_command(arguments: Sequence[str]) -> object:
    """Run one command line and return what the command returns, undoing what typer makes of signals and pipes."""
    try:
        code = typer.main.get_command(app).main(list(arguments), prog_name="rse", standalone_mode=False)
    except SystemExit as fault:
        if isinstance(fault.__context__, BrokenPipeError):
            raise BrokenPipeError from fault
        # After shell completion.
        return fault.code
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _mention_kept(arguments: Sequence[str]) -> str:
    """Say of a command that writes the index what becomes of a part of its work; others leave nothing behind."""
    return "; what was finished is kept" if {"ingest", "--refresh"} & {*arguments} else ""


def _describe_system_fault(fault: OSError) -> str:
    """Return one line for what the system refused and nobody expected: of a file, or of the help that click writes."""
    reason = fault.strerror or str(fault)
    if fault.filename is not None:
        return f"{make_visible_line(os.fsdecode(fault.filename))}: {reason}"
    what = "can't write the output" if fault.errno in OUTPUT_FAULTS else "the system failed"
    return f"{what}: {reason}"


def _report_bug() -> int:
    import traceback

    traceback.print_exc(file=sys.stderr)
    say("rse: this is a bug in rse; please report it with the lines above")
    return EXIT_ERROR
