"""Detect the encodings of short texts: our reader beside charset-normalizer alone.

`python benchmarks/file_encodings.py` prints how many texts each decodes as they were written.
"""

import io

from charset_normalizer import from_bytes

from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.encodings import detect_encoding

# Sentences by language, and the encodings from before Unicode that their files are found in.
SENTENCES = {
    "de": (
        "Der Schriftsteller Günter Graß lebte in Lübeck; später zog er nach München.",
        ["cp1252", "cp850", "mac_roman"],
    ),
    "de2": ("Die Straße führt über Österreich. Größe: 5 m². Ärzte hören zu.", ["cp1252", "cp850"]),
    "fr": (
        "L'élève a été reçu à l'école où il étudiait le français; ça va être très bien.",
        ["cp1252", "mac_roman"],
    ),
    "es": ("El niño comió una manzana. ¿Qué pasó después? La montaña está allí.", ["cp1252"]),
    "pt": ("A educação não é uma questão de opinião; são três razões e uma condição.", ["cp1252"]),
    "sv": ("Flygplanet landade på Öland förra året. Många människor såg på.", ["cp1252"]),
    "is": ("Það er ekki ljóst hvað gerðist á Íslandi árið sem leið. Þetta er bók.", ["cp1252"]),
    "pl": (
        "Władysław Żeleński urodził się w Łodzi, gdzie później mieszkał z żoną.",
        ["cp1250", "iso8859_2", "cp852"],
    ),
    "pl2": (
        "Książę Józef przyjechał również. Świętokrzyskie góry są piękne.",
        ["cp1250", "iso8859_2"],
    ),
    "cs": (
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Řeka teče městem a děti běží.",
        ["cp1250", "iso8859_2", "cp852"],
    ),
    "hu": ("Árvíztűrő tükörfúrógép. A magyar nyelv szép és gazdag, őszintén.", ["cp1250"]),
    "ro": ("În România trăiesc mulţi oameni. Această ţară are munţi frumoşi.", ["cp1250"]),
    "hr": ("Čovjek živi u Zagrebu. Šuma je velika, đaci uče i žive u gradu.", ["cp1250"]),
    "tr": ("İstanbul'da yaşayan çocuklar güneşli bir günde dışarı çıktılar. Işık.", ["cp1254"]),
    "lt": (
        "Lietuvoje gyvena daug žmonių, kurie kalba lietuviškai. Ąžuolas žydėjo ežere.",
        ["cp1257"],
    ),
    "lv": ("Rīgā dzīvo daudz cilvēku. Šī pilsēta ir ļoti skaista, ģimenes ēd ķiršus.", ["cp1257"]),
    "ru": (
        "Лев Толстой родился в Ясной Поляне. Он написал роман «Война и мир».",
        ["cp1251", "koi8_r", "cp866"],
    ),
    "uk": ("Україна має багату історію. Її столиця — Київ, їжак живе в лісі.", ["cp1251"]),
    "el": ("Η Αθήνα είναι η πρωτεύουσα της Ελλάδας. Οι άνθρωποι μιλούν ελληνικά.", ["cp1253"]),
    "he": ("ירושלים היא עיר עתיקה מאוד. אנשים רבים גרים בה היום.", ["cp1255"]),
    "ar": ("القاهرة هي عاصمة مصر. يعيش فيها ملايين الناس منذ زمن طويل.", ["cp1256"]),
    "ja": ("東京は日本の首都です。多くの人々がここに住んでいます。", ["cp932", "euc_jp"]),
    "zh": ("北京是中国的首都。很多人住在这里，他们说中文。", ["gb18030", "utf-16-le"]),
    "tw": ("台北是台灣的首都。很多人住在這裡，他們說中文。", ["big5"]),
    "ko": ("서울은 한국의 수도이다. 많은 사람들이 이곳에 살고 있다.", ["cp949"]),
}

ENCODINGS = sorted({name for _, names in SENTENCES.values() for name in names})


def by_reader(data: bytes) -> str | None:
    """Decode as the readers do; None if they refuse."""
    try:
        return data.decode(detect_encoding(io.BytesIO(data)).name)
    except UnreadableFile:
        return None


def by_library(data: bytes) -> str | None:
    """Decode by the best match of charset-normalizer among the same encodings."""
    best = from_bytes(data, cp_isolation=ENCODINGS).best()
    return None if best is None else str(best)


def main() -> None:
    """Print the counts, and the texts that one of both reads wrongly."""
    n_texts, n_right = 0, {"reader": 0, "charset-normalizer": 0}
    for language, (sentences, names) in SENTENCES.items():
        for repeats in (1, 4):
            text = " ".join([sentences] * repeats)
            for name in names:
                try:
                    data = text.encode(name)
                except UnicodeEncodeError:
                    continue
                n_texts += 1
                right = {
                    "reader": by_reader(data) == text,
                    "charset-normalizer": by_library(data) == text,
                }
                for who, is_right in right.items():
                    n_right[who] += is_right
                    if not is_right:
                        print(f"{who} misreads {language} in {name}, {repeats} times")
    for who, count in n_right.items():
        print(f"{who}: {count} of {n_texts}")


if __name__ == "__main__":
    main()
