"""Known answers on short texts: which names are found in them, and how often."""

import pytest

from tests.fixtures.extraction import extract

ARAMCO = (
    "أعلنت شركة أرامكو أرباحها يوم الأحد في الرياض. وقالت أرامكو إن الإنتاج سيزيد. ووقعت أرامكو "
    "اتفاقا مع شركة توتال في باريس. وستبني توتال مصنعا قرب الرياض. وقال أمين الناصر إن السوق قوي. "
    "ورحب أمين الناصر بتوتال. والرياض عاصمة السعودية، وللرياض مطار جديد. ويعمل أمين الناصر في "
    "أرامكو منذ سنوات. وزارت لجنة من باريس السعودية، وباريس مهتمة بالسعودية."
)


def test_a_prefix_in_arabic_is_no_part_of_the_name() -> None:
    found = extract(ARAMCO)
    text, number = found.documents["text"][0], found.titles.index("باريس")
    rows = found.mentions.filter(entity=number).select("start_char", "end_char").iter_rows()
    assert {text[start:end] for start, end in rows} == {"باريس"}
    assert "وباريس" in text


@pytest.mark.parametrize(
    "text",
    [
        "রবীন্দ্রনাথ ঠাকুর কলকাতায় জন্মগ্রহণ করেন। রবীন্দ্রনাথ ঠাকুর একজন কবি। রবীন্দ্রনাথ ঠাকুর লেখেন।",
        "შოთა რუსთაველი იყო პოეტი. შოთა რუსთაველი წერდა. შოთა რუსთაველი მოგზაურობდა.",
        "กรุงเทพมหานครเป็นเมืองหลวง คนในกรุงเทพมหานครมาก และกรุงเทพมหานครร้อน",
        "יוסי כהן גר בחיפה. יוסי כהן עובד בחיפה. יוסי כהן אוהב את חיפה.",
    ],
    ids=["Bengali", "Georgian", "Thai", "Hebrew"],
)
def test_other_scripts_without_capitals_fall_back_to_what_recurs(text: str) -> None:
    counts = extract(text).mentioned
    assert max(counts.values()) >= 3
    assert max(len(title) for title in counts) >= 4
