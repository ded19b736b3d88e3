import gzip
import hashlib
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from graphrag_index.errors import SettingsError
from graphrag_index.llm import tokens
from graphrag_index.llm.tokens import TokenCounts, count_tokens, load_encoding

ENCODINGS = Path(tokens.__file__).parent / "encodings"
RANKS_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
# The names under which tiktoken looks for the ranks before it downloads them.
NAMES_IN_CACHE = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}


def read_ranks(name: str) -> bytes:
    return gzip.decompress((ENCODINGS / f"{name}.tiktoken.gz").read_bytes())


@pytest.fixture(params=sorted(RANKS_SHA256))
def published(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tiktoken.Encoding:
    """The encoding as tiktoken defines it, with our ranks found in its cache."""
    name = str(request.param)
    (tmp_path / NAMES_IN_CACHE[name]).write_bytes(read_ranks(name))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


@pytest.mark.parametrize("name", sorted(RANKS_SHA256))
def test_the_ranks_are_those_that_were_published(name: str) -> None:
    assert hashlib.sha256(read_ranks(name)).hexdigest() == RANKS_SHA256[name]


def test_an_encoding_is_the_published_one(published: tiktoken.Encoding) -> None:
    ours = load_encoding(published.name)
    assert ours._pat_str == published._pat_str
    assert ours._special_tokens == published._special_tokens
    ranks = range(len(published._mergeable_ranks))
    assert {ours.decode_single_token_bytes(n): n for n in ranks} == published._mergeable_ranks


@pytest.mark.parametrize(
    ("name", "text", "token_ids"),
    [
        ("cl100k_base", "hello world", [15339, 1917]),
        ("o200k_base", "hello world", [24912, 2375]),
        ("o200k_base", "北京大学", [19340, 43065]),
        ("cl100k_base", "北京大学", [70090, 27384, 48864]),
        ("cl100k_base", "<|endoftext|>", [27, 91, 8862, 728, 428, 91, 29]),
        ("o200k_base", "", []),
    ],
)
def test_known_texts_have_known_tokens(name: str, text: str, token_ids: list[int]) -> None:
    encoding = load_encoding(name)
    assert encoding.encode(text, disallowed_special=()) == token_ids
    assert count_tokens(text, encoding) == len(token_ids)


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    encoding = load_encoding("o200k_base")
    assert count_tokens("a\ud800b", encoding) == 3
    assert count_tokens("a\ufffdb", encoding) == 3
    # Two that make a pair are the character that they mean.
    assert count_tokens("\ud83d\ude42", encoding) == count_tokens("\U0001f642", encoding) == 1


def test_a_million_blanks_are_counted() -> None:
    # In one piece they overflow the stack of tiktoken's regular expressions.
    assert 0 < count_tokens(" " * 1_000_000, load_encoding("o200k_base")) < 100_000


# Texts in which much may merge across a seam: blanks, line ends, marks, words.
SEAMS = st.lists(
    st.sampled_from([*" \n\t/.'\"(-", "  ", " \n", "\n\n", "\r\n"])
    | st.sampled_from(["the", "The", "'s", "12", "é", "北京", "\u0301"])
    | st.text(max_size=2)
).map("".join)


@given(SEAMS, st.data(), st.sampled_from(["o200k_base", "cl100k_base"]))
def test_a_span_has_the_tokens_of_its_text(text: str, data: st.DataObject, name: str) -> None:
    encoding = load_encoding(name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert TokenCounts(text, encoding).count_span(start, end) == count_tokens(
        text[start:end], encoding
    )


def test_the_tokens_between_places_are_those_of_the_pieces() -> None:
    encoding = load_encoding("o200k_base")
    text = "Hello world. It goes on.\nNext 北京大学。And the end"
    starts = [0, 13, 25, 35]
    assert [text[start] for start in starts] == ["H", "I", "N", "A"]
    pieces = ["Hello world.", " It goes on.\n", "Next 北京大学。", "And the end"]
    counts = TokenCounts(text, encoding)
    assert counts.count_between(starts) == [count_tokens(piece, encoding) for piece in pieces]
    assert TokenCounts("", encoding).count_between([]) == []


def test_a_text_that_is_encoded_piece_by_piece_has_the_tokens_of_the_whole() -> None:
    encoding = load_encoding("o200k_base")
    text = "Straße and more.\n" * 8_000
    counts = TokenCounts(text, encoding)
    line = count_tokens("Straße and more.\n", encoding)
    starts = range(0, len(text), 17)
    assert set(counts.count_between(starts)) == {line}
    assert counts.count_span(17 * 5_000, 17 * 7_000) == 2_000 * line


@given(st.text(st.characters() | st.sampled_from("\ud800\udfff <|endoftext|>")))
def test_any_text_is_counted_and_never_has_more_tokens_than_bytes(text: str) -> None:
    # A lone surrogate is replaced by a character of three bytes.
    n_bytes = len(text.encode("utf-8", "surrogatepass"))
    assert (text != "") <= count_tokens(text, load_encoding("cl100k_base")) <= n_bytes


def test_an_unknown_encoding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"'p50k': use cl100k_base or o200k_base\."):
        load_encoding("p50k")
