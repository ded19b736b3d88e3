"""Known answers on short texts: which names are found in them, and how often."""

import pytest

from tests.fixtures.extraction import extract

CURIE = (
    "Marie Curie was born in Warsaw and moved to Paris in 1891. There she met Pierre Curie, a "
    "physicist at the Sorbonne. Curie shared the Nobel Prize with her husband and with Henri "
    "Becquerel. After the death of Pierre, Marie Curie took over his chair. The Radium Institute "
    "in Paris was opened in 1914. Irène Joliot-Curie, her daughter, worked at the Radium "
    "Institute during the First World War. Marie Curie's notebooks are still radioactive. In 1911 "
    "she received a second Nobel Prize in Stockholm."
)

WHITMORE = (
    "Senator Rachel Whitmore said on Tuesday that the Harbor Authority had misled the public. "
    "Whitmore, who chairs the Transport Committee, asked Daniel Okoro to resign. Okoro has run "
    'the Harbor Authority since 2015. "We told the truth," Okoro told reporters in Baltimore. The '
    "Baltimore Chronicle first reported the losses in March. Mayor Luis Ortega defended Okoro, "
    "but Ms Whitmore's office said that the Port of Baltimore had lost forty million dollars. The "
    "Chronicle quoted two officials of the Maritime Workers Union."
)

TAMPA = (
    "Florida officials are preparing for Hurricane Maria. Governor Dana Ruiz declared an "
    "emergency in Tampa on Sunday. Ruiz urged residents of Tampa Bay to leave. The National "
    'Weather Service expects winds of 120 miles an hour. "Maria is a monster," Ruiz said. Mayor '
    "Bob Trent of Tampa opened shelters. Trent called the National Guard. The Red Cross sent "
    "forty trucks from Atlanta. Delta Air Lines cancelled flights to Tampa and Orlando."
)

GOETHE = (
    "Johann Wolfgang von Goethe wurde in Frankfurt geboren und zog später nach Weimar. Dort traf "
    "er Friedrich Schiller. Goethes Haus am Frauenplan ist heute ein Museum. Schiller lehrte in "
    "Jena, bevor auch er nach Weimar kam. Die Freundschaft zwischen Goethe und Schiller prägte "
    "die deutsche Literatur. Herzog Carl August förderte beide Dichter. Schillers Drama über "
    "Wallenstein wurde in Weimar aufgeführt. Goethe starb im März 1832. Das Goethe-Nationalmuseum "
    "bewahrt seine Sammlung."
)

LINDNER = (
    "Die Berliner Polizei hat am Montag einen Mann festgenommen. Nach Angaben von Innensenatorin "
    "Petra Lindner soll er in Kreuzberg mehrere Läden überfallen haben. Lindner lobte die Arbeit "
    "der Beamten. Der Anwalt Markus Voss widersprach der Darstellung. Voss sagte, sein Mandant "
    "sei an diesem Tag in Hamburg gewesen. Berlins Bürgermeister Thomas Kern wollte sich nicht "
    "äußern. Die Staatsanwaltschaft Berlin prüft den Fall. In Hamburg ermittelt das "
    "Landeskriminalamt. Kern und Lindner gehören der gleichen Partei an."
)

EINSTEIN = (
    "Albert Einstein wurde 1879 in Ulm geboren. Einsteins Vater Hermann betrieb eine Firma in "
    "München. In Bern arbeitete Einstein im Patentamt. Seine Frau Mileva Marić studierte in "
    "Zürich. 1914 zog die Familie nach Berlin. Berlins Akademie gewann mit Einstein einen "
    "weltbekannten Forscher. Max Planck hatte sich für ihn eingesetzt. Plancks Einfluss war groß. "
    "Einstein verließ Deutschland 1933 und ging nach Princeton."
)

SKLODOWSKA = (
    "Maria Skłodowska-Curie urodziła się w Warszawie. W 1891 roku wyjechała z Warszawy do Paryża. "
    "W Paryżu poznała Piotra Curie. Badania Marii Skłodowskiej-Curie doprowadziły do odkrycia "
    "polonu i radu. Maria Skłodowska-Curie otrzymała Nagrodę Nobla. Piotr Curie zginął w wypadku. "
    "Warszawa nadała jej imię uniwersytetowi. Instytut Radowy w Warszawie powstał w 1932 roku. "
    "Siostra Marii, Bronisława Dłuska, kierowała Instytutem Radowym."
)

