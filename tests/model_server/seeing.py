"""Pictures of requests: what a server refuses, and what a small model sees in them."""

import base64
import re
from io import BytesIO
from typing import Any

MAX_SIDE = 2_048
# Colours that are told apart, and how far a pixel may be from one.
COLOURS = {
    "Crimson": (220, 20, 60),
    "Teal": (0, 128, 128),
    "Amber": (255, 191, 0),
    "Indigo": (75, 0, 130),
}
MAX_DISTANCE = 40
# A smaller share of a picture is an edge of something else.
MIN_SHARE = 0.002
_URL = re.compile(r"data:image/(png|jpeg);base64,(.+)", re.DOTALL)


def urls_of(messages: list[dict[str, Any]]) -> list[str]:
    """Return the addresses of the pictures of messages."""
    parts = [part for m in messages if isinstance(m.get("content"), list) for part in m["content"]]
    return [str(p["image_url"]["url"]) for p in parts if p.get("type") == "image_url"]


def complain(messages: list[dict[str, Any]]) -> str:
    """Return why the pictures of messages are refused; empty if they are not."""
    urls = urls_of(messages)
    if len(urls) > 1:
        return "At most 1 image(s) may be provided in one request."
    for url in urls:
        found = _URL.fullmatch(url)
        if not found:
            return "invalid image input"
        try:
            picture = open_picture(url)
        except (ValueError, OSError):
            return "You uploaded an unsupported image. Please make sure your image is valid."
        if picture.format.lower() != found[1]:
            return f"invalid image input: the image is {picture.format}"
        if max(picture.size) > MAX_SIDE:
            return f"image dimensions exceed the limit of {MAX_SIDE} pixels"
    return ""


def open_picture(url: str) -> Any:
    from PIL import Image

    picture = Image.open(BytesIO(base64.b64decode(url.partition(",")[2], validate=True)))
    picture.load()
    return picture


def describe(url: str) -> str:
    """Describe the bars of a picture: the height of each colour, of that of the highest."""
    import numpy as np

    pixels = np.asarray(open_picture(url).convert("RGB"), int)
    heights: dict[str, int] = {}
    for name, colour in COLOURS.items():
        is_near = np.abs(pixels - colour).max(2) < MAX_DISTANCE
        rows = np.flatnonzero(is_near.any(1))
        if is_near.mean() > MIN_SHARE:
            heights[name] = int(rows[-1] - rows[0]) + 1
    if not heights:
        return "A drawing without bars."
    shares = {name: round(100 * height / max(heights.values())) for name, height in heights.items()}
    return " ".join(
        f"The bar of {name} House reaches {share} percent." for name, share in shares.items()
    )
