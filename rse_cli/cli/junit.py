"""A check as JUnit XML: one testcase a case, whatever its text holds."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from rse_cli.cli.check_report import describe_verdict, render_totals
from rse_cli.cli.checked import Checked, describe_instead
from rse_cli.cli.output import make_visible
from rse_cli.core.cases import shorten
from rse_cli.pipeline.check import CaseResult

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may hold, even escaped (section 2.2, production Char)."""

_MESSAGE_CHARS = 300


def remove_report(path: Path) -> None:
    """Remove the report of an earlier check, so that nobody takes it for that of one which could not run."""
    # A file of another kind, given by mistake, stays until there is something to write.
    with suppress(OSError):
        if path.is_file() and b"<testsuites" in path.read_bytes()[:200]:
            path.unlink()


def build_junit(checked: Checked) -> bytes:
    """Return the document.

    A case that found nothing right or, with ``--each``, misses a limit is a failure; where the limits hold all the
    same, it is skipped, so that a reader of the file comes to the verdict of the exit code. Verdicts on means are no
    testcases; they are in the ``system-out`` of the suite.
    """
    n_failed = len(checked.failures)
    failed, skipped = (0, n_failed) if checked.passed else (n_failed, 0)
    counts = {"tests": str(len(checked.results)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", {"name": "rse check", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": clean_xml(checked.cases_file), **counts})
    for result in checked.results:
        _add_case(suite, checked, result)
    verdicts = [f"{'ok' if one.passed else 'FAIL'}  {describe_verdict(one, checked.each)}" for one in checked.verdicts]
    ElementTree.SubElement(suite, "system-out").text = clean_xml("\n".join([*render_totals(checked), *verdicts]))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_case(suite: ElementTree.Element, checked: Checked, result: CaseResult) -> None:
    case = result.case
    place = {"classname": clean_xml(checked.cases_file), "name": clean_xml(case.id)}
    element = ElementTree.SubElement(
        suite, "testcase", {**place, "file": clean_xml(checked.cases_file), "line": str(case.line)}
    )
    reasons = checked.failures.get(case.id)
    queries = "\n".join(f"query: {query}" for query in case.queries)
    if reasons:
        message = f"{'; '.join(reasons)}: {shorten(' + '.join(case.queries), _MESSAGE_CHARS)}"
        state = "skipped" if checked.passed else "failure"
        outcome = ElementTree.SubElement(element, state, {"message": clean_xml(message), "type": "case"})
        outcome.text = clean_xml("\n".join([queries, *_list_details(result)]))
    else:
        ElementTree.SubElement(element, "system-out").text = clean_xml(queries)


def _list_details(result: CaseResult) -> list[str]:
    lines = [f"expected: {one.path} characters {one.start_char} to {one.end_char}" for one in result.expected]
    instead = describe_instead(result)
    lines += [f"instead: {instead}"] if instead else []
    return [*(lines or ["expected: nothing"]), *(f"{name}: {value:.4g}" for name, value in result.measures.items())]


def clean_xml(text: str) -> str:
    r"""Return `text` with what XML can't hold as pictures or question marks; the rest is escaped by the writer.

    Examples
    --------
    >>> clean_xml("a\x00<b>\ufffe\ud800")
    'a␀<b>??'
    """
    return _FORBIDDEN.sub("?", make_visible(text))
