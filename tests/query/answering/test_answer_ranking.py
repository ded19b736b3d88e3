"""The sentence that answers, among all sentences that were read."""

from collections.abc import Sequence

import pytest

from graphrag_query.answering.answer_features import BONUS_OF_SUBJECT, COLUMN, AnswerFeatures
from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.answer_spans import FIT_OF_COUNT
from graphrag_query.answering.asked_words import AskedWords, find_adjectives
from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.answering.gathered_lists import asks_for_several
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import TextWords, is_adjective_of


def best_sentence(index: Index, question: str, texts: Sequence[str]) -> str:
    units = [
        {"human_readable_id": i, "start_char": 0, "text": text, "title": ""}
        for i, text in enumerate(texts)
    ]
    candidates = split_into_candidates(units, dict.fromkeys(range(len(texts)), 1.0))
    return rank_answers(Question(question, index.store), candidates, {})[0].candidate.text


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "When was the director of Alpha born?",
            [
                "Alpha is a film. The director of Alpha is Olga Nowak.",
                "Beta is a film by the director Jan Blum. Jan Blum is Danish.",
                "Olga Nowak was born in 1910. Nowak left school early.",
                "Jan Blum was born in 1920. Blum left school early.",
            ],
        ),
        (
            "Wann wurde die Regisseurin von Alpha geboren?",
            [
                "Alpha ist ein Film. Die Regisseurin von Alpha ist Olga Nowak.",
                "Beta ist ein Film der Regisseurin Ada Blum. Ada Blum ist Dänin.",
                "Olga Nowak wurde 1910 geboren. Nowak verließ die Schule.",
                "Ada Blum wurde 1920 geboren. Blum verließ die Schule.",
            ],
        ),
        (
            "Quand est née la réalisatrice de Alpha ?",
            [
                "Alpha est un film. La réalisatrice de Alpha est Olga Nowak.",
                "Beta est un film de la réalisatrice Ada Blum. Ada Blum est danoise.",
                "Olga Nowak est née en 1910. Nowak quitta l'école.",
                "Ada Blum est née en 1920. Blum quitta l'école.",
            ],
        ),
        (
            "¿Cuándo nació la directora de Alpha?",
            [
                "Alpha es una película. La directora de Alpha es Olga Nowak.",
                "Beta es una película de la directora Ada Blum. Ada Blum es danesa.",
                "Olga Nowak nació en 1910. Nowak dejó la escuela.",
                "Ada Blum nació en 1920. Blum dejó la escuela.",
            ],
        ),
    ],
)
def test_a_name_leads_from_one_sentence_to_another(
    index: Index, question: str, texts: Sequence[str]
) -> None:
    assert "1910" in best_sentence(index, question, texts)


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "When did Jan Blum die?",
            ["Olga Nowak died in 1920. She was old.", "Jan Blum painted. He died in 1910."],
        ),
        (
            "Wann starb Jan Blum?",
            ["Olga Nowak starb 1920. Sie war alt.", "Jan Blum war Maler. Er starb im Jahr 1910."],
        ),
    ],
)
def test_a_sentence_with_a_pronoun_is_about_the_person_before(
    index: Index, question: str, texts: Sequence[str]
) -> None:
    assert "1910" in best_sentence(index, question, texts)


def test_a_reason_answers_why(index: Index) -> None:
    texts = ["The mill closed in March.", "The mill closed because the river was dry."]
    assert "because" in best_sentence(index, "Why was the mill closed?", texts)


@pytest.mark.parametrize(
    ("question", "text", "best"),
    [
        ("Did the ship sink?", "The ship was built there. The ship sank.", "The ship sank."),
        ("Who sank the ship?", "Ann saw the ship. Eve sinks the ship.", "Eve sinks the ship."),
        ("Ist das Schiff gesunken?", "Das Schiff war alt. Das Schiff sank.", "Das Schiff sank."),
        (
            "Wer schrieb den Brief?",
            "Eva las den Brief. Ada schreibt den Brief.",
            "Ada schreibt den Brief.",
        ),
    ],
)
def test_irregular_verbs_meet_their_other_forms(
    index: Index, question: str, text: str, best: str
) -> None:
    assert best_sentence(index, question, [text]) == best


@pytest.mark.parametrize(
    ("question", "texts", "best"),
    [
        (
            "When was Norda 1.0 released?",
            ["Norda 1.1 was released in 1996.", "Norda 1.0 was released in 1995."],
            "Norda 1.0 was released in 1995.",
        ),
        (
            "In which country is Tannhof?",
            ["Hof is a town in a large country, Poland.", "Tannhof lies in the hills of Norway."],
            "Tannhof lies in the hills of Norway.",
        ),
        (
            "Who founded the mill?",
            ["Jan Blum painted the mill.", "Olga Nowak established the mill."],
            "Olga Nowak established the mill.",
        ),
        (
            "Wer begann die Grabung?",
            ["Olga Nowak malte die alte Mühle.", "Die Grabungsleiterin war Ada Fuchs."],
            "Die Grabungsleiterin war Ada Fuchs.",
        ),
    ],
)
def test_numbers_related_words_and_compounds_show_the_sentence(
    index: Index, question: str, texts: Sequence[str], best: str
) -> None:
    assert best_sentence(index, question, texts) == best


