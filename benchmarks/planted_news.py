"""Make news-like documents whose counts are known by construction.

A document is about one of four topics and names one state, one of its cities, one person and one
organization. The numbers of documents of a topic follow a known trend over the months of 2024.
``counting_questions`` asks for these counts. All people and organizations are invented.
"""

import calendar
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CITIES = {
    "Ohio": "Columbus",
    "Texas": "Austin",
    "Iowa": "Des Moines",
    "Oregon": "Portland",
    "Kansas": "Wichita",
    "Idaho": "Boise",
    "Utah": "Provo",
    "Vermont": "Burlington",
}
# Share of documents that name each state, person and organization: clear ranks.
STATE_WEIGHTS = (30, 22, 15, 11, 8, 6, 5, 3)
PEOPLE = "Lydia Harkness,Owen Pruitt,Marta Delgado,Samuel Okoye,Ingrid Vance,Peter Lindholm".split(
    ","
)
PEOPLE_WEIGHTS = (34, 24, 16, 12, 9, 5)
ORGANIZATIONS = (
    "Caldwell Institute",
    "Northfield Hospital",
    "Halvorsen Rail Union",
    "Merriweather Foods",
    "Tri-River Water Agency",
)
ORGANIZATION_WEIGHTS = (35, 25, 18, 13, 9)
# Documents of a topic in the first and in the last month, relative to the other topics.
TRENDS = {"measles": (1, 7), "strike": (6, 1), "flood": (3, 3), "budget": (3, 3)}
OPENINGS = {
    "measles": "{city}, {state} - Health officers confirmed {n} new cases of measles on {day}.",
    "strike": "{city}, {state} - A strike of train drivers entered day {n} on {day}.",
    "flood": "{city}, {state} - The flood left {n} families without a home on {day}.",
    "budget": "{city}, {state} - The council cut the school budget by ${n} million on {day}.",
}
SENTENCES = {
    "measles": (
        "Most of the patients are children who had not been vaccinated.",
        "Two wards were closed to visitors, and nurses worked double shifts.",
        "Doctors ask parents to look at the vaccination cards of their children.",
        "A mobile clinic offers free shots at weekends.",
    ),
    "strike": (
        "Commuters waited for buses in the rain, and many gave up.",
        "The drivers want shorter shifts and a rise of eight percent.",
        "Talks broke down late at night and will go on next week.",
        "Freight trains are not affected so far.",
    ),
    "flood": (
        "The river rose two feet overnight and broke a dam of sandbags.",
        "Cellars, shops and a bridge stood under water in the morning.",
        "Volunteers brought blankets and soup to the gymnasium.",
        "The water is expected to fall before the weekend.",
    ),
    "budget": (
        "Art lessons and two bus routes are likely to go first.",
        "Parents filled the hall and asked for another vote.",
        "Teachers fear that classes of thirty pupils will be the rule.",
        "The plan is to be voted on in the coming session.",
    ),
}
QUOTES = (
    '"We did not expect this so soon," said {person} of {organization}.',
    "{person} of {organization} asked for patience. {surname} will report again soon.",
    'At {organization}, {person} called it serious. "Nobody should wait," {surname} said.',
)


@dataclass(frozen=True)
class Article:
    """One planted document and the names that it has, each known by construction."""

    date: str
    topic: str
    state: str
    person: str
    organization: str
    title: str
    text: str

    @property
    def month(self) -> str:
        return self.date[:7]


def _topic_of_month(rng: random.Random, month: int) -> str:
    share = (month - 1) / 11
    weights = [first + (last - first) * share for first, last in TRENDS.values()]
    return rng.choices(list(TRENDS), weights)[0]


