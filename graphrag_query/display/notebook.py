"""Answers as Markdown and HTML for notebooks.

Texts, titles and quotations are escaped, so that they cannot contain links, images or scripts.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import format_count

if TYPE_CHECKING:
    from graphrag_query.answer import Answer, Citation

# Maximum number of characters of a quotation; a longer one is shortened in the middle.
MAX_QUOTE_CHARS = 500
_MARKDOWN_CHARACTER = re.compile(r"([\\`*_{}\[\]#!|~$])")
_LIST_MARK = re.compile(r"^(\d*)([-+.)])")
_FOOTNOTE = re.compile(r"\[(\d{1,4})\]")
_TABLE = re.compile(r"^\|.*\|\n\|[ :|-]+\|(?:\n\|.*\|)*", re.MULTILINE)
_BOLD_TEXT = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")


def as_markdown(answer: "Answer") -> str:
    """Write an answer as Markdown: text, outcome, citations and notes."""
    # Escape brackets, which may begin links, and dollar signs, which may begin formulas.
    text = escape(answer.text, quote=False).replace("$", r"\$")
    parts = [re.sub(r"([\[\]])", r"\\\1", text), f"*{_escape_markdown(_describe_outcome(answer))}*"]
    if answer.citations:
        rows = ["| | document | place | quotation |", "|---|---|---|---|"]
        for citation in answer.citations:
            cells = (
                str(citation.number),
                citation.document,
                format_place(citation),
                _shorten_quotation(citation),
            )
            rows.append(f"| {' | '.join(map(_escape_markdown, cells))} |")
        parts.append("\n".join(rows))
    for title, lines in _note_lists(answer):
        parts.append("\n".join([f"{title}:\n", *(f"- {_escape_markdown(line)}" for line in lines)]))
    return "\n\n".join(part for part in parts if part)


def as_html(answer: "Answer") -> str:
    """Write an answer as HTML: text, outcome, a table of citations, notes, and the graph."""
    name = "gq-" + sha256(f"{answer.question}\0{answer.text}".encode()).hexdigest()[:10]
    known = {citation.number for citation in answer.citations}

    def link_footnote(footnote: re.Match[str]) -> str:
        if int(footnote[1]) not in known:
            return footnote.group()
        return f'<a href="#{name}-{footnote[1]}">{footnote.group()}</a>'

    text = _BOLD_TEXT.sub(r"<b>\1</b>", _FOOTNOTE.sub(link_footnote, escape(answer.text)))
    text = _TABLE.sub(_as_html_table, text)
    # Text and background have the colours of the page, so a dark page is readable too.
    style = Path(__file__).with_name("notebook.css").read_text(encoding="utf-8")
    is_answered = "" if answer.outcome == "answered" else " gq-not"
    parts = [
        f"<style>\n{style}</style>",
        f'<div class="gq-text">{text}</div>',
        f'<p class="gq-small{is_answered}">{escape(_describe_outcome(answer))}</p>',
    ]
    if answer.citations:
        rows = "".join(
            f'<tr id="{name}-{citation.number}"><td>{citation.number}</td>'
            f"<td>{escape(citation.document)}</td><td>{escape(format_place(citation))}</td>"
            f"<td>{escape(_shorten_quotation(citation))}</td></tr>"
            for citation in answer.citations
        )
        head = "<th></th><th>document</th><th>place</th><th>quotation</th>"
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    for title, lines in _note_lists(answer):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        parts.append(f'<div class="gq-small">{title}:<ul>{items}</ul></div>')
    if answer.graph is not None and answer.graph.relationships.height:
        parts.append(answer.graph._repr_svg_())
    # The classes prevent MathJax from rendering text between dollars as formulas.
    return f'<div class="gq-answer tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _as_html_table(table: re.Match[str]) -> str:
    """Convert a Markdown table to HTML. The second line only aligns the columns."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table[0].strip().split("\n")
    )
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def format_place(citation: "Citation") -> str:
    """Return the file path and the character positions of a quotation as text."""
    place = f"{citation.path}, characters {citation.start_char:,} to {citation.end_char:,}"
    return f"{place} – {citation.prepended}" if citation.prepended else place


def format_source(citation: "Citation") -> str:
    """Return the document and the place of a quotation; a title that is the path only once."""
    place = format_place(citation)
    return place if citation.document == citation.path else f"{citation.document} ({place})"


def format_looked_at(answer: "Answer") -> str:
    """Count what a search has read; zeros are left out, unless it has read nothing."""
    counts = answer.looked_at
    counts = {name: n for name, n in counts.items() if n} or counts
    return ", ".join(format_count(name, n) for name, n in counts.items())


def _describe_outcome(answer: "Answer") -> str:
    """Describe the outcome of a search, the number of rows that it read, and its cost."""
    looked = format_looked_at(answer)
    outcome = f"{answer.outcome.replace('_', ' ')}{answer.source_count}"
    parts = [f"{outcome} by {answer.method} search"]
    if looked:
        parts.append(f"looked at {looked}")
    usage = answer.usage
    if usage.calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        cost = f", ${usage.cost:.4f}" if usage.cost is not None else ""
        parts.append(f"{format_count('calls', usage.calls)}, {tokens:,} tokens{cost}")
    return "; ".join([*parts, f"{usage.seconds:.1f} s"])


def _note_lists(answer: "Answer") -> Iterator[tuple[str, Sequence[str]]]:
    if answer.notes:
        yield "Notes", answer.notes
    if answer.suggestion is not None:
        yield "Another search", (str(answer.suggestion),)
    if answer.follow_ups:
        yield "Ask next", answer.follow_ups


def _shorten_quotation(citation: "Citation") -> str:
    quote = " ".join(citation.quote.split())
    if len(quote) <= MAX_QUOTE_CHARS:
        return quote
    half = MAX_QUOTE_CHARS // 2
    return f"{quote[:half].rstrip()} … {quote[-half:].lstrip()}"


def _escape_markdown(text: str) -> str:
    """Convert a text to one line, and escape it for Markdown."""
    line = _MARKDOWN_CHARACTER.sub(r"\\\1", " ".join(text.split()))
    # Escape "-", "+", "*" or "1." at the start, which begin a list item.
    return escape(_LIST_MARK.sub(r"\1\\\2", line), quote=False)
