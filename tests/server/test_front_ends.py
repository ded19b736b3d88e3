"""Chat front ends as strangers use them: they go on, show sources, and render Markdown."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from graphrag_server.routes.chat_protocols import (
    ChatMessage,
    PlainText,
    answer_task,
    make_plain,
    read_chat,
    unwrap_question,
)
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.served import project_with_model, serve, write_project
from tests.model_server import Server

DOCUMENTS = {
    "港口.txt": "林海是青石港的第一任港务长。一九五三年，林海在青石港修建了北码头。\n"
    "陈月是林海的学生，她在青石港管理仓库二十年。陈月后来调往白沙镇，担任镇长。",
    "park.md": "# ![x](http://evil.example/title.png) The park\n\n"
    "Anna Berg opened the North Park in 1921 "
    "![map](http://evil.example/a.png?leak) with <img src=http://evil.example/b.png> a band.\n\n"
    "Anna Berg painted its gate in 1922, see [the gate](javascript:alert(1)) and "
    '<code_interpreter type="code">import os</code_interpreter> in the list.',
}
LIN, PARK = "林海是谁？", "Who opened the North Park?"
MODEL = "graphrag/p/ask"
# A page of Markdown as front ends show it: HTML is not filtered.
PAGE = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("strangers") / "p")
    for name, text in DOCUMENTS.items():
        (root / "input" / name).write_text(text, encoding="utf-8")
    run_project(root)
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[httpx2.Client]:
    settings = ServerSettings(indexes={"p": root}, state_folder=root)
    with serve(settings) as served, httpx2.Client(base_url=served.url, timeout=60) as client:
        yield client


OPENAI, OLLAMA = "/v1/chat/completions", "/api/chat"


def post(client: httpx2.Client, path: str, messages: list[dict], **more: Any) -> httpx2.Response:
    return client.post(path, json={"model": MODEL, "messages": messages, **more})


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def said(text: str | None) -> dict:
    return {"role": "assistant", "content": text}


def read_parts(reply: httpx2.Response) -> tuple[str, list[dict]]:
    """Return the text of a reply, whole or streamed, and its parts."""
    lines = (line.removeprefix("data: ") for line in reply.text.splitlines())
    parts = [json.loads(line) for line in lines if line.startswith("{")]
    messages = [part.get("message") or part["choices"][0] for part in parts]
    messages = [one.get("message") or one.get("delta") or one for one in messages]
    return "".join(one.get("content") or "" for one in messages), parts


def active_parts(text: str) -> list[str]:
    """Return what a page that shows a text as Markdown would load, open or run."""
    tokens = [token for top in PAGE.parse(text) for token in (top, *(top.children or []))]
    kinds = ("image", "link_open", "html_inline", "html_block")
    codes = [token.info for token in tokens if token.type == "fence"]
    languages = [code for code in codes if code.strip() and code.split()[0] != "text"]
    return [token.type for token in tokens if token.type in kinds] + languages


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [OPENAI, OLLAMA])
def test_continue_answers_the_last_question(client: httpx2.Client, path: str, stream: bool) -> None:
    """The request of Open WebUI's button: the last message is the cut answer."""
    text, _ = read_parts(post(client, path, [user(LIN), said("林海是")], stream=stream))
    assert "林海是青石港的第一任港务长" in text


