"""Sentences that reports quote: what is trimmed, and which stand alone."""

import polars as pl
import pytest

from graphrag_nlp.text.standalone import find_edges, stand_alone, trim_sentences


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("LONDON (AP) — The fire spread.", "The fire spread."),
        ("WASHINGTON, March 3 — The Senate voted.", "The Senate voted."),
        ("NEW YORK, Jan. 5 (Reuters) - Stocks fell.", "Stocks fell."),
        ("Berlin (dpa) - Die Regierung trat zurück.", "Die Regierung trat zurück."),
        ("Des Moines, Iowa - The council met.", "The council met."),
        ("Anna Berg, Bob Vale - they met.", "Anna Berg, Bob Vale - they met."),
        ("| Ada | 1815 |", "Ada | 1815"),
        ("> The dam burst.", "The dam burst."),
        (">= limits of the dam", ">= limits of the dam"),
        ("- > 5 mm of rain fell.", "> 5 mm of rain fell."),
        (
            "All of the crew was lost at sea near Bern.- The search goes on.",
            "All of the crew was lost at sea near Bern.",
        ),
        ("The well-known a.-B. rule holds here.", "The well-known a.-B. rule holds here."),
        ("NASA — the space agency — sent a probe.", "NASA — the space agency — sent a probe."),
        ("The firm IBM (IBM) - a large one - grew.", "The firm IBM (IBM) - a large one - grew."),
        # What pages and agencies put around sentences.
        ("Share this with Coach Ann Berg has left Bern.", "Coach Ann Berg has left Bern."),
        (
            "Share this with Media playback is not supported on this device Ann Berg won.",
            "Ann Berg won.",
        ),
        ("Share this with your friends in Bern.", "Share this with your friends in Bern."),
        ("Xie Yi / For China Daily Ministry stresses trade.", "Ministry stresses trade."),
        ("BREAKING NEWS: The dam broke.", "The dam broke."),
        ("Bern votes in September. dm/tj-(AFP, dpa, KPA)", "Bern votes in September."),
        ("Bern votes in September. (Reuters)", "Bern votes in September."),
        ("Bern voted. (Daily European Weekly 02/17/2017 page25)", "Bern voted."),
        ("Bern has a good bank (AFP).", "Bern has a good bank (AFP)."),
        ("The input / output of AP Tools grew.", "The input / output of AP Tools grew."),
    ],
)
def test_datelines_and_marks_of_tables_are_removed(sentence: str, expected: str) -> None:
    assert trim_sentences(pl.Series([sentence])).to_list() == [expected]