def make_articles(n_documents: int = 240, seed: int = 0) -> list[Article]:
    """Make articles in the order of their dates, the same for equal arguments."""
    rng = random.Random(seed)
    articles = []
    for index in range(n_documents):
        month = index * 12 // n_documents + 1
        day = 1 + (index - (month - 1) * n_documents // 12) % 28
        date = f"2024-{month:02}-{day:02}"
        topic = _topic_of_month(rng, month)
        state = rng.choices(list(CITIES), STATE_WEIGHTS)[0]
        person = rng.choices(PEOPLE, PEOPLE_WEIGHTS)[0]
        organization = rng.choices(ORGANIZATIONS, ORGANIZATION_WEIGHTS)[0]
        names = {"person": person, "organization": organization, "surname": person.split()[1]}
        n = rng.randint(4, 90)
        weekday = rng.choice("Monday Tuesday Wednesday Thursday Friday".split())
        opening = OPENINGS[topic].format(city=CITIES[state], state=state, n=n, day=weekday)
        sentences = rng.sample(SENTENCES[topic], 3)
        quote = rng.choice(QUOTES).format(**names)
        text = " ".join([opening, sentences[0], quote, *sentences[1:]])
        title = f"Report {index + 1}"
        articles.append(Article(date, topic, state, person, organization, title, text))
    return articles


def write_articles(articles: list[Article], folder: Path) -> None:
    """Write articles as records of one JSON lines file."""
    folder.mkdir(parents=True, exist_ok=True)
    records = (
        {
            "id": f"news-{index:04}",
            "title": article.title,
            "date": article.date,
            "text": article.text,
        }
        for index, article in enumerate(articles)
    )
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (folder / "news.jsonl").write_text(lines, encoding="utf-8")


@dataclass(frozen=True)
class CountingQuestion:
    """A question whose answer is a count, a rank or a date, and what makes an answer right.

    The beginning of the answer has one of ``begins``; the answer has one of each line of ``says``,
    and names the values of ``order`` in their order.
    """

    question: str
    begins: tuple[str, ...] = ()
    says: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()


# Question, field whose values are ranked, topic of the documents (None: all), number of ranks.
RANKS: tuple[tuple[str, str, str | None, int], ...] = (
    ("Which states are mentioned most often?", "state", None, 3),
    ("Which people are mentioned most often?", "person", None, 3),
    ("Which organizations are mentioned most often?", "organization", None, 3),
    ("Welche Personen werden am häufigsten genannt?", "person", None, 3),
    ("Quelles organisations sont le plus souvent mentionnées ?", "organization", None, 3),
    ("¿Qué estados se mencionan con más frecuencia?", "state", None, 3),
    ("Which states are most frequently mentioned in relation to measles?", "state", "measles", 2),
    ("Which people are named most often in documents about strikes?", "person", "strike", 1),
    ("Which states come up the most?", "state", None, 3),
    ("Rank the organizations by how many documents name them.", "organization", None, 3),
    ("Welche Bundesstaaten kommen am häufigsten vor?", "state", None, 3),
    ("Quelle personne est la plus citée ?", "person", None, 1),
    ("¿Qué personas aparecen más a menudo en los documentos?", "person", None, 3),
)
COUNTS: tuple[tuple[str, Callable[[Article], bool]], ...] = (
    ("How many documents are there?", lambda a: True),
    ("How many documents mention measles?", lambda a: a.topic == "measles"),
    (
        "How many documents mention Caldwell Institute?",
        lambda a: a.organization == "Caldwell Institute",
    ),
    ("Wie viele Dokumente erwähnen Ohio?", lambda a: a.state == "Ohio"),
    ("¿Cuántos documentos mencionan a Lydia Harkness?", lambda a: a.person == "Lydia Harkness"),
    (
        "Combien de documents mentionnent Northfield Hospital ?",
        lambda a: a.organization == "Northfield Hospital",
    ),
    (
        "How many documents mention both Texas and measles?",
        lambda a: a.state == "Texas" and a.topic == "measles",
    ),
    (
        "How many documents mentioned Ohio in October 2024?",
        lambda a: a.state == "Ohio" and a.month == "2024-10",
    ),
    ("In how many documents does Samuel Okoye appear?", lambda a: a.person == "Samuel Okoye"),
    ("What is the number of articles about the flood?", lambda a: a.topic == "flood"),
    ("¿En cuántos documentos aparece Iowa?", lambda a: a.state == "Iowa"),
    (
        "In wie vielen Dokumenten kommt Merriweather Foods vor?",
        lambda a: a.organization == "Merriweather Foods",
    ),
    (
        "Dans combien de documents Marta Delgado apparaît-elle ?",
        lambda a: a.person == "Marta Delgado",
    ),
)
UP = "risen rise rose rising increase increased increasing grown grew growing up more".split()
DOWN = "fallen fall fell falling decrease decreased decreasing declined decline down fewer".split()


def counting_questions(articles: list[Article]) -> list[CountingQuestion]:
    """Return questions about the articles with the answers that their construction gives."""
    questions = []
    for question, field, topic, top in RANKS:
        chosen = [article for article in articles if topic in (None, article.topic)]
        best = Counter(getattr(article, field) for article in chosen).most_common(top)
        says = tuple((str(count),) for _, count in best)
        questions.append(CountingQuestion(question, says=says, order=tuple(v for v, _ in best)))
    for question, matches in COUNTS:
        count = sum(map(matches, articles))
        questions.append(CountingQuestion(question, begins=(str(count),)))
    dates = [article.date for article in articles if article.person == "Peter Lindholm"]
    vance = [article.date for article in articles if article.person == "Ingrid Vance"]
    months = Counter(article.month for article in articles if article.topic == "measles")
    [(busiest, _)] = months.most_common(1)
    return [
        *questions,
        CountingQuestion("Since when is Peter Lindholm mentioned?", spell_date(dates[0])),
        CountingQuestion("When was Peter Lindholm mentioned last?", spell_date(dates[-1])),
        CountingQuestion(
            "How many documents per month mention measles?",
            says=tuple((str(count),) for _, count in months.most_common(4)),
        ),
        CountingQuestion("In which month is measles mentioned most often?", spell_month(busiest)),
        CountingQuestion(
            "How did the number of documents about measles change over time?", tuple(UP)
        ),
        CountingQuestion("What is the trend of documents about strikes over time?", tuple(DOWN)),
        CountingQuestion("When does Ingrid Vance first appear?", spell_date(vance[0])),
        CountingQuestion("Seit wann wird Ingrid Vance erwähnt?", spell_date(vance[0])),
        CountingQuestion("Are reports about measles becoming more frequent?", tuple(UP)),
        CountingQuestion("Do articles about strikes become rarer over time?", tuple(DOWN)),
    ]


def spell_month(month: str) -> tuple[str, ...]:
    """Return the ways to write a month such as 2024-10 in English."""
    year, number = month.split("-")
    name = calendar.month_name[int(number)]
    return month, f"{name} {year}", f"{name[:3]} {year}"


def spell_date(date: str) -> tuple[str, ...]:
    """Return the ways to write a date such as 2024-10-03 in English."""
    year, number, day = date.split("-")
    name = calendar.month_name[int(number)]
    return date, f"{int(day)} {name} {year}", f"{name} {int(day)}, {year}"