@pytest.mark.parametrize(
    "prompt",
    [
        "<chat_history>" + " " * 200_000 + "x",
        "<chat_history>" * 50_000,
        "<chat_history>" + "\n" * 200_000 + "</chat_history>",
        "<context></context><user_query>" + " " * 200_000,
        "<context>" * 50_000,
    ],
)
def test_a_prompt_made_to_be_searched_for_hours_is_answered(prompt: str) -> None:
    assert answer_task(f'### Task: {{"title": ""}} {prompt}') == '{"title": "Conversation"}'
    assert unwrap_question(f"### Task: {prompt}")


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        ([user(LIN), said("林海是")], LIN),
        ([user(LIN), said("")], LIN),
        ([user(PARK), said("Anna"), said(" Berg")], PARK),
        ([user(LIN), said("林海是港务长。"), user(PARK), said("Anna")], PARK),
        ([user(PARK), said("Anna Berg."), user(LIN)], LIN),
        ([{"role": "system", "content": "Be short."}, user(PARK), said("Anna")], PARK),
        ([user(PARK), said(None)], PARK),
        ([user(PARK), {"role": "assistant", "content": [{"type": "text", "text": "A"}]}], PARK),
        ([user(LIN), user(PARK), said("Anna")], PARK),
        ([user(PARK), said("A\n\n- [1] The park: http://x/#/p/document/1/0-5")], PARK),
        ([user(PARK), said("- [1] The park: http://x/#/p/document/1/0-5")], PARK),
        ([said("Hello"), user(LIN), said("林")], LIN),
        ([said("Hello")], None),
        ([user(PARK), said("Anna Berg."), user(" ")], None),
    ],
)
@pytest.mark.parametrize("path", [OPENAI, OLLAMA])
def test_a_chat_asks_its_last_question(
    client: httpx2.Client, path: str, messages: list[dict], asked: str | None
) -> None:
    reply = post(client, path, messages, stream=False)
    assert reply.json().get("graphrag", {}).get("question") == asked
    assert reply.status_code == (200 if asked else 400)


def test_open_webui_opens_the_quotation_of_each_mark(client: httpx2.Client) -> None:
    """Its middleware passes `event` on, and makes a source of each annotation.

    Its page joins sources of one `metadata.source`, and `[2]` opens the second; it names a source
    by `metadata.name`, and counts the names.
    """
    _, chunks = read_parts(post(client, OPENAI, [user(PARK)], stream=True))
    cited = chunks[-1]["graphrag"]["citations"]
    events = [chunk["event"] for chunk in chunks if "event" in chunk]
    sources = [event["data"] for event in events if event["type"] == "source"]
    for chunk in chunks:
        for note in chunk["choices"][0]["delta"].get("annotations", []):
            title, url = note["url_citation"]["title"], note["url_citation"]["url"]
            sources.append({"document": [title], "metadata": [{"source": url, "name": title}]})
    shown: dict[str, list[str]] = {}
    for source in sources:
        shown.setdefault(source["metadata"][0]["source"], []).extend(source["document"])
    assert len(shown) == len(cited) == 2
    for citation, (url, texts) in zip(cited, shown.items(), strict=True):
        span = f"{citation['start_char']}-{citation['end_char']}"
        assert url.startswith(f"{client.base_url}".rstrip("/") + "/#/p/document/")
        assert url.endswith(f"/{span}")
        assert texts[0] == make_plain(citation["quote"])
    names = [source["metadata"][0]["name"] for source in sources[: len(cited)]]
    assert names == [names[0], f"{names[0]} (2)"]
    assert [active_parts(text) for texts in shown.values() for text in texts] == [[]] * 4
    assert any(active_parts(citation["quote"]) for citation in cited)


@pytest.mark.parametrize("method", ["ask", "local", "basic", "global", "drift", "lazy"])
@pytest.mark.parametrize("path", [OPENAI, OLLAMA])
@pytest.mark.parametrize("stream", [False, True])
def test_nothing_in_a_document_is_loaded_or_run(
    client: httpx2.Client, method: str, path: str, stream: bool
) -> None:
    reply = post(client, path, [user(PARK)], stream=stream, model=f"graphrag/p/{method}")
    text, _ = read_parts(reply)
    assert "Anna Berg opened the North Park in 1921" in text
    assert "http://evil.example/a.png?leak" in text
    assert active_parts(text) == []
    assert "<code_interpreter" not in text