@pytest.mark.parametrize(
    ("language", "sentence", "expected"),
    [
        ("en", "The fire spread to the town of Hill Top.", True),
        ("en", '"I am glad," Mr Powell said.', True),
        ("en", '"I am glad," he said.', False),
        ("en", 'The minister said "I am glad.', False),
        ("en", "But the fire spread.", False),
        ("en", "What did the fire do?", False),
        ("en", "Smoke over Sydney. Photo: Ada Smith", False),
        ("en", "The other film won.", False),
        # Contrasts, additions and examples.
        ("en", "Contrary to what the mayor said, the dam held.", False),
        ("en", "In a separate case, the dam broke.", False),
        ("en", "In March the dam broke.", True),
        ("en", "Most of them left the town.", False),
        ("en", "Most of the people left the town.", True),
        ("de", "Das ist ein Erfolg der Stadt Bern.", False),
        ("de", "Das Land Bern baut einen Damm.", True),
        ("fr", "En revanche, le barrage a tenu.", False),
        ("es", "Por otra parte, la presa resistió.", False),
        # Captions, and lines that lead to other texts.
        ("en", "Mayor Ann Berg is pictured at the book fair in Bern.", False),
        ("en", "Ann Berg (l.) met Bob Vale in Bern.", False),
        ("en", "(29.08.2016) In an interview, Ann Berg spoke of the dam.", False),
        ("en", "Follow Ann Berg on Twitter: @ann", False),
        ("en", "OPINION: Bern should build the dam", False),
        ("en", "The Ann Berg programme is broadcast on weekdays in Bern.", False),
        ("en", "The debate on Bern was broadcast on radio.", True),
        ("en", "Best recs from Bern, sent right to your inbox.", False),
        ("en", "Ann Berg spoke in the T�naiste of Bern.", False),
        ("en", 'Ann Berg can"t leave "Bern".', False),
        ("en", "Bern News (@bernnews) March 30, 2017 Mrs Berg was from Bern.", False),
        ("en", "The writer is a senior consultant for the Bern Daily.", False),
        ("en", "The dam of 29.08.2016 (see above) held.", True),
        # Lost line breaks.
        ("en", "The crew was lost at sea.- The search goes on in Bern.", False),
        ("en", "Bern a signal for other elections The elections in Bern matter.", False),
        ("en", "The Times of The Hague wrote of vitamin A in food.", True),
        ("de", "Die Fraktion Die Linke lehnt den Damm ab.", True),
        ("de", "Die beiden Männer gingen.", False),
        ("fr", "L'autre film a gagné.", False),
        ("de", "Er verließ die Stadt.", False),
        ("de", "Die Stadt wuchs weiter.", True),
        ("fr", "Cette ville a grandi.", False),
        ("ru", "Он уехал в Москву.", False),
        ("zh", "他去了北京。", False),
        ("en", "Thank you all for the work on the dam.", False),
        ("en", "Tonight, ladies and gentlemen, we open the dam.", False),
        ("fr", "Mesdames et Messieurs, le barrage est ouvert.", False),
        ("de", "Heute, meine Damen und Herren, ist der Damm offen.", False),
        ("en", "Nice work Ann: I am from Bern Bob: Me too!", False),
        ("en", "On Monday, Ann wrote: The dam is open.", False),
        ("en", "Subject: The dam is open now.", False),
        ("en", "[The members of the audience rose.]", False),
        ("en", "Ann wrote a letter to the members of the club.", True),
        ("en", 'In 1859, Darwin wrote: "There is grandeur in this view of life."', True),
        ("en", 'On 24 November 1859, Darwin wrote: "There is grandeur in it."', True),
        ("de", "Kafka schrieb: „Das Schloss lag still da.“", True),
        ("en", "On Mon, 3 May 2024 at 10:22, Ann Lee wrote:", False),
        ("fr", "Le 3 mai 2024 à 10:22, Ann Lee a écrit : Le barrage est ouvert.", False),
        ("de", "Am 3. Mai 2024 um 10:22 schrieb Ann Lee: Der Damm ist offen.", False),
        ("it", "Il lunedì Ann ha scritto: La diga è aperta.", False),
        ("fr", "Le marchand a écrit : Le barrage est ouvert.", True),
        ("en", "Franklin urged his fellow citizens to build a hospital.", True),
        ("en", "Ann and Bob remained dear friends until Bob died.", True),
        ("en", "Mr. Speaker Martin resigned in 2009.", True),
        ("en", "Mr. Speaker, the dam is open.", False),
        ("en", "Good evening, ladies and gentlemen.", False),
        ("de", "Liebe Kolleginnen und Kollegen, der Damm ist offen.", False),
        ("fr", "Mes chers amis, le barrage est ouvert.", False),
        ("en", "The card said thank you for the flowers.", True),
        ("en", "The ratio in Bern: 3 to 1; in Basel: 2 to 1.", True),
        ("en", "Ann published Bern: A Life and Basel: A City.", True),
        ("en", "Ann: Yes, it is open!Bob: no.", False),
    ],
)
def test_sentences_that_need_the_text_around_them_do_not_stand_alone(
    language: str, sentence: str, expected: bool
) -> None:
    assert stand_alone(pl.Series([sentence]), pl.Series([language])).to_list() == [expected]


def test_edges_are_offsets_of_the_sentence() -> None:
    text = "Share this with\nCoach Ann\nleft. es/tj (dpa)"
    start, end = find_edges(text)
    assert text[start:end] == "Coach Ann\nleft."
    assert find_edges("The dam broke.") == (0, 14)
