import pytest

from graphrag_query.question.answer_kind import (
    WantedAnswer,
    find_question_language,
    find_wanted_answer,
)
from graphrag_query.question.question_words import language_in


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many chairs had been given away?", "number"),
        ("How long did the war last?", "duration"),
        ("What time do they meet for pizza?", "time"),
        ("In what year was the bridge finished?", "date"),
        ("Which city is the seat of the court?", "place"),
        ("Who is the mother of Olga Nowak?", "person"),
        ("Who is Olga Nowak?", "definition"),
        ("Why did the mill close?", "reason"),
        ("Which team won?", "organization"),
        ("What song does Olga suggest?", "title"),
        ("Is the mill closed?", "yes_no"),
        ("The mill, which was built by the Duke, burned down when?", "date"),
        ("In 1990, what was the population of the town where Olga lived?", "number"),
        ("How did Olga reach the mill?", "manner"),
        ("Which snacks does Olga like?", "other"),
        ("Wie viele Stühle wurden verschenkt?", "number"),
        ("In welcher Stadt steht das Gericht?", "place"),
        ("Wer ist Olga Nowak?", "definition"),
        ("Wie kam Olga zur Mühle?", "manner"),
        ("Wie heißt die Mühle?", "other"),
        ("1990, wie viele Menschen lebten dort, wo Olga wohnte?", "number"),
        ("Comment Olga a-t-elle trouvé le moulin ?", "manner"),
        ("Comment s'appelle le moulin ?", "other"),
        ("¿Cómo se reparó el molino?", "manner"),
        ("¿Cómo llegó Olga a la ciudad?", "manner"),
        ("¿Cómo se llama el molino?", "other"),
        ("Pourquoi le moulin est-il fermé ?", "reason"),
        ("¿Cuándo se construyó el puente?", "date"),
        ("Chi ha costruito il ponte?", "person"),
        ("Dlaczego młyn został zamknięty?", "reason"),
        ("Где находится мельница?", "place"),
        ("谁建造了这座桥？", "person"),
        ("橋はいつ完成しましたか？", "date"),
    ],
)
def test_the_kind_of_a_question_is_told_from_its_words(question: str, kind: str) -> None:
    assert find_wanted_answer(question, language_in(question)).kind == kind


def test_the_nouns_after_an_interrogative_are_kept() -> None:
    question = "How many wooden chairs are there?"
    expected = WantedAnswer("number", ("wooden", "chair"), is_counted=True)
    assert find_wanted_answer(question, language_in(question)) == expected


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What did the mayor say?", WantedAnswer()),
        ("What is the film about?", WantedAnswer()),
        ("What will be put up around the park?", WantedAnswer()),
        ("Olga lived in what for seven years?", WantedAnswer()),
        ("What was the director accused of?", WantedAnswer()),
        ("How old is Olga Nowak?", WantedAnswer("number")),
        ("How much does the chair weigh?", WantedAnswer("number")),
        ("Was hat die Stadt beschlossen?", WantedAnswer()),
        ("Wie alt ist Olga?", WantedAnswer("number")),
        ("What is the capital of Poland?", WantedAnswer("place", ("capit",), head="capit")),
        ("What caused the fire?", WantedAnswer("reason", (), categories=("caus",))),
        ("What may be the reason?", WantedAnswer("reason", ("reason",), head="reason")),
        ("What could the reason be?", WantedAnswer("reason", ("reason",), head="reason")),
        ("Was könnte der Grund sein?", WantedAnswer("reason", ("grund",), head="grund")),
    ],
)
def test_the_subject_of_a_question_is_not_what_it_asks_for(
    question: str, wanted: WantedAnswer
) -> None:
    assert find_wanted_answer(question, language_in(question)) == wanted


def test_the_noun_of_a_thing_that_has_a_name_is_asked_for() -> None:
    question = "What was the name of the town Olga lived in?"
    wanted = find_wanted_answer(question, language_in(question))
    assert (wanted.kind, wanted.head, wanted.categories) == ("place", "town", ("name",))