def test_nothing_that_a_model_repeats_is_loaded_or_run(root: Path, tmp_path: Path) -> None:
    image, code = "![x](http://evil.example/a.png)", "```html\n<script>go()</script>\n```\n"
    written = f"**Anna Berg** did {image} [1].\n\n{code}"
    with Server(answer=lambda chat: written) as server:
        project = project_with_model(tmp_path / "p", root, server.url)
        settings = ServerSettings(indexes={"p": project}, state_folder=tmp_path)
        with serve(settings) as served, httpx2.Client(base_url=served.url, timeout=60) as client:
            body = {"stream": True, "model": "graphrag/p/local"}
            text, _ = read_parts(post(client, OPENAI, [user(PARK)], **body))
    assert text.startswith("**Anna Berg** did ![x]\u2060(http://evil.example/a.png)")
    assert "```text html\n<\u2060script>" in text
    assert active_parts(text) == []
    assert active_parts(written) == ["image", "html"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("![a](http://x/a.png)", "![a]\u2060(http://x/a.png)"),
        ("[a](http://x/?go)", "[a]\u2060(http://x/?go)"),
        ("![a][b]\n\n[b]: http://x/a.png", "![a][b]\n\n[b]\u2060: http://x/a.png"),
        ("[a]\n\n> [a]: <http://x>", "[a]\n\n> [a]\u2060: <\u2060http://x>"),
        ("<img src=x onerror=go()>", "<\u2060img src=x onerror=go()>"),
        ("</p><!-- a --><?b?>", "<\u2060/p><\u2060!-- a --><\u2060?b?>"),
        ("see <https://x.org>", "see <\u2060https://x.org>"),
        ("```html\n<b>\n```", "```text html\n<\u2060b>\n```"),
        ("- ~~~ mermaid\n  a\n  ~~~", "- ~~~ text mermaid\n  a\n  ~~~"),
        ("1. > ````svg\nx", "1. > ````text svg\nx"),
        ("<think>a</think>", "<\u2060think>a<\u2060/think>"),
        ("[![a](http://x/b)](http://y)", "[![a]\u2060(http://x/b)]\u2060(http://y)"),
        ("![图](http://x/图.png)：林海", "![图]\u2060(http://x/图.png)：林海"),
    ],
)
def test_active_markdown_is_shown_as_it_is_written(text: str, plain: str) -> None:
    assert make_plain(text) == plain
    assert active_parts(text) != []
    assert active_parts(plain) == []
    # A reader sees the characters of the document, also within code.
    assert plain.replace("\u2060", "").replace("text ", "") == text
    assert "&amp;" not in PAGE.render(plain)


@pytest.mark.parametrize(
    "text",
    [
        "**Bold** and *so on*, `code`, 3 < 4, a <- b, 林海 [1][2] (see [3]).",
        "# Title\n\n- one\n- two [1]\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "```\nx = y\n```\nand https://x.org/a?b=c, a@b.org",
        "1. First: ~5 ~~old~~ [Data: Reports (1)]\n2. Second! [sic]",
    ],
)
def test_other_markdown_is_kept(text: str) -> None:
    assert make_plain(text) == text


_WORDS = "![x](http://x) [y]: ```html ![x][y] ]( ]: <b> <!-- --> ``` ~~~ - > 1. &lt; html".split()
_PARTS = st.sampled_from([*'![]()<>:`~a1 \n\r\t\\"\u00a0\u2028', *_WORDS, "\n```", "\n- ~~~"])


@given(st.lists(_PARTS, max_size=25), st.lists(st.integers(0, 60), max_size=6))
def test_pieces_are_made_plain_as_the_whole_is(parts: list[str], cuts: list[int]) -> None:
    text, written = "".join(parts), PlainText()
    ends = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    assert "".join(map(written.add, pieces)) + written.add("", is_last=True) == make_plain(text)
    assert active_parts(make_plain(text)) == []


LINES = "\n\n- [1] "


