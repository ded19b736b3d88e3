"""Questions that are made from an index, and files of them in known layouts."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphrag_query
from graphrag_evaluation.generation.facts import Fact, _read_predicate, find_facts
from graphrag_evaluation.generation.index_sentences import Mention, Sentence
from graphrag_evaluation.generation.make_questions import (
    KINDS,
    Corpus,
    ask_about_pairs,
    ask_about_themes,
    make_questions,
)
from graphrag_evaluation.generation.questions_of_facts import (
    ask_for_place,
    ask_for_subject,
    ask_for_time,
    ask_in_two_hops,
    compare_times,
    drop_conflicts,
    exchange_names,
    exchange_objects,
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
    assert Counter(question.kind for question in questions).keys() == KINDS.keys()
    tune, report = (
        {name for question in questions if question.split == split for name in question.documents}
        for split in ("tune", "report")
    )
    assert tune
    assert report
    assert not tune & report


def test_equal_seeds_give_equal_questions(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        kinds = ["comparison", "whole-corpus", "temporal"]
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
    named={"Annascaul": ("Annascaul", "geo")},
    time="1877",
    before_time="was born at Annascaul",
)
LED = fact("Tom Crean", "led the last party over the Beardmore Glacier")
MET = fact("Frank Wild", "met Tom Crean", named={"Tom Crean": ("Tom Crean", "person")})
DIED = fact("Frank Wild", "died in 1939", time="1939", before_time="died")


def test_questions_are_asked_in_the_words_of_the_sentences() -> None:
    assert ask_for_subject(LED).text == "Who led the last party over the Beardmore Glacier?"
    place, time, death = ask_for_place(BORN), ask_for_time(BORN), ask_for_time(DIED)
    assert place is not None
    assert (place.text, place.answers) == ("Where was Tom Crean born?", ("Annascaul",))
    assert time is not None
    assert (time.text, time.answers) == ("When was Tom Crean born at Annascaul?", ("1877",))
    assert death is not None
    assert death.text == "When did Frank Wild die?"
    assert ask_for_place(LED) is ask_for_time(LED) is None


def test_two_hops_name_the_bridge_by_what_it_did() -> None:
    texts = {draft.text for draft in ask_in_two_hops(LED, BORN)}
    described = "the person who led the last party over the Beardmore Glacier"
    assert texts == {f"When was {described} born at Annascaul?", f"Where was {described} born?"}
    [met] = ask_in_two_hops(LED, MET)
    assert (met.text, met.answers) == (f"Who met {described}?", ("Frank Wild",))


def test_times_are_compared_if_they_differ() -> None:
    draft = compare_times(BORN, DIED)
    assert draft is not None
    assert draft.text == (
        "What happened first: Tom Crean was born at Annascaul, or Frank Wild died?"
    )
    assert draft.answers == ("Tom Crean was born at Annascaul",)
    assert compare_times(BORN, BORN) is None


def test_names_that_the_documents_have_are_not_asked_about() -> None:
    def asked(*known: str) -> list[str]:
        drafts = exchange_names([BORN, DIED], known.__contains__, lambda pairs: None)
        return [draft.text for draft in drafts]

    born, died = "Where was Tom Wild born?", "When did Frank Crean die?"
    assert sorted(asked()) == [died, born]
    assert asked("Tom Wild") == [died]


def test_an_exchanged_name_is_in_no_text_with_the_others() -> None:
    places = {name: (name, "geo") for name in ("Hobart", "Norway")}
    sailed = fact("Tom Crean", "sailed from Norway to Hobart", named=dict(reversed(places.items())))
    stayed = fact("Frank Wild", "stayed in Chile", named={"Chile": ("Chile", "geo")})

    def asked(related: set[str]) -> list[str]:
        drafts = exchange_objects(
            [sailed, stayed], ["Chile"], lambda one, other: {one, other} <= related
        )
        return [draft.text for draft in drafts]

    assert asked(set()) == ["Who sailed from Norway to Chile?"]
    assert asked({"Chile", "Norway"}) == asked({"Chile", "Tom Crean"}) == []


def test_the_texts_of_an_index_are_searched_for_other_answers(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        corpus = Corpus(index)
        assert corpus.holds("Tom Crean")
        assert not corpus.holds("Tom Shackleton")
        assert corpus.are_related("Tom Crean", "Annascaul")
        assert not corpus.are_related("Annascaul", "Fridtjof Nansen")
        said = "was born in 1877 on a farm near Annascaul in County Kerry"
        assert Corpus(index).is_clear(fact("Tom Crean", said))
        assert not Corpus(index).is_clear(fact("Roald Amundsen", said))


def test_facts_with_different_times_for_one_statement_are_left_out() -> None:
    later = replace(BORN, time="May 1878", predicate="was born at Annascaul in May 1878")
    same = replace(BORN, time="July 1877", predicate="was born at Annascaul in July 1877")
    assert drop_conflicts([BORN, LED, DIED, same]) == [BORN, LED, DIED, same]
    assert drop_conflicts([BORN, LED, DIED, same, later]) == [LED, DIED]


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
        (
            " says Norway wants to send a ship to Hobart, but has no money.",
            "says Norway wants to send a ship to Hobart",
        ),
        (" says Norway and the Fram, which sailed to Hobart in 1912, are famous now.", None),
        (" says that ship was built in Norway by Colin Archer.", None),
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


def test_two_hops_do_not_say_the_same_twice() -> None:
    other = fact("Northern Party", "led the last party over the Beardmore Glacier to Tom Crean")
    assert list(ask_in_two_hops(LED, other)) == []


def sentence(text: str, document: str, **names: str) -> Sentence:
    """Make a sentence with the types of the names in it."""
    mentions = []
    for name, kind in names.items():
        title = name.replace("_", " ")
        start = text.index(title)
        mentions.append(Mention(start, start + len(title), title, kind, ()))
    mentions.sort(key=lambda one: one.start)
    return Sentence(GoldSpan(document, 0, len(text), text), "en", tuple(mentions))


def test_a_role_before_a_name_belongs_to_the_answer() -> None:
    text = "Team captain Tom Crean has defended the decision of Robert Scott."
    [found] = find_facts([sentence(text, "d", Tom_Crean="person", Robert_Scott="person")])
    assert found.subject_names == ("Tom Crean", "Team captain Tom Crean")
    assert ask_for_subject(found).text == "Who has defended the decision of Robert Scott?"
    for wrong in (
        "Police said Tom Crean has defended the decision of Robert Scott.",
        "When Tom Crean has defended the decision of Robert Scott.",
    ):
        assert find_facts([sentence(wrong, "d", Tom_Crean="person", Robert_Scott="person")]) == []


def test_a_fact_has_another_name_or_a_time() -> None:
    [found] = find_facts([sentence("Tom Crean sailed to Hobart in 1912.", "d", Tom_Crean="person")])
    assert (found.year, found.named) == (1912, {})
    text = "Tom Crean sailed to a port of some size."
    assert find_facts([sentence(text, "d", Tom_Crean="person")]) == []
    assert find_facts([replace(sentence(text, "d", Tom_Crean="person"), language="de")]) == []


ABOUT_ICE = [
    "The Endurance was crushed by the pack ice of the Weddell Sea.",
    "The Belgica was held by pack ice for a whole year.",
    "Pack ice closed around the Antarctic near Paulet Island.",
    "The Aurora drifted in the pack ice with a broken rudder.",
]


def test_themes_need_different_statements_of_several_documents() -> None:
    said = [sentence(text, f"d{at % 3}") for at, text in enumerate(ABOUT_ICE)]
    unclear = sentence("It was crushed by the pack ice, and they left.", "d4")
    [draft] = ask_about_themes([*said, said[0], unclear], ["pack ice", "sea ice"])
    assert draft.text == "What do the documents report on the subject of pack ice?"
    assert draft.statements == tuple(ABOUT_ICE)
    assert len(draft.question(1, "tune").documents) == 3
    # Two documents are too few, and so are three statements.
    assert not list(ask_about_themes([sentence(one, "d") for one in ABOUT_ICE], ["pack ice"]))
    assert not list(ask_about_themes(said[:3], ["pack ice"]))


def test_pairs_are_of_names_that_are_not_both_places() -> None:
    texts = [
        "Amundsen took the Fram to Hobart in 1912.",
        "The Fram brought Amundsen and the dogs home to Hobart harbour.",
        "Nobody thought that Amundsen would sail for Hobart with the old Fram.",
        "Letters of Amundsen about the Fram are kept at a museum in Hobart.",
    ]
    types = {"Amundsen": "person", "Fram": "name", "Hobart": "geo"}
    said = [sentence(text, f"d{at}", **types) for at, text in enumerate(texts)]
    asked = {draft.text for draft in ask_about_pairs(said)}
    assert asked == {
        f"What do the documents tell about {pair}?"
        for pair in ("Amundsen and Fram", "Amundsen and Hobart", "Fram and Hobart")
    }
    types["Fram"] = "geo"
    said = [sentence(text, f"d{at}", **types) for at, text in enumerate(texts)]
    assert len(list(ask_about_pairs(said))) == 2


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
