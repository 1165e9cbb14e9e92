"""Bytes to text: which encoding a file is in, told from its bytes alone.

The order is: byte order mark; UTF-16 by its NUL bytes; UTF-8, also with a few damaged bytes; then what the letters say.
Legacy encodings are told apart by how usual the characters are that they would give, because that works on one line of
text; charset-normalizer, which needs a page, is asked only where no alphabet below fits.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_UTF16_SAMPLE = 8192
"""Bytes looked at to recognise UTF-16 without a mark: as much as is looked at for binary files."""

_SAMPLE = 1 << 14
"""Bytes that choose a legacy encoding: five pages, after which nothing changes."""

_PER_BAD_BYTE = 3
"""Valid multi-byte characters for every damaged place that make a file UTF-8. Text in another encoding stays far below:
at most one valid sequence for two invalid ones in GBK, Big5 and EUC-KR, almost none in single-byte encodings."""

_FITS = 0.5
"""Least rating at which a guess is believed: right ones rate 0.6 and more, wrong ones hardly above 0.4."""

_C1 = {at: bytes([at]).decode("cp1252", errors="ignore") or chr(at) for at in range(0x80, 0xA0)}
_SURROGATE = re.compile("[\ud800-\udfff]")
_EAST_ASIAN = re.compile("[\x00-\x7f\u2010-\u206f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]")
_HIGH = re.compile(rb"[\x80-\xff]")


_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_NO_CHARACTER = "\ufffd"
_WORD = re.compile(r"[^\W\d_µªº]+")
_SYMBOL_IN_WORD = re.compile(
    r"(?<=[^\W\d_])[^\x00-\x7f\w’‘·–—\xad\xa0…](?=[^\W\d_])|(?<=[^\W\d_])[²³¹¼½¾ªº](?=[^\W\d_])|[\xa2-\xbe]{2}"
)
_TYPOGRAPHIC = "«»–—„“”‘’…№°§©®\xa0·•€"
_WIDE_MARKS = "，。、：；！？“”（）《》「」『』・ー　"

_WESTERN = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿßœšžªº"
_ANY_LATIN = 0.8
"""What a mix of Western letters is worth that fits no single language: less than a language that does fit."""

_NO_LETTERS = 0.88
"""What quotes, dashes and signs without any accented letter are worth as Western text: two or three letters of another
language outweigh them."""

_POLISH, _CZECH, _SLOVAK = "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž"
_LATIN = (
    ("cp1252", "äöüßé"),
    ("cp1252", "àâæçéèêëîïôœùûüÿ"),
    ("cp1252", "áéíóúüñªº"),
    ("cp1252", "àáâãçéêíóôõúüªº"),
    ("cp1252", "àèéìíòóùúïüç"),
    ("cp1252", "åäöéæøüàô"),
    ("cp1252", "áæéíðóöúýþ"),
    ("cp1252", "äöüõšž"),
    ("cp1252", _WESTERN),
    ("cp1250", _POLISH),
    ("cp1250", _CZECH),
    ("cp1250", _SLOVAK),
    ("cp1250", "áéíóöőúüű"),
    ("cp1250", "čćđšž"),
    ("cp1250", "ăâîşţ"),
    ("iso8859-2", _POLISH),
    ("iso8859-2", _CZECH),
    ("iso8859-2", _SLOVAK),
    ("cp1254", "çğıöşüâîûi̇"),
    ("cp1257", "ąčęėįšųūž"),
    ("cp1257", "āčēģīķļņšūž"),
)
"""Encodings of the Latin script with the letters beyond ASCII of one or a few languages; of equals the first wins."""


@dataclass(frozen=True, slots=True)
class _Script:
    """A single-byte encoding of another script, with its lower-case letters, the eight commonest first."""

    codec: str
    letters: str


_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъёіїєґўјљњћџђ"
_SCRIPTS = (
    _Script("cp1251", _CYRILLIC),
    _Script("koi8-r", _CYRILLIC),
    _Script("iso8859-5", _CYRILLIC),
    _Script("cp866", _CYRILLIC),
    _Script("cp1253", "αοιετσνηυρπκμλςωγδχθφβξζψάέίήόύώϊϋΐΰ"),
    _Script("iso8859-7", "αοιετσνηυρπκμλςωγδχθφβξζψάέίήόύώϊϋΐΰ"),
    _Script("cp1255", "יוהלאתרמבשנקדםחעפטגצסכזןףךץ"),
    _Script("cp1256", "اليمونرتبعدهسفكقحةجشصطخىذضزءأإآئؤثظغ"),
)
"""Encodings of other scripts. Letter frequencies: the order given for each language in any table of them."""


@dataclass(frozen=True, slots=True)
class _Asian:
    """A multi-byte encoding: its commonest characters, the bytes of its everyday level, and what that is worth."""

    codec: str
    common: str
    everyday: range
    least_trail: int = 0xA1
    is_japanese: bool = False
    worth: float = 0.6


_JAPANESE = "日本人大年一国会中出上生者十学前行分事同間見時手自方高子社的新場金合部立下長度業家員地体東"
_ASIAN = (
    _Asian(
        "gb18030",
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事"
        "成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已"
        "工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加月话合回特代内信表化"
        "世位次度门任常先海通教提立及比员解水名真论入几口条平系气题",
        range(0xB0, 0xD8),
    ),
    _Asian(
        "big5hkscs",
        "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事"
        "成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已"
        "工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加月話合回特代內信表化",
        range(0xA4, 0xC7),
        least_trail=0x40,
    ),
    _Asian("cp932", _JAPANESE, range(0x88, 0x98), least_trail=0x40, is_japanese=True),
    _Asian("euc_jp", _JAPANESE, range(0xB0, 0xD0), is_japanese=True),
    _Asian(
        "cp949",
        "이다는을의가에고하지한은로도기사서를리인어스일자아나라대시있습니게해과들부정수보제구",
        range(0xB0, 0xC9),
        worth=0.65,
    ),
)
"""Encodings of Chinese, Japanese and Korean. GB 2312, Big5 and JIS X 0208 order an everyday level before a rare one."""


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
    return _decode_with(data, guess_legacy(data))


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
        0 in high and len(_drop_ascii(low)) >= 0.15 * len(low) and len(_EAST_ASIAN.sub("", text)) <= 0.1 * len(text)
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
    ascii_chars = len(data) - len(_drop_ascii(data))
    good = len(text) - ascii_chars - bad
    is_cut = data[-1] >= 0x80 and bad == 1 and text.endswith("\ufffd") and good > 0
    return text if is_cut or good >= _PER_BAD_BYTE * bad else None


def _drop_ascii(data: bytes) -> bytes:
    """Return the bytes of `data` above 127."""
    return data.translate(None, bytes(range(128)))


def guess_legacy(data: bytes) -> str:
    """Guess which encoding other than Unicode `data` is in.

    Every candidate decodes a sample, and the text is rated from 0 to 1 by how usual its letters beyond ASCII are
    in a language written in that encoding.

    Parameters
    ----------
    data : bytes
        With at least one byte above 127.

    Returns
    -------
    str
        The name of a Python codec; ``cp1252`` where nothing else fits.

    Examples
    --------
    >>> [guess_legacy(text.encode(codec)) for text, codec in [("Übermäßig", "latin-1"), ("Привет, мир", "koi8-r")]]
    ['cp1252', 'koi8-r']
    """
    first = _HIGH.search(data)
    if first is None:
        return "cp1252"
    # the first high byte begins a character; what stands before it says whether it is inside a word
    sample = data[first.start() : first.start() + _SAMPLE]
    before = data[max(0, first.start() - 20) : first.start()]
    rated = [(_rate_latin(_try(before + sample, codec), codec, letters), codec) for codec, letters in _LATIN]
    rated += [(_rate_script(_try(before + sample, script.codec), script), script.codec) for script in _SCRIPTS]
    rated += [(_rate_asian(_try(sample, asian.codec), asian), asian.codec) for asian in _ASIAN]
    rating, codec = max(rated, key=lambda pair: pair[0])
    return codec if rating >= _FITS else _ask_library(sample)


def _try(sample: bytes, codec: str) -> str:
    """Decode `sample`, which may end inside a character, with U+FFFD for what is no `codec`."""
    return codecs.getincrementaldecoder(codec)(errors="replace").decode(sample)


def _rate_latin(text: str, codec: str, letters: str) -> float:
    """Return the share of letters beyond ASCII that are in `letters`, in words that look like words."""
    right = wrong = plain = 0
    for word in (match[0] for match in _WORD.finditer(text)):
        beyond = [char for char in word.lower() if not char.isascii()]
        if not beyond or (len(word) < 3 and codec != "cp1252"):  # a unit or a currency rather than a word
            continue
        known = sum(char in letters for char in beyond) if _is_cased(word) else 0
        right += known
        wrong += len(beyond) - known
        plain += len(word) - len(beyond) if len(word) > 1 else 1
    wrong += sum(char in _NO_CHARACTER or not char.isprintable() for char in text if not char.isascii())
    wrong += len(_SYMBOL_IN_WORD.findall(text))
    if right + wrong == 0:
        return _NO_LETTERS if codec == "cp1252" else 0.0
    if codec == "cp1252":
        share = right / (right + wrong) * min(1.0, (plain + 1) / max(right, 1))
    else:  # a letter or two are too little to leave the commonest encoding for
        share = right / (right + wrong + 0.3) * min(1.0, plain / max(right, 1))
    return _ANY_LATIN * share if letters is _WESTERN else share


def _rate_script(text: str, script: _Script) -> float:
    """Rate `text` by how many of its letters beyond ASCII are the script's commonest, in words that look like words."""
    right = usual = wrong = 0.0
    for word in (match[0] for match in _WORD.finditer(text)):
        if word.isascii() or len(word) == 1:
            continue
        lower = word.lower()
        if not _is_cased(word) or any(char not in script.letters for char in lower):
            wrong += len(word)
        else:
            weight = 0.7 if word.isupper() else 1.0  # a text in capitals is rarer than a misread one
            right += weight * len(word)
            wrong += (1 - weight) * len(word)
            usual += weight * sum(char in script.letters[:8] for char in lower)
    wrong += sum(not char.isalpha() and char not in _TYPOGRAPHIC for char in text if not char.isascii())
    # the eight commonest letters make up 55 to 70 % of a text in their language
    return right / (right + wrong + 0.6) * min(1.0, usual / right / 0.7) if right else 0.0