@pytest.mark.parametrize(
    ("question", "text", "best"),
    [
        (
            "How many men were on the Alpha?",
            "The Alpha drifted for nine months with the men. All 28 men of the Alpha survived.",
            "All 28 men of the Alpha survived.",
        ),
        (
            "Wie viele Männer waren auf der Alpha?",
            "Die Alpha trieb neun Monate mit den Männern. Alle 28 Männer der Alpha überlebten.",
            "Alle 28 Männer der Alpha überlebten.",
        ),
        (
            "Combien d'hommes étaient sur l'Alpha ?",
            "L'Alpha avec les hommes dériva neuf mois. Les 28 hommes de l'Alpha survécurent.",
            "Les 28 hommes de l'Alpha survécurent.",
        ),
        (
            "¿Cuántos hombres había en el Alpha?",
            "El Alpha con los hombres derivó nueve meses. Los 28 hombres del Alpha volvieron.",
            "Los 28 hombres del Alpha volvieron.",
        ),
    ],
)
def test_a_number_before_the_noun_that_is_counted_answers(
    index: Index, question: str, text: str, best: str
) -> None:
    assert best_sentence(index, question, [text]) == best


@pytest.mark.parametrize(
    ("question", "text", "best"),
    [
        (
            "How were the men rescued?",
            "The rescued men were landed in May. The vessel Alpha rescued the men.",
            "The vessel Alpha rescued the men.",
        ),
        (
            "How were the men rescued?",
            "The rescued men were landed in May. The men were rescued by the Alpha.",
            "The men were rescued by the Alpha.",
        ),
    ],
)
def test_whoever_did_it_says_how_it_was_done(
    index: Index, question: str, text: str, best: str
) -> None:
    assert best_sentence(index, question, [text]) == best


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many people does Altdorf have?", "Altdorf has 970 inhabitants."),
        ("Combien d'hommes étaient sur l'Alpha ?", "The Alpha had 28 men."),
        ("Wie viele Männer waren auf der Alpha?", "The Alpha had 28 men."),
    ],
)
def test_a_number_before_another_word_for_what_is_counted_fits(
    index: Index, question: str, text: str
) -> None:
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": ""}
    candidates = split_into_candidates([unit], {0: 1.0})
    features = AnswerFeatures(Question(question, index.store), candidates)
    features.add_spans(0, {})
    assert features.values[0, COLUMN["value_fit"]] == FIT_OF_COUNT + BONUS_OF_SUBJECT


def test_a_sentence_that_lists_several_things_answers_for_several(index: Index) -> None:
    texts = [
        "Olga Nowak talked about the products of the mill with many people in the town.",
        "The mill of Olga Nowak has the products bread, honey and cheese.",
        "Olga Nowak came with Jan, Ann and Eve to the town by the river.",
    ]
    assert best_sentence(index, "Which products does Olga Nowak sell?", texts) == texts[1]


def test_an_enumeration_in_a_sentence_on_something_else_does_not_answer(index: Index) -> None:
    text = (
        "The Alpha boats replaced the old Beta steamers of the fleet. "
        "These boats are equipped with lamps, radios, pumps and nets."
    )
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": ""}
    candidates = split_into_candidates([unit], {0: 1.0})
    question = Question("Which old boats of the fleet did the Alpha boats replace?", index.store)
    features = AnswerFeatures(question, candidates)
    features.add_spans(1, {})
    assert not features.values[1, COLUMN["value_fit"]]


