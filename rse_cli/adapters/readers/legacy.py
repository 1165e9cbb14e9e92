"""Encodings other than Unicode, told apart by how usual the characters are that each of them would give.

That works on one line of text; charset-normalizer, which needs a page, is asked only where no alphabet below fits.
"""

from __future__ import annotations

import codecs
import re

from rse_cli.dataclass import dataclass

_SAMPLE = 1 << 14
"""Bytes that choose a legacy encoding: five pages, after which nothing changes."""

_FITS = 0.5
"""Least rating at which a guess is believed: right ones rate 0.6 and more, wrong ones hardly above 0.4."""

_C1 = {at: bytes([at]).decode("cp1252", errors="ignore") or chr(at) for at in range(0x80, 0xA0)}
_SURROGATE = re.compile("[\ud800-\udfff]")
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
    if len(drop_ascii(sample)) < 64:
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, enable_fallback=False).best()
    return best.encoding if best is not None and best.encoding != "ascii" else "cp1252"


def decode_legacy(data: bytes, codec: str) -> str:
    r"""Decode all of `data`; undefined bytes of ``cp1252`` become the C1 controls that they are in Latin-1.

    Parameters
    ----------
    data : bytes
        The whole file.
    codec : str
        A name that `guess_legacy` returned, or of any other codec from bytes to text.

    Returns
    -------
    str
        Text without lone surrogates; what is no `codec` becomes U+FFFD.

    Examples
    --------
    >>> decode_legacy(b"\x80 5\x81", "cp1252")
    '€ 5\x81'
    """
    if codec != "cp1252":
        return _SURROGATE.sub("\ufffd", data.decode(codec, errors="replace"))
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return data.decode("latin-1").translate(_C1)


def drop_ascii(data: bytes) -> bytes:
    """Return the bytes of `data` above 127."""
    return data.translate(None, bytes(range(128)))
