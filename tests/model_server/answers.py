"""The default answers: a small model that repeats only facts of its input.

`KINDS` says which function answers which request, by the names of properties in the schema or in
the prompt, or by the records of a line format that the prompt shows. A new kind of prompt is a
function here and a line there.
"""

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from tests.model_server.chat import ChatRequest
from tests.model_server.reading import items, kind_of, rows, sentences, sentences_with_names, words
from tests.model_server.seeing import describe
from tests.model_server.shaping import line_formats, rename, shape, write_lines

Json = dict[str, Any]
# Names of one sentence that are joined in pairs.
MAX_NAMES = 4
# Rows that a report, and lines that an answer to a question is made of.
MAX_FINDINGS, MAX_LINES = 5, 5
# Words of a summary.
MAX_WORDS = 120
ACCUSES = re.compile(r"(?i)\b(?:accus|alleg|claim|fined|sued|convict|charg)\w*")
YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
# What stands before the part of a prompt that the answer is about.
PASSAGE = re.compile(
    r"(?im)^\W*(?:text|passage|input|document|descriptions|description list|data|context|"
    r"real data|input data)\b\W*$|"
    r"^\W*(?:text|passage|input|descriptions|context)[ \t]*:[ \t]*(?=\S)"
)
# Marks around text of documents.
QUOTATION_MARKS = re.compile(r"^</?passage\b[^>]*>\n?|\n?</passage>", re.M)
# Characters that may come before that line.
FOREWORD = 300
MISSED = re.compile(r"(?i)\b(?:missed|overlooked|left out|more)\b")
YES_OR_NO = re.compile(r"\b(?:yes or no|y or n|yes/no|y/n)\b", re.I)


def passage(request: ChatRequest) -> str:
    """Return the passage: the user's first message, after the line that announces it."""
    texts = [
        text for message, text in zip(request.messages, request.texts, strict=True)
        if message["role"] == "user"
    ]  # fmt: skip
    text = texts[0] if texts else ""
    marks = list(PASSAGE.finditer(text))
    if not marks:
        return without_marks(text)
    # A prompt of one message may show examples first; a message of its own is the passage, in
    # which such a line may stand as well.
    instructed = request.messages[0]["role"] != "user"
    mark = marks[0] if instructed else marks[-1]
    told = text if instructed and mark.start() > FOREWORD else text[mark.end() :]
    return without_marks(told)


def without_marks(text: str) -> str:
    """Return a text without the marks around text of documents."""
    return QUOTATION_MARKS.sub("", text)


def prompt(request: ChatRequest) -> str:
    """Return the messages without the passage."""
    return "\n".join(request.texts).replace(passage(request), "\n")


def already_said(request: ChatRequest) -> str:
    """Return the earlier answers, if the request is for further records only."""
    if not MISSED.search(request.texts[-1]):
        return ""
    pairs = zip(request.messages, request.texts, strict=True)
    return "\n".join(text for message, text in pairs if message["role"] == "assistant")


def extract(request: ChatRequest) -> Json:
    """Extract capitalised names as entities, and relate those of one sentence."""
    entities: dict[str, Json] = {}
    relationships: dict[tuple[str, str], Json] = {}
    for sentence, names in sentences_with_names(passage(request)):
        for name in names:
            kind = kind_of(name, sentence)
            entities.setdefault(name, {"title": name, "type": kind, "description": sentence})
        for source, target in combinations(names[:MAX_NAMES], 2):
            between = sentence.split(source, 1)[-1].split(target, 1)[0].strip(" ,.;:")
            link = relationships.setdefault(
                (source, target),
                {"source": source, "target": target, "type": between[:40] or "related to",
                 "description": sentence, "strength": 0},
            )  # fmt: skip
            link["strength"] = min(10, link["strength"] + 1)
    said = already_said(request)
    return {
        "entities": [e for e in entities.values() if not said or e["title"] not in said],
        "relationships": [
            r for r in relationships.values()
            if not said or not (r["source"] in said and r["target"] in said)
        ],
    }  # fmt: skip


def claim(request: ChatRequest) -> Json:
    """Extract claims: sentences with a name and a year, or with a word of accusation."""
    claims = []
    for sentence, names in sentences_with_names(passage(request)):
        if not names or sentence in already_said(request):
            continue
        years = YEAR.findall(sentence)
        if not years and not ACCUSES.search(sentence):
            continue
        claims.append({
            "subject": names[0],
            "object": names[1] if len(names) > 1 else "NONE",
            "type": "dated event" if years else "accusation",
            "status": "TRUE" if years else "SUSPECTED",
            "start_date": f"{years[0]}-01-01" if years else None,
            "end_date": f"{years[-1]}-12-31" if years else None,
            "description": sentence,
            "source_text": sentence,
        })  # fmt: skip
    return {"claims": claims}


