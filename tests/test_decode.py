"""Bytes to text: which encoding a file is taken for."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rse_cli.adapters.readers.decode import decode, guess_utf16
from rse_cli.adapters.readers.legacy import guess_legacy
from rse_cli.adapters.readers.markup import decode_markup

GERMAN = "Die Änderungen der Verordnung über die Führung von Büchern treten am 1. März in Kraft. "
FRENCH = "Les élèves ont été reçus à l’école où le français est enseigné – « très bien ». "
CHINESE = "本公司成立于二〇〇三年，主要从事软件开发与技术服务。如果产品在保修期内损坏，请联系客服。"
TAIWANESE = "人工智慧是電腦科學的一個分支，它企圖了解智慧的實質，並生產出新的機器。"
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
KOREAN = "대한민국은 민주공화국이다. 모든 권력은 국민으로부터 나온다."
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. "


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32", "utf-8"])
def test_a_byte_order_mark_is_dropped_and_line_ends_are_kept(codec: str) -> None:
    assert decode("Grüße,\r\n世界 😀\rEnde\n".encode(codec)) == "Grüße,\r\n世界 😀\rEnde\n"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Hi, Zoë\n", "第一章 一个测试\n一二三\n", "Привет, мир\n", "a"])
def test_utf16_without_a_mark_is_known_by_its_nul_bytes(codec: str, text: str) -> None:
    assert decode(text.encode(codec)) == text


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01\x00", bytes(range(256)), b"ab\0cd", b"PK\x03\x04\x14\0\0\0\x08\0", b"\0\0"]
)
def test_binary_data_is_not_utf16(data: bytes) -> None:
    assert guess_utf16(data) is None


def test_nul_and_other_controls_in_a_text_are_kept() -> None:
    assert decode(b"a\0b\x1b[1m\x0c\x85".replace(b"\x85", "\x85".encode())) == "a\0b\x1b[1m\x0c\x85"


SHORT_WESTERN = [
    "für", "Ä", "Straße", "Übermäßig", "Größe: 5 Äpfel", "café", "Été à la plage, déjà vu", "El niño comió mañana",
    "¿Qué pasó? ¡Año nuevo!", "¡Bip!", "Não é possível", "perché così è più", "non è", "Räksmörgås", "smørrebrød",
    "Þórður", "naïve résumé", "25° and 10 µm", "5 ± 2 m², ½ l", "© 2020 Café", "Ölförderung: 25 °C, »gut«",
]  # fmt: skip


@pytest.mark.parametrize("text", [*SHORT_WESTERN, GERMAN, FRENCH.replace("’", "'").replace("–", "-"), GERMAN * 500])
def test_latin1_text_of_any_length_stays_western(text: str) -> None:
    assert decode(text.encode("latin-1")) == text


@pytest.mark.parametrize(
    "text", ["don’t “quote” – it’s £5", "wait… what", "5 €", "L’élève a reçu", FRENCH, FRENCH * 500]
)
def test_windows_quotes_and_dashes_are_read_as_such(text: str) -> None:
    assert decode(text.encode("cp1252")) == text


@pytest.mark.parametrize(
    "text",
    ["联通", "中文", "安装", "产品手册", "你好，世界", "这是一个测试文件", "第三章 售后服务", "吕志兴",
     "安装 rse 需要 Python 3.11。\r\n运行 make demo 即可。\r\n", CHINESE, CHINESE * 2000, "x" * 50_000 + CHINESE],
)  # fmt: skip
@pytest.mark.parametrize("codec", ["gbk", "gb18030"])
def test_gbk_text_of_any_length_becomes_the_right_chinese(text: str, codec: str) -> None:
    assert decode(text.encode(codec)) == text


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("產品手冊", "big5"),
        (TAIWANESE, "big5"),
        ("日本語", "cp932"),
        ("製品マニュアル", "cp932"),
        (JAPANESE, "cp932"),
        ("これはテストです", "euc_jp"),
        (JAPANESE, "euc_jp"),
        ("안녕하세요", "cp949"),
        (KOREAN, "cp949"),
        ("Привет, мир", "cp1251"),
        (RUSSIAN, "cp1251"),
        ("Привет, мир", "koi8-r"),
        (RUSSIAN, "koi8-r"),
        ("Глава 1. Введение", "cp1251"),
        ("Всі люди народжуються вільними", "cp1251"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Zażółć gęślą jaźń", "iso8859-2"),
        ("Příliš žluťoučký kůň", "cp1250"),
        ("Árvíztűrő tükörfúrógép", "cp1250"),
        ("Türkçe yazı, ığdır ğ", "cp1254"),
        ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ" * 3, "cp874"),
    ],
)
def test_other_legacy_encodings_are_told_apart_by_their_letters(text: str, codec: str) -> None:
    assert decode(text.encode(codec)) == text


def test_a_few_damaged_bytes_leave_a_file_utf8() -> None:
    assert decode("Grüße, 世界\n".encode() + b"\xff\n") == "Grüße, 世界\n\ufffd\n"
    assert decode("naïve – “quoted”".encode()[:-1]) == "naïve – “quoted\ufffd"


def test_utf8_that_is_cut_inside_its_last_character_stays_utf8() -> None:
    assert decode("für ü".encode()[:-1]) == "für \ufffd"


def test_bytes_that_cp1252_leaves_undefined_become_controls() -> None:
    assert decode(b"caf\xe9 \x81 \x93x\x94") == "café \x81 “x”"


@given(st.binary(max_size=200))
@example(b"\xff\xfe\x00\xd8")
@example(b"\xed\xa0\x80")
@example(b"\x83\x36\xc7\x38\x83\x36\xc7\x38")
def test_any_bytes_become_text_without_lone_surrogates(data: bytes) -> None:
    decode(data).encode("utf-8")


@given(st.sampled_from(["gb18030", "gbk", "utf-7", "utf-16", "cp949", "unicode_escape"]), st.binary(max_size=60))
@example("gb18030", b"\x83\x36\xc7\x38\x83\x36\xc7\x38")
@example("unicode_escape", b"\xff \\ud800")
def test_no_declared_encoding_brings_lone_surrogates_into_a_page(codec: str, data: bytes) -> None:
    decode_markup(f'<meta charset="{codec}">'.encode() + data).encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff")))
def test_whatever_is_utf8_is_read_as_utf8(text: str) -> None:
    assert decode(text.encode()) == text


@given(st.sampled_from([GERMAN, FRENCH, CHINESE, RUSSIAN]), st.integers(16, 40), st.integers(0, 30))
def test_sixteen_characters_from_anywhere_in_a_text_tell_its_encoding(text: str, length: int, start: int) -> None:
    piece = text[start : start + length]
    codec = {CHINESE: "gbk", RUSSIAN: "cp1251"}.get(text, "cp1252")
    assert decode(piece.encode(codec)) == piece


def test_neither_utf8_nor_a_short_text_of_a_western_page_needs_charset_normalizer() -> None:
    sys.modules.pop("charset_normalizer", None)
    decode("Grüße aus München\n".encode() * 500_000)
    assert guess_legacy(b"\xe9t\xe9 \xe0 la plage") == "cp1252"
    assert "charset_normalizer" not in sys.modules