MALINOWSKA = (
    "Prezydent Gdańska Joanna Malinowska spotkała się w czwartek z premierem Adamem Zielińskim. "
    "Malinowska powiedziała, że Gdańsk potrzebuje nowego portu. Zieliński obiecał pomoc rządu. "
    "Rozmowy w Gdańsku trwały trzy godziny. Według Zielińskiego budowa zacznie się w maju. "
    "Stocznia Gdańska zatrudni dwa tysiące osób. Krytykuje to Tomasz Wrona z Gdyni. Zdaniem Wrony "
    "port w Gdyni wystarczy. Joanna Malinowska odpowiedziała, że Gdynia też skorzysta."
)

MICKIEWICZ = (
    "Adam Mickiewicz urodził się w Nowogródku. Studiował w Wilnie, gdzie poznał Tomasza Zana. W "
    "1829 roku Mickiewicz wyjechał z Rosji. W Paryżu napisał Pana Tadeusza. Przyjaźń Mickiewicza "
    "z Juliuszem Słowackim nie trwała długo. Słowacki zazdrościł Mickiewiczowi sławy. Juliusz "
    "Słowacki zmarł w Paryżu. Ciało Mickiewicza spoczywa na Wawelu w Krakowie. Wilno i Kraków "
    "pamiętają o Mickiewiczu."
)

LU_XUN = (
    "鲁迅原名周树人，一八八一年生于浙江绍兴。鲁迅早年在日本留学。在日本，鲁迅决定弃医从文。绍兴是"
    "一座古城，鲁迅的故居就在绍兴。一九一八年鲁迅发表《狂人日记》。周作人是鲁迅的弟弟，也曾在日本"
    "留学。周作人后来住在北京。北京大学聘请鲁迅讲课，周作人也在北京大学任教。"
)

HUAWEI = (
    "华为公司周一在深圳宣布了新产品。华为表示，新手机将在欧洲销售。任正非说，华为不会放弃欧洲市场"
    "。腾讯总部也在深圳。腾讯与华为签署了合作协议。任正非在会上感谢腾讯。分析人士认为，深圳的企业"
    "正在扩大在欧洲的业务。任正非明年将访问欧洲。腾讯的股价上涨。"
)

LI_BAI = (
    "李白是唐代诗人，出生于碎叶城。杜甫与李白在洛阳相遇。李白年轻时离开四川，后来到长安做官。杜甫"
    "也到过长安，安史之乱后住在成都。杜甫写诗怀念李白。洛阳和长安是唐代的两座都城。成都有杜甫草堂"
    "。李白死于当涂，长安的人们仍在吟诵他的诗。成都的游客很多，洛阳也是如此。成都很美。"
)

MAHFOUZ = (
    "ولد نجيب محفوظ في القاهرة عام 1911. درس نجيب محفوظ الفلسفة في جامعة القاهرة. كتب محفوظ "
    "روايات كثيرة عن القاهرة. حصل نجيب محفوظ على جائزة نوبل عام 1988. وقال طه حسين إن محفوظ كاتب "
    "كبير. وكان طه حسين يعيش في القاهرة أيضا. وفي باريس درس طه حسين الأدب. زار توفيق الحكيم "
    "باريس، وعاد من باريس إلى مصر."
)

ARAMCO = (
    "أعلنت شركة أرامكو أرباحها يوم الأحد في الرياض. وقالت أرامكو إن الإنتاج سيزيد. ووقعت أرامكو "
    "اتفاقا مع شركة توتال في باريس. وستبني توتال مصنعا قرب الرياض. وقال أمين الناصر إن السوق قوي. "
    "ورحب أمين الناصر بتوتال. والرياض عاصمة السعودية، وللرياض مطار جديد. ويعمل أمين الناصر في "
    "أرامكو منذ سنوات. وزارت لجنة من باريس السعودية، وباريس مهتمة بالسعودية."
)

