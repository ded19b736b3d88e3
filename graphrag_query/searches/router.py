"""Choose the search that fits a question."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_query.answering.chat import Chat
from graphrag_query.question.asked_entities import asked_entities, unknown_entities
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.searches.question_cues import cues_in, hides_names, names_a_pair

# What the searches that are chosen among are for; a model is told so.
SEARCHES: Mapping[str, str] = {
    "global": "the whole collection: its themes, a summary, what is true across many documents",
    "local": "a certain person, place, thing, event or fact",
    "path": "how two or more named things are connected",
    "basic": "the wording or the place of a passage",
    "neighbourhood": "all that is linked with one named thing, as a list or a graph",
}


@dataclass(frozen=True)
class Choice:
    """The search for a question, by the name of its method, and the reason in a few words.

    `is_without_model` tells that a model was asked, and does not answer.
    """

    method: str
    why: str
    notes: tuple[str, ...] = ()
    is_without_model: bool = False


def choose(model: KnowledgeModel, question: str, chat: Chat | None = None) -> Choice:
    """Choose the search for a question: by a model, or by rules without one or if it fails.

    A search that the index cannot serve is replaced by the next best.
    """
    entities = asked_entities(model, question)
    unknown = unknown_entities(model, question, entities)
    n_known, n_names = len(entities), len(entities) + len(unknown)
    choice = choose_by_model(chat, question) if chat is not None else None
    if choice is None or choice.method not in SEARCHES:
        by_rules = choose_by_rules(question, n_names)
        choice = replace(choice or by_rules, method=by_rules.method, why=by_rules.why)
    needed = {"path": 2, "neighbourhood": 1}.get(choice.method, 0)
    # With an unknown name the search itself says so.
    if n_known < needed and (not unknown or n_names < needed):
        why = f"{choice.why}, but the index knows too few of its names for {choice.method} search"
        return replace(choice, method="local", why=why)
    if choice.method == "global" and not model.has("community_reports"):
        return replace(choice, method="lazy", why=f"{choice.why}, and the index has no reports")
    return choice


def choose_by_rules(question: str, n_names: int) -> Choice:
    """Choose by the words of a question and the number of names in it."""
    cues = cues_in(question)
    named = ("it names nothing", "it names one thing", "it names several things")[min(n_names, 2)]

    def because(kind: str, meaning: str) -> str:
        return f"{meaning} (“{cues[kind]}”)"

    if "passage" in cues and not ("summary" in cues and "whole" in cues):
        return Choice("basic", because("passage", "it asks for a passage"))
    if "surroundings" in cues and n_names < 2:
        return Choice("neighbourhood", because("surroundings", "it asks what surrounds something"))
    if "connection" in cues and (n_names > 1 or (not n_names and names_a_pair(question))):
        why = because("connection", f"it asks how things are connected, and {named}")
        return Choice("path", why)
    is_one = n_names == 1 or (not n_names and hides_names(question))
    if is_one and "connection" in cues and "listing" in cues and "whole" not in cues:
        why = because("connection", "it asks what is connected with one thing")
        return Choice("neighbourhood", why)
    if "whole" in cues and n_names < 2:
        return Choice("global", because("whole", "it asks about the whole corpus"))
    if "summary" in cues and not n_names:
        return Choice("global", because("summary", f"it asks for much at once, and {named}"))
    return Choice("local", f"{named}, and it does not ask about the whole corpus")


def choose_by_model(chat: Chat, question: str) -> Choice | None:
    """Let a model choose, by one short call; None with a note if it gives no search."""
    searches = "\n".join(f"- {name}: {purpose}" for name, purpose in SEARCHES.items())
    messages = chat.messages("choose_search", question, searches=searches)
    try:
        [outcome] = chat.replies([Request("choose a search", messages, FORMAT)], rating=True)
    except ModelError as error:
        note = f"The search was chosen by rules, since no model did: {error}"
        return Choice("", "", (note,), is_without_model=True)
    if outcome.failure:
        note = f"The search was chosen by rules, since no model did: {outcome.failure}."
        return Choice("", "", (note,))
    choice: Choice = outcome.values[0]
    return choice


def read_choice(reply: Any) -> ParsedReply:
    """Read the search from a reply; a name in a longer text will do."""
    while isinstance(reply, list) and reply:
        reply = reply[0]
    fields = reply if isinstance(reply, Mapping) else {"search": reply}
    said = str(fields.get("search") or fields.get("method") or "").lower()
    found = [name for name in SEARCHES if name in said.replace("neighborhood", "neighbourhood")]
    if len(found) != 1:
        raise ReplyError(f"it names no search: {said[:40]!r}")
    why = " ".join(str(fields.get("why") or "a model chose it").split())
    return ParsedReply(Choice(found[0], why[:200].rstrip(".")))


FORMAT = ReplyFormat(
    "search",
    {
        "type": "object",
        "properties": {
            "why": {"type": "string"},
            "search": {"type": "string", "enum": list(SEARCHES)},
        },
        "required": ["why", "search"],
        "additionalProperties": False,
    },
    read_choice,
    'a JSON object like {"why": "it asks who somebody was", "search": "local"}',
)
