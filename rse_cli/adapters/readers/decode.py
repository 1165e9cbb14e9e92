"""Bytes to text: which encoding a file is in, told from its bytes alone.

The order is: byte order mark; UTF-16 by its NUL bytes; UTF-8, also with a few damaged bytes; then what the letters say.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from rse_cli.adapters.readers.legacy import decode_legacy, drop_ascii, guess_legacy

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_UTF16_SAMPLE = 8192
"""Bytes looked at to recognise UTF-16 without a mark: as much as is looked at for binary files."""

_PER_BAD_BYTE = 3
"""Valid multi-byte characters for every damaged place that make a file UTF-8. Text in another encoding stays far below:
at most one valid sequence for two invalid ones in GBK, Big5 and EUC-KR, almost none in single-byte encodings."""

_EAST_ASIAN = re.compile("[\x00-\x7f\u2010-\u206f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]")


def decode(data: bytes) -> str:
    r"""Decode a text file whose encoding isn't known.

    A byte order mark is dropped; line ends, NUL and other controls are kept.

    Parameters
    ----------
    data : bytes
        The whole file.

    Returns
    -------
    str
        Text without lone surrogates; bytes that can't be decoded become U+FFFD.

    Examples
    --------
    >>> decode("Grüße".encode("latin-1")), decode("你好，世界".encode("gbk")), decode(b"\xef\xbb\xbfa\r\n")
    ('Grüße', '你好，世界', 'a\r\n')
    """
    for mark, codec in _BOMS:
        if data.startswith(mark) and (codec != "utf-32-le" or len(data) % 4 == 0):
            return data[len(mark) :].decode(codec, errors="replace")
    if (wide := guess_utf16(data)) is not None:
        return data.decode(wide, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if (text := _decode_damaged_utf8(data)) is not None:
        return text
    return decode_legacy(data, guess_legacy(data))


def has_bom(data: bytes) -> bool:
    """Return whether `data` begins with the byte order mark of a Unicode encoding."""
    return any(data.startswith(mark) for mark, _ in _BOMS)


def guess_utf16(data: bytes) -> str | None:
    r"""Return ``utf-16-le`` or ``utf-16-be`` if `data` is clearly one of them without a mark, else None.

    It is if it has NUL bytes, 99 % of its characters are everyday ones, and its bytes aren't those of plain text with
    a NUL in it: most characters are ASCII, or of one other alphabet, or Chinese, Japanese or Korean with many low bytes
    above 127.

    Parameters
    ----------
    data : bytes
        A file, or its first bytes.

    Examples
    --------
    >>> guess_utf16("Hi, Zoë\n".encode("utf-16-be")), guess_utf16(b"Hi\0"), guess_utf16(bytes(range(64)))
    ('utf-16-be', None, None)
    """
    sample = data[: min(len(data), _UTF16_SAMPLE) // 2 * 2]
    if 0 not in sample:
        return None
    halves = {"utf-16-le": (sample[1::2], sample[0::2]), "utf-16-be": (sample[0::2], sample[1::2])}
    # read with its bytes swapped, ASCII is Chinese: of two readings that make sense the one with more ASCII is meant
    by_ascii = sorted(halves, key=lambda codec: halves[codec][0].count(0), reverse=True)
    return next((codec for codec in by_ascii if _is_wide(sample, codec, *halves[codec])), None)


def _is_wide(sample: bytes, codec: str, high: bytes, low: bytes) -> bool:
    """Return whether `sample`, with these high and low bytes of its characters, is text in `codec`."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(sample)
    except UnicodeDecodeError:
        return False
    if sum(not _is_readable(char) for char in text) > 0.01 * len(text):
        return False
    alphabet = sum(sorted((high.count(value) for value in set(high)), reverse=True)[:2])
    is_alphabetic = len(high) >= 8 and alphabet >= 0.8 * len(high)
    is_asian = (
        0 in high and len(drop_ascii(low)) >= 0.15 * len(low) and len(_EAST_ASIAN.sub("", text)) <= 0.1 * len(text)
    )
    return high.count(0) >= 0.6 * len(high) or is_alphabetic or is_asian


def _is_readable(char: str) -> bool:
    """Return whether `char` may stand in a text file: white space, or an assigned character that isn't rare."""
    if char < " ":
        return char in "\t\n\r\x0b\x0c\x1b"
    return unicodedata.category(char) not in {"Cc", "Cn", "Co", "Cs"} and not "\u3400" <= char < "\u4e00"


def _decode_damaged_utf8(data: bytes) -> str | None:
    """Decode `data` as UTF-8 with U+FFFD for damaged bytes, or return None if it is rather another encoding."""
    text = data.decode("utf-8", errors="replace")
    bad = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    ascii_chars = len(data) - len(drop_ascii(data))
    good = len(text) - ascii_chars - bad
    is_cut = data[-1] >= 0x80 and bad == 1 and text.endswith("\ufffd") and good > 0
    return text if is_cut or good >= _PER_BAD_BYTE * bad else None
