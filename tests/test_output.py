"""What is written: JSON that any reader takes, and lines that no terminal obeys, whatever documents and names hold."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.cli.output import dump_json, make_visible, make_visible_line

OBEYED = "\0\x07\x1b\x7f\x85\x9b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ud800"
"""Of every kind one at least: all of Unicode is too much for them to be drawn by chance."""

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from(OBEYED))
DOCUMENTS = st.dictionaries(
    ANY_TEXT,
    st.recursive(
        ANY_TEXT | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def is_obeyed(character: str) -> bool:
    """Whether a terminal or a viewer does something for a character other than show it: controls and format characters."""
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or character in "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


@given(DOCUMENTS, st.booleans())
def test_any_document_is_valid_json_without_a_control(document: dict[str, Any], line: bool) -> None:
    written = dump_json(document, line=line)

    text = written.decode("utf-8")
    assert not any(is_obeyed(character) for character in text.replace("\n", ""))
    assert written.endswith(b"\n") and (not line or written.count(b"\n") == 1)
    assert json.loads(text) == json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_never_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"a": [number]})


@given(ANY_TEXT)
def test_no_text_that_is_shown_is_obeyed(text: str) -> None:
    assert not any(
        is_obeyed(one) for one in make_visible(text) if one not in "\t\n" and not "\ud800" <= one <= "\udfff"
    )
    assert len(make_visible_line(text).splitlines()) <= 1
    assert make_visible_line(make_visible_line(text)) == make_visible_line(text)