IBN_KHALDUN = (
    "ولد ابن خلدون في تونس عام 1332. عمل ابن خلدون في فاس ثم سافر إلى غرناطة. وفي غرناطة التقى "
    "ابن خلدون بلسان الدين بن الخطيب. ثم عاد إلى تونس وغادر تونس إلى القاهرة. كان ابن خلدون قاضيا "
    "بالقاهرة، وتوفي في القاهرة. ودرس الناس كتب ابن خلدون في فاس وبفاس مكتبة قديمة. وغرناطة مدينة "
    "جميلة، ولغرناطة قصر مشهور."
)

PUSHKIN = (
    "Александр Пушкин родился в Москве в 1799 году. Учился Пушкин в Царском Селе. Стихи "
    "Александра Пушкина знал весь Петербург. В Петербурге Пушкин встретил Наталью Гончарову. "
    "Наталья Гончарова стала его женой. Дуэль с Дантесом произошла в Петербурге. Дантес ранил "
    "Пушкина. Москва и Петербург помнят о Пушкине. Из Москвы приезжают гости."
)

HUGO = (
    "Victor Hugo est né à Besançon en 1802. Hugo a vécu à Paris, puis à Guernesey. Juliette "
    "Drouet suivit Victor Hugo en exil. À Guernesey, Hugo écrivit Les Misérables. Napoléon III "
    "gouvernait la France. Hugo détestait Napoléon III. L'Académie française avait élu Hugo en "
    "1841. De retour à Paris, Victor Hugo fut reçu comme un héros. Juliette Drouet mourut à "
    "Paris."
)

SOSEKI = (
    "夏目漱石は東京で生まれた。夏目漱石はロンドンに留学した。ロンドンから戻ると、夏目漱石は東京帝"
    "国大学で教えた。正岡子規は夏目漱石の友人である。正岡子規は松山で生まれた。夏目漱石も松山で教"
    "えた。東京に正岡子規の家がある。ロンドンの下宿は今も残る。松山の町は静かだ。"
)

KIM_KOO = (
    "김구는 황해도에서 태어났다. 김구는 상하이로 갔다. 상하이에서 김구는 대한민국 "
    "임시정부를 이끌었다. "
    "윤봉길은 상하이에서 김구를 만났다. 윤봉길의 의거는 유명하다. "
    "김구가 서울로 돌아왔다. 서울에서 윤봉길을 기린다. 서울은 수도이다."
)

GANDHI = (
    "महात्मा गांधी का जन्म पोरबंदर में हुआ। महात्मा गांधी ने लंदन में पढ़ाई की। जवाहरलाल नेहरू "
    "महात्मा गांधी के साथी थे। जवाहरलाल नेहरू इलाहाबाद में जन्मे। लंदन से महात्मा गांधी दक्षिण "
    "अफ्रीका गए। जवाहरलाल नेहरू भी लंदन में पढ़े।"
)

KAZANTZAKIS = (
    "Ο Νίκος Καζαντζάκης γεννήθηκε στο Ηράκλειο. Ο Καζαντζάκης σπούδασε στην Αθήνα και στο "
    "Παρίσι. Στην Αθήνα γνώρισε τον Άγγελο Σικελιανό. Ο Άγγελος Σικελιανός ήταν ποιητής. Ο Νίκος "
    "Καζαντζάκης έγραψε τον Ζορμπά. Το Ηράκλειο τιμά τον Καζαντζάκη. Η Αθήνα επίσης."
)


