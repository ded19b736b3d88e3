"""What the server sees in pictures, and what it refuses as other servers do."""

import base64
import io
import json
from typing import Any

import pytest

from tests.model_server import Server
from tests.model_server.asking import as_format, record

pytest.importorskip("PIL")

from openai import BadRequestError, OpenAI

from tests.fixtures.planted_figures import encode, paint_bars


@pytest.fixture
def client() -> Any:
    with Server() as server, OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


def ask(client: OpenAI, *urls: str) -> str:
    parts: list[Any] = [{"type": "text", "text": "Describe it."}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    messages: Any = [{"role": "user", "content": parts}]
    shape = as_format(record("description"))
    reply = client.chat.completions.create(model="m", messages=messages, response_format=shape)
    said: str = json.loads(str(reply.choices[0].message.content))["description"]
    return said


def url_of(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(("format", "kind"), [("PNG", "png"), ("JPEG", "jpeg")])
def test_it_sees_the_heights_of_bars(client: OpenAI, format: str, kind: str) -> None:
    bars = encode(paint_bars((400, 300), Crimson=0.4, Indigo=0.8), format)
    said = (
        "The bar of Crimson House reaches 50 percent. The bar of Indigo House reaches 100 percent."
    )
    assert ask(client, url_of(bars, kind)) == said
    thin = encode(paint_bars((400, 300), Crimson=0.004), format)
    assert ask(client, url_of(thin, kind)) == "A drawing without bars."


def test_it_refuses_what_other_servers_refuse(client: OpenAI) -> None:
    picture = paint_bars((400, 300), Teal=0.5)
    png = encode(picture)
    webp = io.BytesIO()
    picture.save(webp, "WEBP")
    for urls, message in (
        ([base64.b64encode(png).decode()], "invalid image input"),
        (["https://example.org/a.png"], "invalid image input"),
        ([url_of(webp.getvalue(), "webp")], "invalid image input"),
        ([url_of(png, "jpeg")], "the image is PNG"),
        ([url_of(png[:100])], "unsupported image"),
        ([url_of(png)] * 2, r"At most 1 image\(s\)"),
        ([url_of(encode(paint_bars((2_049, 300), Teal=0.5)))], "exceed the limit of 2048"),
    ):
        with pytest.raises(BadRequestError, match=message):
            ask(client, *urls)
