"""The subject of a document, as its title, file name, first lines and metadata say it.

In a series of documents, such as quarterly reports or patient files, only these say whose figures
and which period a passage is about.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from graphrag_nlp.text.normalize import fold_name
from graphrag_nlp.text.periods import Period, apply_fiscal_year, find_periods, names_birth

# Number of characters, and of lines with text, at the start of a document that are read.
HEAD_CHARS = 1_500
MAX_HEAD_LINES = 12
# Maximum number of characters of a headline, of the value of a field, and of a label.
MAX_HEADLINE_CHARS = 120
MAX_VALUE_CHARS = 80
MAX_LABEL_CHARS = 240
# Maximum number of words of the value of a field; a longer one is a sentence.
MAX_VALUE_WORDS = 10
# Maximum number of folders around a file that are read.
MAX_FOLDERS = 3
# Maximum number of fields in a label.
MAX_FIELDS = 4
# A line such as "Patient: Ann Lee" or "**Report ID:** R-17".
_FIELD = re.compile(
    r"[\W_]{0,4}([^\W\d_][^:：\n]{0,29}?)[*_]{0,2}\s*(?::[*_]{0,2}\s|：)\s*(\S.*?)[\s*_|]*"
)
_HEADING_MARKS = re.compile(r"^[#=*_\s]+|[#=*_\s]+$")
_SENTENCE_END = re.compile(r"[.!?…;,]$")
# A sentence has words in lower case before its mark; "Acme, Inc." has none.
_SENTENCE = re.compile(r"\b[^\W\d_A-Z]{2,}.*[.!?…]$")
_SEPARATORS = re.compile(r"[-_.+\s]+")
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)")
# A run of capitalized words, also with "of" and the like, or the number of a record: "T-1042".
_NAME = re.compile(
    r"(?!\d)(?:[^\W\d_a-zß-öø-ÿ][\w’'&.-]*)(?:\s(?:(?:of|the|de|du|des|la|der|von|und|and|&)\s){0,2}"
    r"[^\W\d_a-zß-öø-ÿ][\w’'&.-]*)*"
)


class Subject(NamedTuple):
    """The subject of a document.

    `names` are its title, headline, the names of its file and folders, and the values of its fields
    and metadata, folded and without their periods. `label` says the subject in a line of a prompt.
    `entity` is the thing that the document is about, or "". `period` is the time that it is about,
    if that is known.
    """

    names: tuple[str, ...]
    label: str
    entity: str
    period: Period | None


def find_subject(
    title: str, path: str, text: str, metadata: str | None = None, creation_date: str = ""
) -> Subject:
    """Find the subject of a document from the first `HEAD_CHARS` characters of its text.

    `metadata` is a JSON object. The period is that of the first of these that names one: title,
    headline, fields, metadata, file name, path, `creation_date`.
    """
    file = PurePosixPath(path)
    folders = () if "://" in path else file.parent.parts[-MAX_FOLDERS:]
    place = "/".join((*folders, file.stem))
    is_file_name = not title or title in (path, file.name, file.stem)
    headline, fields = _read_head(text[:HEAD_CHARS])
    fields |= {
        key: value for key, value in _read_metadata(metadata) if value not in fields.values()
    }
    titles = [] if is_file_name else [" ".join(title.split())]
    if headline and headline not in titles:
        titles.append(headline)
    texts = [*titles, *fields.values(), file.stem, place]
    periods = [find_periods(one) for one in texts]
    births = {value for key, value in fields.items() if names_birth(key)}
    told = (found for one, found in zip(texts, periods, strict=True) if one not in births)
    found = next(filter(None, told), None) or find_periods(creation_date)
    blank = {one: _blank(one, named) for one, named in zip(texts, periods, strict=True)}
    parts = blank[place].split("/")[::-1]
    named = [*map(blank.__getitem__, texts[:-2]), *parts]
    names = dict.fromkeys(filter(None, map(fold_name, named)))
    listed = [f"{key}: {value}" for key, value in list(fields.items())[:MAX_FIELDS]]
    last = _SEPARATORS.sub(" ", " ".join((*folders[-1:], file.stem)))
    label = "; ".join([*(titles or [last] * (not listed)), *listed])
    entity = _find_entity(
        [blank[value] for value in fields.values()], [blank[one] for one in titles]
    )
    entity = entity or next(filter(None, map(_spell_name, parts)), "")
    period = _choose_period(found)
    if period is not None:
        period = apply_fiscal_year(period, "\n".join([*titles, text[:HEAD_CHARS]]))
    return Subject(tuple(names), label[:MAX_LABEL_CHARS], entity, period)


def _read_head(text: str) -> tuple[str, dict[str, str]]:
    """Return the headline and the fields of the first lines, up to the first line of prose."""
    headline, fields = "", dict[str, str]()
    # A line without a letter or digit is a rule, such as the "---" around front matter.
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    for i, line in enumerate(lines[:MAX_HEAD_LINES]):
        field = _FIELD.fullmatch(line)
        if field and len(field[2]) <= MAX_VALUE_CHARS and field[2].count(" ") < MAX_VALUE_WORDS:
            # A chat repeats the names of its speakers, and says sentences.
            if field[1] in fields or _SENTENCE.search(field[2]):
                return headline, {}
            fields[field[1]] = field[2]
            continue
        plain = _HEADING_MARKS.sub("", line)
        is_short = len(plain) <= MAX_HEADLINE_CHARS and not _SENTENCE_END.search(plain)
        # A line that ends without a full stop may be the first one of wrapped prose.
        is_alone = line[0] == "#" or f"{line}\n\n" in f"{text}\n\n"
        is_alone = is_alone or i + 1 == len(lines) or _FIELD.fullmatch(lines[i + 1]) is not None
        if i or fields or not (plain and is_short and is_alone):
            break
        headline = plain
    if len(fields) == 1 and not headline:
        # The only field is a headline such as "Acme Inc.: results of the third quarter".
        [(key, value)] = fields.items()
        return f"{key}: {value}", {}
    return headline, fields


def _read_metadata(metadata: str | None) -> Iterator[tuple[str, str]]:
    """Yield the short values of metadata as text."""
    values: Any = json.loads(metadata) if metadata else {}
    for key, value in values.items() if isinstance(values, Mapping) else ():
        text = " ".join(str(value).split())
        if isinstance(value, str | int | float) and 0 < len(text) <= MAX_VALUE_CHARS:
            yield key, text


def _choose_period(periods: Sequence[Period]) -> Period | None:
    """Return the shortest of the periods that a title names, and of equal ones all together.

    Fiscal ones go before others: "Q3 FY22 (quarter ended June 30, 2022)".
    """
    if not periods:
        return None
    # Months have 28 to 31 days, and quarters three of these.
    lengths = [period.n_days // 28 or period.n_days / 28 for period in periods]
    shortest = [p for p, n in zip(periods, lengths, strict=True) if n == min(lengths)]
    shortest = [p for p in shortest if p.is_fiscal] or shortest
    first, last = min(p.first for p in shortest), max(p.last for p in shortest)
    return shortest[0]._replace(first=first, last=last)


def _blank(text: str, periods: Sequence[Period]) -> str:
    for period in reversed(periods):
        text = f"{text[: period.start]} {text[period.end :]}"
    return text


def _find_entity(values: Sequence[str], titles: Sequence[str]) -> str:
    """Return the first value of a field that is a name, or else the first name of a title."""
    values = [value.strip() for value in values]
    for value in values:
        if _NAME.fullmatch(value.replace(", ", " ")):
            return value
    for title in titles:
        plain = _IN_BRACKETS.sub("", title).strip(" :-–—,|")
        name = _NAME.match(plain)
        # The first word of "Annual report" has a capital as any first word.
        if name and not (" " not in name[0] and re.match(r" [^\W\d_A-Z]", plain[name.end() :])):
            return name[0].rstrip(".’'&-")
    return next(filter(None, values), "")


def _spell_name(stem: str) -> str:
    words = _SEPARATORS.sub(" ", stem).split()
    name = " ".join(word.capitalize() if word.islower() else word for word in words)
    return name if len(name) > 1 else ""