# Each text with names in it and the number of their mentions, in any of their forms.
IN_SCRIPTS_WITH_CAPITALS = {
    CURIE: {"Marie Curie": 3, "Pierre Curie": 2, "Henri Becquerel": 1, "Irène Joliot-Curie": 1,
        "Warsaw": 1, "Paris": 2, "Radium Institute": 2, "Nobel Prize": 2, "First World War": 1},
    WHITMORE: {"Rachel Whitmore": 3, "Daniel Okoro": 4, "Luis Ortega": 1, "Harbor Authority": 2,
        "Baltimore Chronicle": 2, "Maritime Workers Union": 1, "Baltimore": 1},
    TAMPA: {"Dana Ruiz": 3, "Bob Trent": 2, "Hurricane Maria": 1, "Tampa": 3, "Tampa Bay": 1,
        "National Weather Service": 1},
    GOETHE: {"Johann Wolfgang von Goethe": 4, "Friedrich Schiller": 4, "Herzog Carl August": 1,
        "Weimar": 3, "Jena": 1},
    LINDNER: {"Petra Lindner": 3, "Markus Voss": 2, "Thomas Kern": 2, "Berlin": 1,
        "Berliner Polizei": 1, "Hamburg": 2},
    EINSTEIN: {"Albert Einstein": 5, "Max Planck": 2, "Berlin": 2, "München": 1, "Zürich": 1,
        "Princeton": 1},
    SKLODOWSKA: {"Maria Skłodowska-Curie": 4, "Piotr Curie": 2, "Bronisława Dłuska": 1,
        "Warszawa": 4, "Instytut Radowy": 2},
    MALINOWSKA: {"Joanna Malinowska": 3, "Adam Zieliński": 3, "Tomasz Wrona": 2, "Gdańsk": 3,
        "Gdynia": 3, "Stocznia Gdańska": 1},
    MICKIEWICZ: {"Adam Mickiewicz": 6, "Juliusz Słowacki": 3, "Wilno": 2, "Kraków": 2},
    PUSHKIN: {"Александр Пушкин": 6, "Наталья Гончарова": 2, "Дантес": 2, "Петербург": 4,
        "Москва": 3},
    HUGO: {"Victor Hugo": 7, "Juliette Drouet": 2, "Napoléon III": 2, "Paris": 3, "Guernesey": 2},
    KAZANTZAKIS: {"Νίκος Καζαντζάκης": 4, "Άγγελος Σικελιανός": 2, "Ηράκλειο": 2, "Αθήνα": 3},
}  # fmt: skip

# Each text with the names that occur in it three times or more.
IN_OTHER_SCRIPTS = {
    LU_XUN: ["鲁迅", "绍兴", "日本", "周作人", "北京"],
    HUAWEI: ["华为", "深圳", "欧洲", "任正非", "腾讯"],
    LI_BAI: ["李白", "杜甫", "洛阳", "长安", "成都"],
    MAHFOUZ: ["نجيب محفوظ", "القاهرة", "طه حسين", "باريس"],
    ARAMCO: ["أرامكو", "الرياض", "توتال", "باريس", "أمين الناصر", "السعودية"],
    IBN_KHALDUN: ["ابن خلدون", "تونس", "فاس", "غرناطة", "القاهرة"],
    SOSEKI: ["夏目漱石", "正岡子規", "東京", "ロンドン", "松山"],
    KIM_KOO: ["김구", "상하이", "윤봉길", "서울"],
    GANDHI: ["महात्मा गांधी", "जवाहरलाल नेहरू", "लंदन"],
}


@pytest.mark.parametrize("text", IN_SCRIPTS_WITH_CAPITALS, ids=lambda text: text[:20])
def test_the_main_names_are_found_with_all_their_forms(text: str) -> None:
    mentioned = extract(text).mentioned
    expected = IN_SCRIPTS_WITH_CAPITALS[text]
    assert {name: mentioned.get(name) for name in expected} == expected


@pytest.mark.parametrize("text", IN_OTHER_SCRIPTS, ids=lambda text: text[:12])
def test_what_recurs_is_found_where_the_script_marks_no_names(text: str) -> None:
    mentioned = extract(text).mentioned
    assert {name for name in IN_OTHER_SCRIPTS[text] if mentioned.get(name, 0) < 3} == set()


def test_german_nouns_are_not_taken_for_names() -> None:
    titles = {word for text in (GOETHE, LINDNER, EINSTEIN) for word in extract(text).titles}
    nouns = (
        "Haus Museum Freundschaft Literatur Dichter Drama Sammlung Mann Angaben Läden Beamten "
        "Arbeit Anwalt Darstellung Tag Fall Partei Vater Firma Frau Familie Akademie Forscher "
        "Einfluss Jahr"
    )
    assert titles & {*nouns.split()} == set()


