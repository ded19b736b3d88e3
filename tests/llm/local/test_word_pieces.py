import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.local.word_pieces import WordPieces

MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
VOCABULARY = [
    *("[PAD]", "[UNK]", "ice", "iceberg", "##berg", "##s", "a", "##a", "b", "##b", "1", "##1"),
    *("k", "##k", "##r", "##o", "##w", "é", "海", "冰", "’", "–", "£", "##°", "°", "ß", "##ß"),
    *MARKS,
]


def cut(text: str) -> list[str]:
    # The texts around it have no influence.
    numbers, lengths = WordPieces(VOCABULARY).cut(["ice a", text, "", "berg"])
    start = int(lengths[0])
    return [VOCABULARY[number] for number in numbers[start : start + lengths[1]]]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("Icebergs, ice.", ["iceberg", "##s", ",", "ice", "."]),
        ("a-b", ["a", "-", "b"]),
        # Accents do not count, whether they are letters of their own or not.
        ("Kraków KRAKÓW krako\u0301w", ["k", "##r", "##a", "##k", "##o", "##w"] * 3),
        ("İce", ["ice"]),
        # A Chinese character is a word; a word in an unknown script or an unknown letter is not.
        ("海冰ice", ["海", "冰", "ice"]),
        ("ლედი aლ", ["[UNK]", "[UNK]"]),
        ("a°b", ["a", "##°", "##b"]),
        ("a°", ["a", "##°"]),
        ("ab’s–b", ["a", "##b", "’", "[UNK]", "–", "b"]),
        # An unknown symbol ends a word, and characters without width are not there.
        ("ice🙂berg", ["ice", "[UNK]"]),
        ("ice\u00adbergs \u200bice", ["iceberg", "##s", "ice"]),
        ("ice\ud800bergs", ["iceberg", "##s"]),
        ("a" * 100, ["a", *["##a"] * 99]),
        ("a" * 101, ["[UNK]"]),
        ("\x00", []),
    ],
)
def test_a_text_is_cut_into_the_longest_pieces(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


@given(text=st.text([*"icebrgsaAkKrowóé1 \n\t\u3000°£ß海’–ლжΩ½", *MARKS], max_size=60))
def test_pieces_are_those_of_the_library_of_the_model(text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    numbers = {piece: number for number, piece in enumerate(VOCABULARY)}
    library = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
    library.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    library.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    # The library keeps `½`, which is a digit to Python, in its word too.
    assert cut(text) == library.encode(text).tokens
