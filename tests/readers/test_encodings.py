"""The encodings of text files: found, named, or refused."""

import codecs
import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.encodings import DetectedEncoding, detect_encoding
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.cases import cases
from tests.fixtures.read_documents import read, read_one, reasons, texts
from tests.fixtures.sample_files import make_zip

GERMAN = (
    "Der Schriftsteller Günter Graß lebte in Lübeck; später zog er nach München. "
    "„Über die Brücke“, schrieb er, führt kein Weg zurück."
)
POLISH = (
    "Władysław Żeleński urodził się w Łodzi, gdzie później mieszkał z żoną Elżbietą. "
    "Książę Józef przyjechał również."
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Lübeck 東京 🙂", "utf-8"),
        ("Lübeck 東京 🙂", "utf-8-sig"),
        ("Lübeck 東京 🙂", "utf-16"),
        ("Lübeck 東京 🙂", "utf-32"),
        ("\ufeffLübeck", "utf-16-be"),
        ("A plain sentence in sixteen bits, Müller.", "utf-16-le"),
        ("A plain sentence in sixteen bits, Müller.", "utf-16-be"),
        (GERMAN, "cp1252"),
        ("Käthe Müller aß Brötchen.", "cp1252"),
        ("“It’s over,” said Mr. Brown — and left for £5 and 3 m³ of coal.", "cp1252"),
        ("The café was closed on Monday.", "cp1252"),
        ("L’été dernier, François est allé à l’hôpital. Ça va, dit-elle.", "cp1252"),
        ("El señor Muñoz vivía en Córdoba; ¿quién lo conocía? ¡Nadie!", "cp1252"),
        ("Åke Öberg åkte från Malmö till Göteborg.", "cp1252"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859_2"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy v Praze.", "cp1250"),
        ("Az őrült író, Petőfi Sándor, Kiskőrösön született.", "cp1250"),
        ("Atatürk Selanik'te doğdu, şehirde büyüdü ve İstanbul'a gitti.", "cp1254"),
        ("Лев Толстой родился в Ясной Поляне.", "cp1251"),
        ("Ο Αριστοτέλης γεννήθηκε στα Στάγειρα.", "cp1253"),
        ("東京は日本の首都です。夏目漱石は小説家でした。", "cp932"),
        ("北京是中华人民共和国的首都。鲁迅出生于浙江绍兴。", "gb18030"),
        (GERMAN.replace("„", '"').replace("“", '"'), "cp850"),
        (GERMAN, "mac_roman"),
        ("Władysław Żeleński urodził się w Łodzi.", "cp852"),
        ("Лев Толстой родился в Ясной Поляне.", "cp866"),
        ("北京是中华人民共和国的首都。\n鲁迅出生于浙江绍兴。", "utf-16-le"),
        ("北京是中华人民共和国的首都。\n鲁迅出生于浙江绍兴。", "utf-16-be"),
        ("北京是中华人民共和国的首都。", "utf-16-le"),
        ("東京は日本の首都です。\n夏目漱石は小説家でした。", "utf-16-le"),
        ("東京は日本の首都です。", "utf-16-be"),
        ("서울은 대한민국의 수도이다. 세종대왕은 조선의 왕이다.\n", "utf-16-le"),
        ("林海是青石港的第一任港務長。陳月是林海的學生，她在青石港管理倉庫二十年。", "big5"),
        ("林海是青石港的第一任港务长。陈月是林海的学生，她在青石港管理仓库二十年。", "gbk"),
        ("김민수는 푸른항의 첫 번째 항만장이었다. 박지영은 김민수의 제자였다.", "euc_kr"),
        ("Иван Соколов был первым начальником порта. Мария Орлова училась у него.", "koi8-r"),
        ("كان سالم الحداد أول مدير لميناء الخليج الأخضر. كانت ليلى منصور تلميذة سالم.", "cp1256"),
        ("田中健一は青波港の初代港長であった。", "iso2022_jp"),
        ("田中健一 (Tanaka) は 1953 年、\n初代港長であった。", "iso2022_jp"),
        ("Port: 김민수는 항만장이었다. 林海是港务长。", "iso2022_jp_2"),
        ("港長は ﾀﾅｶ であった。", "iso2022_jp_ext"),
        ("①番の港、𠀋の町。", "iso2022_jp_2004"),
        ("김민수는 푸른항의 첫 번째 항만장이었다.\nPark was 1 of 2.", "iso2022_kr"),
        ("林海是青石港的第一任港务长。", "hz"),
        ("Lin Hai ~ 林海是青石港的第一任港务长。\n陈月是林海的学生, 1953.", "hz"),
        ("\x1b[31mred\x1b[0m and \x1b(B", "ascii"),
        ("if ($a =~{ab}~} and ~{x} ~{abcd~} ok", "ascii"),
    ],
)
def test_the_encoding_of_a_file_is_found(
    tmp_path: Path, text: str, encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = read_one(tmp_path / "a.txt", text.encode(encoding))
    assert found.text == text.removeprefix("\ufeff")
    assert caplog.messages == []


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_every_text_in_utf8_is_found_to_be_utf8(text: str) -> None:
    assert detect_encoding(io.BytesIO(("x" + text).encode("utf-8"))) == DetectedEncoding("utf-8")


@pytest.mark.parametrize("length", range(65_530, 65_538))
def test_a_character_at_the_edge_of_a_piece_stays_whole(tmp_path: Path, length: int) -> None:
    text = "x" * length + "🙂東" + "y" * 2_000_000
    assert texts(tmp_path / "a.txt", text) == [text]


def test_evidence_far_into_the_file_decides(tmp_path: Path) -> None:
    text = "Nothing but ASCII here.\n" * 10_000 + GERMAN
    assert texts(tmp_path / "a.txt", text.encode("cp1252")) == [text]


def test_encodings_of_seven_bits_that_are_not_read_are_named(tmp_path: Path) -> None:
    chinese = b"\x1b$)A\x0e7pAV\x0f"
    assert reasons(tmp_path / "a.txt", chinese) == [
        "is in the encoding iso2022_cn, which is not read: save it as UTF-8"
    ]
    # The circled digit of an extension by NEC.
    (reason,) = reasons(tmp_path / "b.txt", b"\x1b$B-!@\x7f\x1b(B")
    assert reason.startswith("is not valid iso2022_jp_2: ")
    rows = b'{"text": "' + "初代港長".encode("iso2022_jp") + b'"}\n'
    assert texts(tmp_path / "c.jsonl", rows) == ["初代港長"]


def test_utf8_with_a_damaged_byte_is_not_taken_for_something_else(tmp_path: Path) -> None:
    damaged = GERMAN.encode("utf-8") + b" \xff\n"
    position = len(damaged) - 2
    assert reasons(tmp_path / "a.txt", damaged) == [f"is not valid utf-8: byte {position} is 0xff"]


@cases("text, encoding, gives")
def test_a_guess_that_may_be_wrong_is_told_with_the_file_and_the_setting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, encoding: str, gives: str
) -> None:
    path = tmp_path / "a.txt"
    read_one(path, text.encode(encoding))
    (said,) = caplog.messages
    assert said.startswith(f"{path.name}: the encoding is not certain. Read as {gives}")
    assert said.endswith(" If these are wrong, set load_documents.encoding.")
    caplog.clear()
    read(tmp_path / "x.zip", make_zip({"b/a.txt": text.encode(encoding)}))
    assert caplog.messages == [said.replace("a.txt", "x.zip/b/a.txt", 1)]
    caplog.clear()
    assert texts(path, text.encode(encoding), encoding=encoding) == [text]
    assert caplog.messages == []


@given(st.binary(max_size=80).map(lambda data: b"\x81\0" + data))
def test_any_bytes_are_in_some_encoding_or_in_none(data: bytes) -> None:
    with suppress(UnreadableFile):
        assert codecs.lookup(detect_encoding(io.BytesIO(data)).name)


def test_a_named_encoding_is_taken_strictly(tmp_path: Path) -> None:
    assert texts(tmp_path / "a.txt", b"\xe0", encoding="cp1251") == ["а"]
    assert reasons(tmp_path / "b.txt", b"\xe0", encoding="utf-8") == [
        "is not valid utf-8: byte 0 is 0xe0"
    ]
    # With or without its mark.
    assert texts(tmp_path / "c.txt", b"\xef\xbb\xbfa", encoding="utf-8") == ["a"]


def test_an_unknown_encoding_is_refused_with_the_settings() -> None:
    with pytest.raises(ValueError, match="'utf-9' is not an encoding"):
        LoadDocuments(encoding="utf-9")