@pytest.mark.parametrize(
    ("question", "noun", "verb"),
    [
        ("How many recently published books does Olga have?", "book", ""),
        ("How many newly built houses are there?", "hous", ""),
        ("How many publicly owned trucks does the town have?", "truck", ""),
        ("How many left handed players scored?", "player", "score"),
        ("How many delegates voted yesterday?", "deleg", "vote"),
        ("How many men sank ships?", "men", "sank"),
    ],
)
def test_a_participle_before_what_is_counted_ends_no_noun(
    question: str, noun: str, verb: str
) -> None:
    nouns = find_wanted_answer(question, language_in(question)).nouns
    assert noun in nouns
    assert verb not in nouns


@pytest.mark.parametrize(
    ("question", "is_subject"),
    [
        ("Who invited Olga?", True),
        ("Who did Olga invite?", False),
        ("Chi invita Olga?", True),
        ("Wen lud Olga ein?", False),
    ],
)
def test_who_before_a_verb_asks_for_the_subject(question: str, is_subject: bool) -> None:
    assert find_wanted_answer(question, language_in(question)).is_subject == is_subject


@pytest.mark.parametrize(
    ("question", "categories"),
    [
        ("In which city was Olga born?", ("citi",)),
        ("In welchem Jahr starb Olga?", ("jahr",)),
        ("¿En qué año nació Olga?", ("ano",)),
        ("Which Polish city is the largest?", ()),
        ("What is the capital of Poland?", ()),
        ("Which company employs Olga?", ()),
        ("What was the date of the fire?", ("date",)),
        ("What is the name of the mill?", ("name",)),
        ("What type of pizza does Olga like?", ("type",)),
    ],
)
def test_a_noun_after_the_interrogative_only_says_the_kind(
    question: str, categories: tuple[str, ...]
) -> None:
    assert find_wanted_answer(question, language_in(question)).categories == categories


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("Combien coûte le billet ?", "fr"),
        ("Quién escribió el libro?", "es"),
        ("Qui dirige Norda ?", "fr"),
        ("Wer leitet Norda?", "de"),
        ("Quanto costa?", "und"),
        ("Norda", "und"),
    ],
)
def test_the_first_words_of_a_short_question_tell_its_language(question: str, code: str) -> None:
    assert find_question_language(question).code == code


@pytest.mark.parametrize(
    ("question", "of_documents", "code"),
    [
        ("Besuchte Olga Rom?", {"de", "en"}, "de"),
        ("Besuchte Olga Rom?", {"en"}, "und"),
        ("Ollan koti?", {"es"}, "und"),
        ("Altdorf?", {"fr"}, "und"),
        ("Alpha or Beta?", {"en"}, "en"),
        ("Is Alpha purely red?", {"en", "de"}, "en"),
        ("Is Olga blind?", {"nl"}, "nl"),
        ("Is Alpha purely red?", set(), "en"),
        ("Quanto costa?", {"pt"}, "pt"),
        ("Norda", {"de", "en"}, "und"),
    ],
)
def test_the_documents_tell_the_language_of_an_unclear_question(
    question: str, of_documents: set[str], code: str
) -> None:
    assert find_question_language(question, of_documents).code == code


@pytest.mark.parametrize(
    ("question", "head"),
    [
        ("Which federal judge stopped the ban?", "judg"),
        ("What movie stars Olga Nowak?", "movi"),
        ("What is the capital of Poland?", "capit"),
        ("Who stopped the ban?", ""),
        ("Which snacks does Olga like?", ""),
    ],
)
def test_the_noun_that_tells_the_kind_is_kept(question: str, head: str) -> None:
    assert find_wanted_answer(question, language_in(question)).head == head


@pytest.mark.parametrize(
    ("question", "nouns", "is_counted"),
    [
        ("How many delegates voted against it?", ("deleg",), True),
        ("How many teams won a cup?", ("team",), True),
        ("How many people drowned?", ("peopl",), False),
        ("How much money did Olga spend?", ("money",), False),
        ("What is the population of Poland?", ("popul",), False),
    ],
)
def test_the_nouns_that_are_counted_end_before_the_verb(
    question: str, nouns: tuple[str, ...], is_counted: bool
) -> None:
    wanted = find_wanted_answer(question, language_in(question))
    assert (wanted.kind, wanted.nouns, wanted.is_counted) == ("number", nouns, is_counted)