def _is_cased(word: str) -> bool:
    """Return whether capitals stand only where they may: none, the first, or all."""
    return word.islower() or word.isupper() or word[1:].islower() or word.lower() == word.upper()


def _rate_asian(text: str, asian: _Asian) -> float:
    """Rate `text` by its characters beyond ASCII: 1 for the commonest, 0.6 for the others of the everyday level."""
    total = rating = 0.0
    for match in _BEYOND_ASCII.finditer(text):
        char = match[0]
        total += 1
        is_kana = asian.is_japanese and "\u3041" <= char <= "\u30fe"
        if is_kana or char in asian.common or char in _WIDE_MARKS:
            rating += 1
        elif char not in _NO_CHARACTER:
            code = char.encode(asian.codec, errors="replace")
            is_everyday = len(code) == 2 and code[0] in asian.everyday and code[1] >= asian.least_trail
            rating += asian.worth * is_everyday
    if total == 1:  # one character alone may be a sign and a letter of Western text
        return 0.75 * rating
    return rating / total if total else 0.0


def _ask_library(sample: bytes) -> str:
    """Return what charset-normalizer takes a long sample for, and ``cp1252`` for a short one."""
    if len(_drop_ascii(sample)) < 64:
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, enable_fallback=False).best()
    return best.encoding if best is not None and best.encoding != "ascii" else "cp1252"


def _decode_with(data: bytes, codec: str) -> str:
    """Decode all of `data`; undefined bytes of ``cp1252`` become the C1 controls that they are in Latin-1."""
    if codec != "cp1252":
        return _SURROGATE.sub("\ufffd", data.decode(codec, errors="replace"))
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return data.decode("latin-1").translate(_C1)
