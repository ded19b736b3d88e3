"""Questions that are made from an index, and files of them in known layouts."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphrag_query
from graphrag_evaluation.generation.make_questions import (
    KINDS,
    Corpus,
    Fact,
    Mention,
    Sentence,
    _read_predicate,
    ask_about_topics,
    ask_for_subject,
    ask_for_time,
    exchange_names,
    find_facts,
    make_questions,
)
from graphrag_evaluation.questions import (
    EvaluationQuestion,
    GoldSpan,
    read_questions,
    write_questions,
)
from graphrag_index.__main__ import app
from graphrag_index.errors import SettingsError


@pytest.fixture(scope="module")
def questions(sample_project: Path) -> list[EvaluationQuestion]:
    with graphrag_query.open(sample_project / "output") as index:
        return make_questions(index, 30, seed=17)


def test_spans_hold_the_sentences_that_answer(
    questions: list[EvaluationQuestion], sample_project: Path
) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        texts = dict(index.store.scan("documents").select("id", "text").collect().iter_rows())
    for question in questions:
        assert bool(question.spans) == question.is_answerable
        for span in question.spans:
            assert texts[span.document][span.start_char : span.end_char] == span.text
        if question.kind in ("local", "temporal"):
            [span] = question.spans
            assert any(answer in span.text for answer in question.answers), question


def test_every_kind_is_made_and_no_document_is_in_both_splits(
    questions: list[EvaluationQuestion],
) -> None:
    kinds = Counter(question.kind for question in questions)
    # Questions of two passages need a model.
    assert kinds.keys() == KINDS.keys() - {"two-hop", "comparison"}
    tune, report = (
        {name for question in questions if question.split == split for name in question.documents}
        for split in ("tune", "report")
    )
    assert tune
    assert report
    assert not tune & report


def test_equal_seeds_give_equal_questions(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        kinds = ["local", "whole-corpus", "temporal"]
        once, again, other = (make_questions(index, 20, seed, kinds) for seed in (1, 1, 2))
    assert once == again != other


def fact(subject: str, predicate: str, **values: object) -> Fact:
    content: dict[str, object] = {
        "article": "",
        "subject_names": (subject,),
        "subject_type": "person",
        "span": GoldSpan("d", 0, len(predicate), f"{subject} {predicate}."),
        **values,
    }
    return Fact(subject=subject, predicate=predicate, **content)  # type: ignore[arg-type]


BORN = fact(
    "Tom Crean",
    "was born at Annascaul in 1877",
    named=("Annascaul",),
    time="1877",
    before_time="was born at Annascaul",
)
LED = fact("Tom Crean", "led the last party over the Beardmore Glacier")
DIED = fact("Frank Wild", "died in 1939", time="1939", before_time="died")


def test_questions_are_asked_in_the_words_of_the_sentences() -> None:
    assert ask_for_subject(LED).text == "Who led the last party over the Beardmore Glacier?"
    time, death = ask_for_time(BORN), ask_for_time(DIED)
    assert time is not None
    assert (time.text, time.answers) == ("When was Tom Crean born at Annascaul?", ("1877",))
    assert death is not None
    assert death.text == "When did Frank Wild die?"
    assert ask_for_time(LED) is None


def test_names_that_the_documents_have_are_not_asked_about() -> None:
    def asked(*known: str) -> list[str]:
        return [one.text for one in exchange_names([LED, BORN, DIED], known.__contains__)]

    born, died = "When was Tom Wild born at Annascaul?", "When did Frank Crean die?"
    assert asked() == [born, died]
    assert asked("Tom Wild") == [died]


def test_the_texts_of_an_index_are_searched_for_other_answers(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        corpus = Corpus(index)
        assert corpus.holds("Tom Crean")
        assert not corpus.holds("Tom Shackleton")
        said = "was born in 1877 on a farm near Annascaul in County Kerry"
        assert Corpus(index).is_clear(fact("Tom Crean", said))
        assert not Corpus(index).is_clear(fact("Roald Amundsen", said))


def test_facts_with_different_times_for_one_statement_are_left_out() -> None:
    said = [
        sentence(f"Tom Crean sailed to Hobart in {time}.", "d", Tom_Crean="person")
        for time in ("1912", "March 1912", "1913")
    ]
    assert [fact.time for fact in find_facts(said[:2])] == ["1912", "March 1912"]
    assert find_facts(said) == []


@pytest.mark.parametrize(
    ("rest", "predicate"),
    [
        (" sailed to Hobart in March 1912.", "sailed to Hobart in March 1912"),
        (" sailed to Hobart in 1912, and the news spread.", "sailed to Hobart in 1912"),
        (" sailed to Hobart with his dogs in 1912.", None),
        (" sailed to Hobart while Amundsen waited there.", None),
        (" sailed the ship to Hobart in 1912.", None),
        (" sailed to the north coast of Tasmania.", "sailed to the north coast of Tasmania"),
        (" was a seaman from County Kerry.", None),
        (", a seaman who sailed to Hobart in 1912.", None),
        (" sailed to Hobart in 1912", None),
        (", a seaman, sailed to Hobart in March 1912.", "sailed to Hobart in March 1912"),
        (" sailed to Hobart after Nansen came home.", "sailed to Hobart after Nansen came home"),
        (" took 3 for 77 and Glenn McGrath 2 for 66.", None),
        (" says Norway wants to send a ship to Hobart, but has no money.", None),
        (" said the club would welcome Amundsen back in Norway.", None),
        # What is left before the clause would say too little.
        (" led the Northern Party, beating the champions of Norway.", None),
        (
            " led the Northern Party over the Beardmore Glacier, beating the champions of Norway.",
            "led the Northern Party over the Beardmore Glacier",
        ),
        # Different from what?
        (" sailed to a different port in the north of Norway.", None),
    ],
)
def test_only_plain_statements_are_read(rest: str, predicate: str | None) -> None:
    assert _read_predicate(rest) == predicate


def sentence(text: str, document: str, **names: str) -> Sentence:
    """Make a sentence with the types of the names in it."""
    mentions = []
    for name, kind in names.items():
        title = name.replace("_", " ")
        start = text.index(title)
        mentions.append(Mention(start, start + len(title), title, kind, ()))
    mentions.sort(key=lambda one: one.start)
    return Sentence(GoldSpan(document, 0, len(text), text), "en", tuple(mentions))


def test_a_fact_has_another_name_or_a_time() -> None:
    [found] = find_facts([sentence("Tom Crean sailed to Hobart in 1912.", "d", Tom_Crean="person")])
    assert (found.year, found.named) == (1912, ())
    text = "Tom Crean sailed to a port of some size."
    assert find_facts([sentence(text, "d", Tom_Crean="person")]) == []
    assert find_facts([replace(sentence(text, "d", Tom_Crean="person"), language="de")]) == []


ABOUT_ICE = [
    "The Endurance was crushed by the pack ice of the Weddell Sea.",
    "The Belgica was held by pack ice for a whole year.",
    "Pack ice closed around the Antarctic near Paulet Island.",
    "The Aurora drifted in the pack ice with a broken rudder.",
]


def test_topics_need_different_statements_of_several_documents() -> None:
    def about(*documents: str) -> list[Sentence]:
        ice = Mention(0, 8, "pack ice", "noun phrase", ())
        return [
            Sentence(GoldSpan(document, 0, len(text), text), "en", (ice,))
            for text, document in zip(ABOUT_ICE, documents, strict=False)
        ]

    said = about("d0", "d1", "d2", "d0")
    [asked] = ask_about_topics([*said, said[0]])
    assert asked.text == "What do the documents tell on the subject of pack ice?"
    assert asked.statements == tuple(ABOUT_ICE)
    assert len(asked.documents) == 3
    # Two documents are too few, and so are three statements.
    assert not list(ask_about_topics(about("d0", "d1", "d0", "d1")))
    assert not list(ask_about_topics(said[:3]))


def test_no_question_on_the_whole_corpus_is_in_both_splits(
    questions: list[EvaluationQuestion],
) -> None:
    asked = [one.text for one in questions if one.kind == "whole-corpus"]
    assert len(asked) == len(set(asked)) > 2


FULL = EvaluationQuestion(
    "local-1",
    "Where was Tom Crean born?",
    kind="local",
    documents=("crean",),
    spans=(GoldSpan("crean", 0, 33, "Tom Crean was born at Annascaul."),),
    statements=("Tom Crean was born at Annascaul.",),
    answers=("Annascaul", "Kerry"),
    split="report",
)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_written_questions_are_read_back(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"questions.{suffix}"
    write_questions([FULL], path)
    assert read_questions(path) == [FULL]
    write_questions([replace(FULL, is_answerable=False)], path)
    assert not read_questions(path)[0].is_answerable


def test_the_command_writes_a_file_that_can_be_evaluated(
    sample_project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "questions.jsonl"
    arguments = ["evaluate", "make", "--root", str(sample_project), "--n", "12", "--to", str(path)]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert "12 questions" in told.output
    assert len(read_questions(path)) == 12
    assert json.loads(path.read_text().splitlines()[0])["split"] in ("tune", "report")
    told = CliRunner().invoke(app, arguments)
    assert isinstance(told.exception, SettingsError)
    assert "add --force" in str(told.exception)


def test_a_file_without_questions_is_not_written(sample_project: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{split}.jsonl" for split in ("tune", "report")]
    arguments = ["evaluate", "make", "--root", str(sample_project), "--n", "1"]
    told = [
        CliRunner().invoke(app, [*arguments, "--split", path.stem, "--to", str(path)]).exception
        for path in paths
    ]
    assert [not path.exists() for path in paths] == [one is not None for one in told]
    assert "is of the split" in "".join(map(str, told))
    assert told.count(None) == 1


@pytest.mark.parametrize("arguments", [["--kinds", "hard"], ["--split", "train"]])
def test_unknown_words_are_told(arguments: list[str], sample_project: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "questions.jsonl")
    command = ["evaluate", "make", "--root", str(sample_project), "--to", path, *arguments]
    told = CliRunner().invoke(app, command)
    assert isinstance(told.exception, SettingsError)
    assert "There is no" in str(told.exception)