def test_nothing_leads_to_the_answer_of_a_question_with_one_relation(index: Index) -> None:
    texts = [
        "The college is in Altdorf. The head of the Altdorf college is Olga Nowak.",
        "The mill is old. It was clear to Olga Nowak that Jan Blum had a list of all remarks.",
        "The mayor Ada Weber spoke.",
    ]
    units = [
        {"human_readable_id": i, "start_char": 0, "text": text, "title": ""}
        for i, text in enumerate(texts)
    ]
    candidates = split_into_candidates(units, dict.fromkeys(range(len(texts)), 1.0))
    found = AnswerFeatures(Question("Who is the mayor of Altdorf?", index.store), candidates)
    columns = [COLUMN["bridge_to_subject"], COLUMN["bridge_to_name"]]
    assert not found.values[:, columns].any()


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "Where are AppArmor profiles stored?",
            [
                "Profiles are stored in Altdorf and in Ubuntu. Olga stores the packages there.",
                "AppArmor profiles are stored in /etc/apparmor.d/ on each machine.",
            ],
        ),
        (
            "Where does GitHub store the keys?",
            [
                "Keys come from Altdorf and from Ubuntu. Olga puts the keys there.",
                "The keys of github users lie on https://example.org/keys today.",
            ],
        ),
    ],
)
def test_names_in_one_word_are_found_and_paths_are_places(
    index: Index, question: str, texts: Sequence[str]
) -> None:
    assert best_sentence(index, question, texts) == texts[1]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "¿Quién expulsó al marinero?",
            [
                "El marinero dormía en el puerto con Ana Gil.",
                "Fue expulsada por el Reino de Chile.",
            ],
        ),
        (
            "Wer ordnet die Sperrung an?",
            ["Die Sperrung dauert lange und stört Jan Blum.", "Die Anordnung kam von Ada Nowak."],
        ),
        (
            "Qui expulsa le marin ?",
            ["Le marin dormait au port avec Anne Gil.", "Il fut expulsé par Olga Nowak."],
        ),
    ],
)
def test_verbs_are_found_in_other_forms(index: Index, question: str, texts: Sequence[str]) -> None:
    asked = AskedWords(Question(question, index.store))
    said = [asked.find_said([text]) for text in texts]
    assert len(said[1] & asked.beside_names) == 1
    assert not said[0] & said[1] & asked.beside_names


def test_without_a_name_no_sentence_leads_to_another(index: Index) -> None:
    texts = [
        "Scurvy killed sailors of the Heroic Age, because they had a lack of vitamins.",
        "The Heroic Age saw dogs, mules, ponies, sledges and skis.",
    ]
    question = "which substance is lacking in people with scurvy?"
    assert best_sentence(index, question, texts) == texts[0]
    units = [{"human_readable_id": i, "start_char": 0, "text": t} for i, t in enumerate(texts)]
    found = AnswerFeatures(
        Question(question, index.store), split_into_candidates(units, {0: 1.0, 1: 1.0})
    )
    assert not found.values[:, COLUMN["bridge_to_name"]].any()


def test_a_sentence_just_behind_a_name_may_be_about_it(index: Index) -> None:
    text = "The men slept at Altdorf in the winter. The cook Jan Nowak baked bread. They liked tea."
    units = [{"human_readable_id": 0, "start_char": 0, "text": text}]
    found = AnswerFeatures(
        Question("Who cooked at Altdorf?", index.store), split_into_candidates(units, {0: 1.0})
    )
    assert [found.is_about_name(i) for i in range(3)] == [True, True, False]


def test_what_happens_asks_for_no_list(index: Index) -> None:
    assert not asks_for_several(Question("What happens when the ice melts?", index.store))
    assert asks_for_several(Question("What ships did Shackleton use?", index.store))


def test_the_adjective_of_a_place_says_its_name(index: Index) -> None:
    texts = ["The firm of Jan Blum is large.", "The Syrian harbour was closed to arms."]
    units = [{"human_readable_id": i, "start_char": 0, "text": t} for i, t in enumerate(texts)]
    question = Question("Why were arms banned from Syria?", index.store)
    found = AnswerFeatures(question, split_into_candidates(units, {0: 1.0, 1: 1.0}))
    assert found.values[1, COLUMN["names"]] > 0
    assert not TextWords(texts, question.language).missing_names(question.mentions.spans)
    assert TextWords(texts[:1], question.language).missing_names(question.mentions.spans)


@pytest.mark.parametrize(
    ("word", "name", "expected"),
    [
        ("syrian", "syria", True),
        ("german", "germany", True),
        ("chinese", "china", True),
        ("iraqi", "iraq", True),
        ("turkish", "turkey", True),
        ("roman", "roma", True),
        ("chin", "china", False),
        ("anna", "ann", False),
        ("berliner", "berlin", False),
        ("julian", "julia", False),
        ("christian", "christie", False),
        ("adrian", "adria", False),
        ("victorian", "victoria", False),
        ("lucian", "lucia", False),
        ("korean", "korea", True),
        ("bavarian", "bavaria", True),
        ("european", "europe", True),
    ],
)
def test_adjectives_of_places(word: str, name: str, *, expected: bool) -> None:
    assert is_adjective_of(word, name) is expected


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where does Julia work?", "Julian Baker works at the mill."),
        ("When was the station of Victoria closed?", "The Victorian station was closed in 1965."),
        ("Where did Christie live?", "A Christian school is in Graz."),
    ],
)
def test_another_name_that_looks_like_an_adjective_does_not_say_a_name(
    index: Index, question: str, text: str
) -> None:
    asked = Question(question, index.store)
    assert TextWords([text], asked.language).missing_names(asked.mentions.spans)
    assert not find_adjectives(asked, text.lower().split())