def test_the_forms_of_an_inflected_name_are_its_aliases() -> None:
    polish, german = extract(SKLODOWSKA).aliases, extract(GOETHE).aliases
    assert polish["Warszawa"] == {"Warszawie", "Warszawy"}
    assert polish["Maria Skłodowska-Curie"] == {"Marii Skłodowskiej-Curie", "Marii"}
    assert german["Johann Wolfgang von Goethe"] == {"Goethe", "Goethes"}


def test_a_base_form_that_no_text_writes_is_the_title_where_its_words_are_known() -> None:
    aliases = extract(MALINOWSKA).aliases
    assert aliases["Adam Zieliński"] == {"Adamem Zielińskim", "Zieliński", "Zielińskiego"}


def test_a_prefix_in_arabic_is_no_part_of_the_name() -> None:
    found = extract(ARAMCO)
    text, number = found.documents["text"][0], found.titles.index("باريس")
    rows = found.mentions.filter(entity=number).select("start_char", "end_char").iter_rows()
    assert {text[start:end] for start, end in rows} == {"باريس"}
    assert "وباريس" in text


def test_a_name_may_contain_characters_that_are_function_words_elsewhere() -> None:
    # 为 is "for", 都 is "all", 日 is "day".
    assert {"华为", "成都", "日本"} <= {*extract(HUAWEI, LI_BAI, LU_XUN).titles}


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


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        (
            "陳先生住在台北。昨天陳先生去了香港。我認識陳先生。李女士和陳先生結婚。"
            "李女士是老師。大家喜歡李女士。",
            {"陳先生": 4, "李女士": 3},
        ),
        ("华光公司在上海。华光公司发布新产品。员工喜欢华光公司。", {"华光公司": 3}),
        (
            "王小姐来了。我喜欢王小姐。昨天王小姐走了。先生说你好。那位先生走了。张先生笑了。李先生也笑。",
            {"王小姐": 3},
        ),
        (
            "公司很大。这家公司不错。那家公司更好。这家公司很新。腾讯爱这家公司。腾讯来了。我爱腾讯。",
            {"腾讯": 3},
        ),
    ],
)
def test_a_chinese_title_or_kind_ends_the_name_before_it(
    text: str, mentioned: dict[str, int]
) -> None:
    assert extract(text).mentioned == mentioned


ENGLISH_PARAGRAPH = (
    "The pump is cleaned with water from the tap, and it has to be dry before it is used."
)
GERMAN_PARAGRAPH = (
    "Die Pumpe wird mit dem Wasser aus der Leitung gereinigt. Halten Sie die Pumpe unter das "
    "Wasser und schließen Sie den Deckel. Der Deckel wird von der Firma Weber geliefert."
)


def test_the_language_of_a_document_is_told_by_paragraph() -> None:
    found = extract(f"{ENGLISH_PARAGRAPH}\n\n{GERMAN_PARAGRAPH}\n\n{ENGLISH_PARAGRAPH}")
    assert found.titles == ["Weber"]


def test_a_word_in_lower_case_shows_nothing_of_a_name_in_another_language() -> None:
    english = (
        "She ate an orange. The orange was sweet, and an orange costs little. No orange was left."
    )
    french = (
        "Les clients ont choisi Orange pour leur ligne. Dans ce pays, Orange est la première "
        "entreprise, et le siège de Orange est à Paris."
    )
    assert "Orange" not in extract(f"{english} We saw Orange there.").titles
    assert "Orange" in extract(english, french).titles


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Les navires attendent dans la rade de Brest depuis hier.", "rade de Brest"),
        ("La empresa extrae litio en el salar de Atacama desde ayer.", "salar de Atacama"),
    ],
)
def test_names_of_natural_places_may_begin_in_lower_case(text: str, name: str) -> None:
    assert extract(text).titles == [name]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("In Sicilia sbarcati trecento migranti. La nave è arrivata ieri.", "Sicilia"),
        ("Oggi a Roma scontri tra la polizia e i manifestanti.", "Roma"),
        ("A Bologna condannati i tre imputati del processo.", "Bologna"),
        ("Ayer en Kenia tribus enteras dejaron sus casas por la sequía.", "Kenia"),
    ],
)
def test_a_place_before_a_plural_is_no_species(text: str, place: str) -> None:
    assert place in extract(text).titles
