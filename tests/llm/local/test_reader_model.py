"""Extractive models of a user: what they find in texts, and what is refused in one sentence."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import GraphRAGError, ModelError, SettingsError
from graphrag_index.llm.local.reader_model import MAX_WINDOWS, Reader, load_reader
from tests.fixtures.own_models import write_graph, write_tokenizer
from tests.fixtures.own_readers import SCORE, write_reader

SPANS = {"who": "Tom Crean", "many": "28 men"}


def find(reader: Reader, question: str, *texts: str) -> tuple[int, str] | None:
    """The number of the text that answers, and the answer."""
    span = reader.find_span(question, texts)
    return None if span is None else (span.text, texts[span.text][span.start : span.end])


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(write_reader(tmp_path / "reader", SPANS))


@pytest.mark.parametrize(
    ("question", "texts", "found"),
    [
        ("Who left?", ["No one here.", "There Tom Crean left."], (1, "Tom Crean")),
        ("How many left?", ["Tom Crean and 28 men left."], (0, "28 men")),
        # Of equal scores the first text counts.
        ("Who?", ["Tom Crean", "Tom Crean"], (0, "Tom Crean")),
        # The first token of a span is not behind its last one.
        ("Who?", ["Crean, not Tom"], None),
        # No separator ends a span.
        ("Who?", ["It was Tom"], None),
        # No span is above no answer.
        ("Who?", ["28 men left.", "", " "], None),
        ("Why?", ["Tom Crean left with 28 men."], None),
        ("Who?", [], None),
        ("", ["Tom Crean"], None),
        # The words of the question are no answer to it.
        ("Who is Tom Crean?", ["He left."], None),
    ],
)
@pytest.mark.parametrize("has_types", [True, False])
def test_the_best_span_of_all_texts_is_found(
    tmp_path: Path, has_types: bool, question: str, texts: list[str], found: tuple[int, str] | None
) -> None:
    reader = Reader(write_reader(tmp_path, SPANS, has_types=has_types))
    assert find(reader, question, *texts) == found


def test_the_score_is_that_above_no_answer(tmp_path: Path, reader: Reader) -> None:
    span = reader.find_span("Who?", ["It was Tom Crean."])
    assert span is not None
    assert span.score == pytest.approx(SCORE)
    for min_score, expected in ((SCORE - 1, (0, "Tom Crean")), (SCORE, None)):
        strict = Reader(write_reader(tmp_path / "reader", SPANS, min_score=min_score))
        assert find(strict, "Who?", "It was Tom Crean.") == expected


def test_places_are_those_of_the_text_as_it_is_written(reader: Reader) -> None:
    # The tokenizer leaves out accents and control characters, and the text has signs of 4 bytes.
    for text in (
        "Ünïcödé 🧭 \u200e\x00 e\u0301 – TÓM  CREAN…",
        "中国Tom Crean中国",
        "ß İ Tom Crean",
    ):
        span = reader.find_span("Who?", [text])
        assert span is not None
        assert text[span.start : span.end].split() in (["TÓM", "CREAN"], ["Tom", "Crean"])


def test_a_tokenizer_of_bytes_gives_places_of_characters(tmp_path: Path) -> None:
    spans = {"Q": "€5"}
    reader = Reader(write_reader(tmp_path, spans, of_bytes=True, has_types=False, max_tokens=16))
    # Three signs have the first byte of the span: the shortest span counts.
    assert find(reader, "Q", "Prémiums à ★ über 900 ¥ sind ☂ €5 für 🧭") == (0, "€5")
    # A span that begins or ends inside a word is extended to it.
    assert find(reader, "Q", "zahlt €567 für") == (0, "€567")
    # A surrogate alone is no character.
    assert find(reader, "Q \ud800", "zahlt \ud800 €5") == (0, "€5")


def test_a_space_is_no_answer(tmp_path: Path) -> None:
    folder = write_reader(tmp_path, {"Q": " "}, of_bytes=True, has_types=False)
    assert find(Reader(folder), "Q", "a b") is None


def test_words_without_spaces_between_them_are_not_extended(tmp_path: Path) -> None:
    reader = Reader(write_reader(tmp_path, {"Q": "19"}, of_bytes=True, has_types=False))
    assert find(reader, "Q", "于1959年") == (0, "1959")


@pytest.mark.parametrize("has_types", [True, False])
@pytest.mark.parametrize("place", [*range(0, 40), 99, 997, 998])
def test_a_long_text_is_read_in_windows_that_overlap(
    tmp_path: Path, place: int, has_types: bool
) -> None:
    folder = write_reader(tmp_path, SPANS, has_types=has_types, max_tokens=24, max_positions=25)
    words = ["word"] * 1_000
    words[place : place + 2] = ["Tom", "Crean"]
    text = " ".join(words)
    span = Reader(folder).find_span("Who left there?", ["Nothing.", text])
    assert span is not None
    assert (span.text, span.start) == (1, 5 * place)
    assert span.score == pytest.approx(SCORE)


def test_a_long_question_is_cut(tmp_path: Path) -> None:
    folder = write_reader(tmp_path, SPANS, max_tokens=24, max_positions=25)
    assert find(Reader(folder), "Who " + "or what " * 500, "It was Tom Crean.") == (0, "Tom Crean")
    assert find(Reader(folder), "Or what " * 500 + "who", "It was Tom Crean.") is None


def test_an_answer_has_a_maximum_length(tmp_path: Path) -> None:
    text = "It was Tom, as all of them knew, Crean."
    for max_answer_tokens, found in ((9, (0, text[7:-1])), (8, None)):
        folder = write_reader(tmp_path, {"who": "Tom Crean"}, max_answer_tokens=max_answer_tokens)
        assert find(Reader(folder), "Who?", text) == found


def test_the_number_of_windows_has_a_limit(reader: Reader) -> None:
    texts = ["Nothing."] * (MAX_WINDOWS - 1)
    assert find(reader, "Who?", *texts, "Tom Crean") == (MAX_WINDOWS - 1, "Tom Crean")
    assert find(reader, "Who?", *texts, "Nothing.", "Tom Crean") is None


def test_a_reader_is_loaded_once(tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "reader", SPANS)
    assert load_reader(folder) is load_reader(tmp_path / "reader" / ".." / "reader")


def test_hashes_of_the_files_are_checked(tmp_path: Path) -> None:
    digest = hashlib.sha256((write_reader(tmp_path, SPANS) / "model.onnx").read_bytes())
    Reader(write_reader(tmp_path, SPANS, sha256={"model.onnx": digest.hexdigest()}))
    with pytest.raises(ModelError, match=r"model\.onnx is not the file that .*reader\.yaml desc"):
        Reader(write_reader(tmp_path, SPANS, sha256={"model.onnx": "0"}))


def spoil(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def describe(text: str) -> Callable[[Path], object]:
    return spoil("reader.yaml", text.encode())


def make_sentence_transformer(folder: Path) -> None:
    write_tokenizer(folder)
    write_graph(folder / "model.onnx")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda folder: (folder / "model.onnx").unlink(),
            r"FOLDER has no model\.onnx, which the r.*",
        ),
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            r"FOLDER has no tokenizer\.json, which the reader needs: export it for the task .*",
        ),
        (
            make_sentence_transformer,
            r"FOLDER/model\.onnx has no output end_logits and is no reader: it has .*; export.*",
        ),
        (
            spoil("model.onnx", b"no graph"),
            r"onnxruntime cannot load FOLDER/model\.onnx: .*again\.",
        ),
        (spoil("model.onnx", b""), r"onnxruntime cannot load FOLDER/model\.onnx: .*again\."),
        (
            spoil("tokenizer.json", b"{}"),
            r"FOLDER/tokenizer\.json, the tokenizer of the reader FOLDER, cannot be read: .*",
        ),
        (
            lambda folder: write_reader(folder, SPANS, max_positions=100),
            r"onnxruntime cannot run FOLDER/model\.onnx: .*; if the model reads fewer than 384 "
            r"tokens, set max_tokens in FOLDER/reader\.yaml\.",
        ),
        (
            describe("max_token: 9"),
            r"FOLDER/reader\.yaml: unknown key 'max_token'; did you mean .*",
        ),
        (describe("max_tokens: 9"), r"FOLDER/reader\.yaml: max_tokens is 9: input should be gr.*"),
        (describe("a: b: c"), r"FOLDER/reader\.yaml is not valid YAML: .*"),
        (describe("min_score: .nan"), r"FOLDER/reader\.yaml: min_score is nan: .*"),
        (describe("sha256: {weights: '0'}"), r"FOLDER has no weights, which the reader needs: .*"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    tmp_path: Path, change: Callable[[Path], object], sentence: str
) -> None:
    folder = write_reader(tmp_path / "mine", SPANS)
    change(folder)
    with pytest.raises(
        GraphRAGError, match=f"^{sentence.replace('FOLDER', str(folder))}$"
    ) as error:
        load_reader(folder)
    assert str(error.value).count("\n") == 0


def test_scores_that_are_no_numbers_are_refused(tmp_path: Path, reader: Reader) -> None:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "reader" / "model.onnx"
    model = onnx.load(path)
    [positions] = [t for t in model.graph.initializer if t.name == "positions"]
    positions.float_data[0] = positions.float_data[3] = float("nan")
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"model\.onnx gives start_logits .* no numbers: export"):
        Reader(tmp_path / "reader")


def test_a_missing_folder_is_an_error_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^There is no folder .*/none: search\.reader_model"):
        load_reader(tmp_path / "none")


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_reader(tmp_path, SPANS)
    modules: dict[str, Any] = sys.modules
    monkeypatch.setitem(modules, library, None)
    with pytest.raises(
        ModelError, match=rf"needs the library {library}, .*graphrag-index\[minilm\]"
    ):
        Reader(folder)
