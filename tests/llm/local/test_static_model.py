import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import ModelError
from graphrag_index.llm.local.static_model import (
    BATCH_TEXTS,
    StaticModel,
    WordPieces,
    load_static_model,
    read_safetensors,
    read_static_identity,
)
from tests.fixtures.examples import examples
from tests.fixtures.own_models import write_piece_table, write_safetensors

WORDS = ["ice", "ship", "coal", ".", "icebergs", "ლედი", "Ice,", "\ud800"]
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
VOCABULARY = [
    *("[PAD]", "[UNK]", "ice", "iceberg", "##berg", "##s", "a", "##a", "b", "##b", "1", "##1"),
    *("k", "##k", "##r", "##o", "##w", "é", "海", "冰", "’", "–", "£", "##°", "°", "ß", "##ß"),
    *MARKS,
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_piece_table(tmp_path / "table.safetensors")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> StaticModel:
    return load_static_model(write_piece_table(tmp_path_factory.mktemp("table") / "table"))


@pytest.mark.parametrize(
    ("text", "vector"),
    [
        ("ice", [1, 0, 0, 0]),
        # The weights are 3 and 4, whatever the order, the marks and the pieces without weight.
        ("Ice. SHIP", [0.6, 0.8, 0, 0]),
        ("ships. ice", [0.6, 0.8, 0, 0]),
        ("ice ship coal", [3 / 13, 4 / 13, 12 / 13, 0]),
        # Every occurrence counts.
        ("ship " + "ice " * 4_000, [0.999999944, 4 / 12_000, 0, 0]),
        # A text of unknown words, or without words, has the direction of the unknown piece.
        ("ლედი", [0, 0, 0, 1]),
        ("", [0, 0, 0, 1]),
        ("...", [0, 0, 0, 1]),
    ],
)
def test_a_text_is_the_weighted_sum_of_its_pieces(
    model: StaticModel, text: str, vector: list[float]
) -> None:
    found = model.embed([text])
    assert found.dtype == np.float32
    assert found.tolist() == [pytest.approx(vector, abs=6e-8)]


def test_no_texts_have_no_vectors(model: StaticModel) -> None:
    assert model.embed([]).shape == (0, 4)


def test_vectors_have_known_bits(model: StaticModel) -> None:
    # Exact sums, and then correctly rounded operations: no machine may give other bits.
    (vector,) = model.embed(["ice coal ship ice unknownword ice"])
    assert vector.tobytes().hex() == "531b143f82a6833ec379453f82a6833d"


@examples(25)
@given(texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=20))
def test_a_vector_is_bit_equal_in_every_batch(model: StaticModel, texts: list[str]) -> None:
    alone = [model.embed([text])[0].tobytes() for text in texts]
    assert [vector.tobytes() for vector in model.embed(texts)] == alone


def test_progress_counts_every_text_once(model: StaticModel) -> None:
    counts: list[int] = []
    model.embed(["ice"] * (BATCH_TEXTS + 3), counts.append)
    assert counts == [BATCH_TEXTS, 3]


def test_the_identity_changes_with_the_table(tmp_path: Path, table: Path) -> None:
    model = load_static_model(table)
    assert model.identity == read_static_identity(table)
    other = write_safetensors(tmp_path / "other", {"vectors": np.zeros((1, 2), "i1")})
    assert read_static_identity(other) != model.identity


def damage(path: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    if kind == "one bit":
        content[-1] ^= 1
    elif kind == "truncated":
        del content[-5:]
    elif kind == "longer":
        content += b"12345"
    elif kind == "header":
        content[8:12] = b"no j"
    elif kind == "within header":
        del content[20:]
    elif kind == "empty":
        content.clear()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("one bit", r"its hash has changed"),
        ("truncated", r"it has [\d,]+ bytes instead of [\d,]+"),
        ("longer", r"it has [\d,]+ bytes instead of [\d,]+"),
        ("header", r"its header is not the header of a safetensors file"),
        ("within header", r"it ends within its header"),
        ("empty", r"it ends within its header"),
    ],
)
def test_a_damaged_table_is_one_sentence(table: Path, kind: str, reason: str) -> None:
    damage(table, kind)
    with pytest.raises(ModelError) as raised:
        load_static_model(table)
    assert raised.match(rf"^.*table\.safetensors is damaged \({reason}\): install graphrag-index ")
    assert "\n" not in str(raised.value)


def test_a_missing_table_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        load_static_model(tmp_path / "none")
    assert str(raised.value) == (
        f"There is no file {tmp_path / 'none'}: install graphrag-index again."
    )


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"a": 1},
        {"a": {"dtype": "U16", "shape": [2], "data_offsets": [0, 3]}},
        {"a": {"dtype": "U16", "shape": [7], "data_offsets": [0, 4]}},
        {"a": {"dtype": "U16", "shape": [2], "data_offsets": [0]}},
        {"a": {"dtype": "U16", "shape": [2], "data_offsets": ["0", "4"]}},
        {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}},
        {"a": {}},
    ],
)
def test_a_header_that_is_wrong_is_one_sentence(tmp_path: Path, header: object) -> None:
    encoded = json.dumps(header).encode()
    path = tmp_path / "file"
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + b"1234")
    with pytest.raises(ModelError, match=r"^[^\n]+: install graphrag-index again\.$"):
        read_safetensors(path)


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
