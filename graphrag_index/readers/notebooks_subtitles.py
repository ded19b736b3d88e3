"""Readers of Jupyter notebooks, and of subtitles in the formats SubRip and WebVTT."""

import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_index.readers.document import Document, ReadFailure, UnreadableFile, as_text
from graphrag_index.readers.encodings import read_text
from graphrag_index.readers.text_html_pdf_office import Page, find_first_heading, make_document
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_nlp.text.sentences import split_sentences

# The time of a cue: hours may be left out, and seconds end with a comma or a point.
_TIMES = re.compile(
    r"^[ \t]*(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}[ \t]*-+>[ \t]*"
    r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}.*$",
    re.MULTILINE,
)
_VOICE = re.compile(r"<v(?:\.[^ <>\n]*+)?[ \t]++([^<>\n]*)>")
_MARKUP = re.compile(r"</?[a-zA-Z0-9.:#][^<>\n]*>|\{\\[^{}\n]*\}")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
# Cues are joined up to the end of a sentence, a pause or a length, both in seconds.
MAX_PAUSE, MAX_SECONDS = 3, 30
_FENCE = re.compile(r"^```", re.MULTILINE)


class _Cue(NamedTuple):
    """A line of speech; the times are in seconds."""

    start: int
    end: int
    speaker: str
    text: str


def read_subtitles(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    """Read subtitles: a line for each sentence, which begins with its time: ``[00:01:15]``.

    A file without times is read as text.
    """
    source = read_text(path, name, settings.encoding)
    times = list(_TIMES.finditer(source))
    if not times:
        yield make_document(source, "", name, settings)
        return
    ends = [*(found.start() for found in times[1:]), len(source)]
    cues = [
        cue
        for found, end in zip(times, ends, strict=True)
        for cue in _read_cue(found, source[found.end() : end])
    ]
    lines = (line for group in _join_cues(cues) for line in _write_sentences(group))
    yield make_document("\n".join(lines), "", name, settings)


def _read_cue(times: re.Match[str], source: str) -> Iterator[_Cue]:
    """Yield the speech of a cue, one row for each of its speakers."""
    hours, minutes, seconds, *last = (int(part or 0) for part in times.groups())
    start = 3_600 * hours + 60 * minutes + seconds
    end = 3_600 * last[0] + 60 * last[1] + last[2]
    # A blank line ends the text; before the next times stands the number or the name of a cue.
    body = source.removeprefix("\n").split("\n\n")[0]
    speaker, *parts = _VOICE.split(f"<v  >{body}")[1:]
    for name, words in zip([speaker, *parts[1::2]], parts[::2], strict=True):
        text = " ".join(html.unescape(_MARKUP.sub("", words)).split())
        if text:
            yield _Cue(start, end, " ".join(name.split()), text)


def _join_cues(cues: list[_Cue]) -> list[list[_Cue]]:
    """Group the cues that make a sentence; a cue that says what the last one said is left out."""
    groups: list[list[_Cue]] = []
    for cue in cues:
        before = groups[-1][-1] if groups else None
        if before and cue.text == before.text and cue.start - before.end <= MAX_PAUSE:
            continue
        is_new = (
            before is None
            or cue.speaker not in ("", before.speaker)
            or _SENTENCE_END.search(before.text)
            or cue.start - before.end > MAX_PAUSE
            or cue.end - groups[-1][0].start > MAX_SECONDS
        )
        if is_new:
            groups.append([])
        groups[-1].append(cue)
    return groups


def _write_sentences(cues: list[_Cue]) -> Iterator[str]:
    """Yield a line for each sentence, with the time of the cue that it begins in."""
    speaker = f"{cues[0].speaker}: " if cues[0].speaker else ""
    ends = list(accumulate(len(cue.text) + 1 for cue in cues))
    text = " ".join(cue.text for cue in cues)
    for sentence in split_sentences(text):
        start = cues[bisect_right(ends, sentence.start)].start
        minutes, seconds = divmod(start, 60)
        time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
        yield f"[{time}] {speaker}{text[sentence.start : sentence.end]}"


def read_notebook(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    """Read a notebook as Markdown: its texts, code and outputs, without pictures."""
    try:
        book = json.loads(read_text(path, name, settings.encoding))
        # Before version 4 of the format, cells lie in worksheets.
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
        about = book.get("metadata", {})
        language = about.get("language_info", about.get("kernelspec", {})).get("name", "")
        blocks = [block for cell in cells for block in _read_cell(cell, as_text(language))]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise UnreadableFile(f"is not a valid notebook: {error!r}") from error
    text = "\n\n".join(block.strip("\n") for block in blocks if block.strip())
    yield make_document(text, find_first_heading(text), name, settings)


def _read_cell(cell: Any, language: str) -> Iterator[str]:
    source = _join(cell.get("source", cell.get("input", "")))
    if cell["cell_type"] == "heading":  # before version 4
        yield f"{'#' * min(max(int(cell.get('level', 1)), 1), 6)} {source}"
    elif cell["cell_type"] != "code":
        yield source
    elif source.strip():
        yield _fence(source, language)
    for output in cell.get("outputs", ()):
        yield _read_output(output)


def _read_output(output: Any) -> str:
    """Return the text of an output: Markdown, a page, or what was printed as a block."""
    data = output.get("data", output)
    if "text/markdown" in data:
        return _join(data["text/markdown"])
    if found := Page(_join(data.get("text/html", data.get("html", "")))).text:
        return found
    text = _join(data.get("text/plain", data.get("text", "")))
    if "ename" in output:
        text = f"{output['ename']}: {output.get('evalue', '')}"
    return _fence(text, "") if text.strip() else ""


def _join(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(map(as_text, lines))


def _fence(text: str, language: str) -> str:
    return f"```{language}\n{_FENCE.sub(' ```', text)}\n```"
