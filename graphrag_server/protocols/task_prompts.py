"""Answers to the hidden prompts of Open WebUI, without a search.

Open WebUI sends prompts that begin with "### Task:" to the model of the chat: for a title, tags,
further questions, search queries and so on. They are no questions to the documents. The prompt
around a question with attached files or web pages begins in the same way, but has a question.
"""

import json
import re

_BEGINNING = "### Task:"
_HISTORY = re.compile(r"<chat_history>\s*(.*?)\s*</chat_history>", re.DOTALL)
_USER_LINE = re.compile(r"^\s*(?:USER|User)\s*:\s*(.+)$", re.MULTILINE)
# The key of the JSON object that a prompt asks for.
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_MAX_TITLE_WORDS = 6
# The end of the prompt with attached texts: the question is in a tag, or follows the texts.
_ATTACHED_TEXTS = re.compile(r"<context>.*</context>", re.DOTALL)
_TAGGED_QUESTION = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


def is_task(prompt: str) -> bool:
    """Return whether a message is a hidden prompt."""
    return prompt.lstrip().startswith(_BEGINNING)


def unwrap_question(message: str) -> str:
    """Return the question in a prompt with attached texts; any other message as it is."""
    attached = _ATTACHED_TEXTS.search(message) if is_task(message) else None
    if attached is None:
        return message
    rest = message[attached.end() :]
    tagged = _TAGGED_QUESTION.search(rest)
    return (tagged[1] if tagged else rest).strip() or message


def answer_task(prompt: str) -> str | None:
    """Return the reply to a hidden prompt; None if the prompt is a question."""
    if not is_task(prompt):
        return None
    history = _HISTORY.search(prompt)
    questions = _USER_LINE.findall(history[1]) if history else []
    first = questions[0].strip() if questions else ""
    last = questions[-1].strip() if questions else ""
    key = _KEY.search(prompt)
    replies: dict[str, object] = {
        "title": _make_title(first),
        "tags": ["Documents"],
        "follow_ups": [],
        "queries": [last] if last else [],
        "text": "",
        "prompt": last,
    }
    if key is None:
        return _make_title(first)
    return json.dumps({key[1]: replies[key[1]]}, ensure_ascii=False)


def _make_title(question: str) -> str:
    words = question.split()
    title = " ".join(words[:_MAX_TITLE_WORDS]).rstrip("?!.,;:")
    return (f"{title} …" if len(words) > _MAX_TITLE_WORDS else title) or "Conversation"