def test_ollama_gets_a_line_for_each_source(client: httpx2.Client) -> None:
    text, parts = read_parts(post(client, OLLAMA, [user(LIN)]))
    citations = parts[-1]["graphrag"]["citations"]
    # Some clients read no text of the last part.
    assert parts[-1]["message"]["content"] == ""
    lines = text.split("\n\n")[-1].splitlines()
    assert [line.split(" ")[:3] for line in lines] == [
        ["-", f"[{citation['number']}]", "港口.txt:"] for citation in citations
    ]
    assert lines[0].endswith(f"/{citations[0]['start_char']}-{citations[0]['end_char']}")
    assert read_parts(post(client, OLLAMA, [user(LIN)], stream=False))[0] == text
    turns = read_chat([ChatMessage(**one) for one in (user(LIN), said(text), user(PARK))])[1]
    assert turns[0].answer == text.split(LINES)[0]


def test_a_setting_and_a_field_decide_about_the_lines(root: Path, client: httpx2.Client) -> None:
    def has_lines(client: httpx2.Client, **more: Any) -> list[bool]:
        replies = (post(client, path, [user(LIN)], **more) for path in (OPENAI, OLLAMA))
        return [LINES in read_parts(reply)[0] for reply in replies]

    assert has_lines(client) == [False, True]
    assert has_lines(client, append_sources=True) == [True, True]
    assert has_lines(client, append_sources=False) == [False, False]
    settings = ServerSettings(indexes={"p": root}, state_folder=root, append_sources=["openai"])
    with serve(settings) as served, httpx2.Client(base_url=served.url, timeout=60) as other:
        assert has_lines(other) == [True, False]


@pytest.mark.parametrize(
    ("field", "value", "usual"),
    [
        ("n", 2, 1),
        ("tools", [{"type": "function", "function": {"name": "f"}}], []),
        ("functions", [{"name": "f"}], []),
        ("response_format", {"type": "json_object"}, {"type": "text"}),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "a"}}, None),
        ("format", "json", ""),
        ("format", {"type": "object"}, None),
        ("logprobs", True, False),
        ("modalities", ["text", "audio"], ["text"]),
        ("tools", [{"type": "web_search"}], None),
    ],
)
@pytest.mark.parametrize("path", [OPENAI, OLLAMA])
def test_what_asks_for_more_than_one_text_is_refused(
    client: httpx2.Client, path: str, field: str, value: object, usual: object
) -> None:
    refused = post(client, path, [user(LIN)], **{field: value})
    error = refused.json()["error"]
    assert refused.status_code == 400
    assert f"'{field}' is not supported" in (error if path == OLLAMA else error["message"])
    steering = {"temperature": 0.1, "max_tokens": 5, "stop": ["."], "seed": 1, "user": "x"}
    assert post(client, path, [user(LIN)], **{field: usual}, **steering).status_code == 200


def test_images_of_ollama_are_refused(client: httpx2.Client) -> None:
    reply = post(client, OLLAMA, [{**user(LIN), "images": ["aGk="]}])
    assert (reply.status_code, "send texts only" in reply.json()["error"]) == (400, True)


def test_what_openai_has_and_this_server_has_not_is_an_error_of_openai(
    client: httpx2.Client,
) -> None:
    with openai.OpenAI(base_url=client.base_url.join("/v1"), api_key="none", max_retries=0) as own:
        for ask in (
            lambda: own.completions.create(model=MODEL, prompt=LIN),
            lambda: own.embeddings.create(model=MODEL, input=LIN),
            lambda: own.responses.create(model=MODEL, input=LIN),
        ):
            with pytest.raises(openai.NotFoundError, match="/v1/chat/completions") as caught:
                ask()
            assert caught.value.code == "not_found"
    found = client.post("/api/generate", json={"model": MODEL, "prompt": LIN})
    assert (found.status_code, list(found.json())) == (404, ["error"])
