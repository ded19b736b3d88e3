"""Names of a reply, aligned to the text."""

import pytest

from graphrag_index.extraction.alignment import Passage


def aligned(text: str, *names: str, language: str = "en") -> dict[str, list[str]]:
    places = Passage(text, language).align_names(names)
    return {name: [text[start:end] for start, end in places[name].spans] for name in names}


@pytest.mark.parametrize(
    ("text", "name", "forms", "language"),
    [
        ("Ada saw Ada, not Adam.", "Ada", ["Ada", "Ada"], "en"),
        ("The ROYAL SOCIETY met.", "Royal Society", ["ROYAL SOCIETY"], "en"),
        ("Al-Qaeda and al Qaeda.", "al-Qaeda", ["Al-Qaeda", "al Qaeda"], "en"),
        ("The U.S. told us.", "US", ["U.S"], "en"),
        ("José y Jose\u0301 y JOSE.", "Jose", ["José", "Jose\u0301", "JOSE"], "es"),
        ("W Krakowie i pod Krakowem.", "Kraków", ["Krakowie", "Krakowem"], "pl"),
        ("Listy Marii Skłodowskiej.", "Maria Skłodowska", ["Marii Skłodowskiej"], "pl"),
        ("Die Straßen. STRASSE.", "Straße", ["STRASSE"], "de"),
        ("The Germans came.", "German", ["Germans"], "en"),
        ("Shackleton sailed.", "Sir Ernest Shackleton", ["Shackleton"], "en"),
        ("The Society met a society.", "Royal Geographical Society", ["Society"], "en"),
        ("習近平訪問北京。", "習近平主席", ["習近平"], "zh"),
        ("鲁迅生于绍兴。鲁迅是作家。", "鲁迅", ["鲁迅", "鲁迅"], "zh"),
        ("서울은 크다.", "서울", ["서울"], "ko"),
        ("It was long. A pact on nuclear arms followed.", "arms pact on all nuclear weapons ever",
         ["A pact on nuclear arms followed."], "en"),
        ("It was long.", "Zürich", ["It was long."], "de"),
        ("Lord Byron wrote.\nHe left.", "wrote\x00", ["wrote"], "en"),
    ],
)  # fmt: skip
def test_names_are_aligned_to_the_text(
    text: str, name: str, forms: list[str], language: str
) -> None:
    assert aligned(text, name, language=language) == {name: forms}


def test_a_part_of_another_name_is_no_mention() -> None:
    text = "Anna Weber lives in New York. Weber left York for New York."
    assert aligned(text, "Anna Weber", "Karl Weber", "York", "New York") == {
        "Anna Weber": ["Anna Weber"],
        "Karl Weber": ["Weber"],
        "York": ["York"],
        "New York": ["New York", "New York"],
    }