def summarize(request: ChatRequest) -> Json:
    """Join the descriptions, each once, up to the length of a summary; or describe a picture."""
    if request.pictures:
        return {"description": describe(request.pictures[0])}
    text = passage(request)
    parts = items(text) or list(dict.fromkeys(sentences(text)))
    said = " ".join(part if part[-1] in ".!?。" else f"{part}." for part in parts)
    return {"description": " ".join(said.split(" ")[:MAX_WORDS])}


def report(request: ChatRequest) -> Json:
    """Write a report: each of the first rows is a finding that cites its row."""
    text = passage(request)
    found = list(rows(text))
    cells = [[cell.strip(' "') for cell in re.split(r"[,|\t]", row.text)] for row in found]
    titles = list(dict.fromkeys(row[0] for row in cells))[:2] or sentences(text)[:1]
    findings: list[Json] = [
        {"summary": " ".join(row.text.split()[:12]),
         "explanation": f"{row.text} [Data: {row.section} ({row.number})]",
         "citations": [row.number]}
        for row in found[:MAX_FINDINGS]
    ]  # fmt: skip
    rating = min(10.0, 1 + len(found) / 2)
    return {
        "title": " and ".join(titles),
        "summary": " ".join(finding["summary"] + "." for finding in findings[:3]),
        "rating": rating,
        "rating_explanation": f"The context has {len(found)} rows.",
        "findings": findings,
    }


def best_lines(request: ChatRequest) -> list[tuple[float, str]]:
    """Rank the rows and sentences by the words that they share with the question."""
    question = request.texts[-1][-500:]
    asked = words(question)
    context = "\n".join(request.texts)
    lines = [f"{row.text} [Data: {row.section} ({row.number})]" for row in rows(context)]
    lines = lines or sentences(context.removesuffix(question))
    shares = [(len(asked & words(line)) / (len(asked) or 1), line) for line in lines]
    return sorted((s for s in shares if s[0] > 0), key=lambda s: -s[0])[:MAX_LINES]


def answer_question(request: ChatRequest) -> Json:
    lines = [line for _, line in best_lines(request)]
    return {"answer": "\n\n".join(lines) or "I do not know: the data says nothing about it."}


def answer_step(request: ChatRequest) -> Json:
    """Write the best lines as an intermediate answer, with follow-ups on their names."""
    found = best_lines(request)
    lines = [line for _, line in found]
    named = [name for line in lines for _, names in sentences_with_names(line) for name in names]
    return {
        "answer": "\n\n".join(lines),
        "score": round(100 * found[0][0]) if found else 0,
        "follow_ups": [f"What is told of {name}?" for name in dict.fromkeys(named)][:3],
    }


def rate_points(request: ChatRequest) -> Json:
    found = best_lines(request)
    return {"points": [{"description": line, "score": round(100 * s)} for s, line in found]}


def score(request: ChatRequest) -> Json:
    found = best_lines(request)
    best = round(10 * found[0][0]) if found else 0
    return {"score": best, "rating": best, "explanation": f"{len(found)} lines speak of it."}


Answerer = Callable[[ChatRequest], Json]
# The first line of which one of the names is there.
KINDS: list[tuple[set[str], Answerer]] = [
    ({"entities", "relationships", "nodes", "entity", "relationship"}, extract),
    ({"claims", "covariates", "claim"}, claim),
    ({"findings", "finding"}, report),
    ({"points", "point"}, rate_points),
    ({"follow_ups"}, answer_step),
    ({"answer", "response"}, answer_question),
    ({"score", "rating"}, score),
    ({"description", "summary"}, summarize),
]
# Lists of an answer, with the record of a line format for their members.
LISTS = {
    "entities": "entity", "relationships": "relationship", "claims": "claim",
    "findings": "finding", "points": "point",
}  # fmt: skip


def choose(names: set[str]) -> Answerer | None:
    return next((function for known, function in KINDS if known & names), None)


def answer_from_text(request: ChatRequest) -> str | Json:
    """Answer in the form that the request asks for."""
    if request.schema:
        answers = choose(set(request.schema.get("properties", {}))) or answer_question
        shaped: Json = shape(answers(request), request.schema)
        return shaped
    if len(request.messages) > 2 and YES_OR_NO.search(request.texts[-1]):
        return "NO" if "NO" in request.texts[-1] else "N"
    asked = prompt(request)
    shown = set(re.findall(r'"(\w+)"\s*:', asked))
    if shown and (request.mode == "json_object" or "json" in asked.lower()):
        renamed: Json = rename((choose(shown) or answer_question)(request), shown)
        return renamed
    formats = line_formats(asked)
    if writes := choose(set(formats)):
        return write_lines(records(writes(request)), formats, asked)
    sums_up = "summar" in asked.lower() and items(passage(request))
    said = summarize(request) if sums_up else answer_question(request)
    return str(next(iter(said.values())))


def records(value: Json) -> list[tuple[str, Json]]:
    """Write an answer as records of a line format."""
    found: list[tuple[str, Json]] = []
    for name, part in value.items():
        if isinstance(part, list):
            found += [(LISTS[name], member) for member in part]
        elif name != "rating_explanation":
            found.append((name, {name: part, "explanation": value.get("rating_explanation")}))
    return found
