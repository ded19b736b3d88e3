"""Numbers and dates in cells of tables and in sentences."""

import re
from collections.abc import Sequence

# A date, or a part of one that begins with the year.
_DATE = re.compile(r"(?:1\d|20)\d\d(?:-\d\d(?:-\d\d)?)?")
# A mark between groups of three digits: 1,200 or 1.200.
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\s](?=\d{3}(?!\d))")
_MINUS = str.maketrans("−", "-")
# Numbers in languages with a decimal point, and in those with a decimal comma.
_WITH_POINT = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:[,'’\s]\d{3})+)(?:\.\d+)?")
_WITH_COMMA = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:[.'’\s]\d{3})+)(?:,\d+)?")
# Languages in which a comma stands before decimals.
_CODES_WITH_COMMA = frozenset("cs da de el es fr it nl pl pt ru sv".split())


def find_number(text: str) -> float | None:
    """Return the first number of a text, of which a mark before three digits is no decimal mark."""
    found = re.search(r"\d+(?:\.\d+)?", _THOUSANDS.sub("", text).replace(",", "."))
    return float(found[0]) if found else None


def read_dates(cells: Sequence[str]) -> list[float]:
    """Read the dates of a column; empty unless all are dates of one precision."""
    if len({len(cell) for cell in cells}) != 1 or not all(map(_DATE.fullmatch, cells)):
        return []
    return [float(cell.replace("-", "")) for cell in cells]


def read_numbers(cells: Sequence[str], code: str) -> list[float]:
    """Read the numbers of a column; empty unless all are numbers and their order is certain.

    "1.200" may be 1.2 or 1200. If both fit all cells and order them in other ways, the language of
    the question decides, if it takes the mark for one between thousands.
    """
    cells = [cell.translate(_MINUS) for cell in cells]
    with_point, with_comma = _read(cells, _WITH_POINT, "."), _read(cells, _WITH_COMMA, ",")
    if not with_point or not with_comma or _ranks(with_point) == _ranks(with_comma):
        return with_point or with_comma
    is_grouped = any(("." if code in _CODES_WITH_COMMA else ",") in cell for cell in cells)
    if not is_grouped:
        return []
    return with_comma if code in _CODES_WITH_COMMA else with_point


def _read(cells: Sequence[str], number: re.Pattern[str], mark: str) -> list[float]:
    if not all(map(number.fullmatch, cells)):
        return []
    plain = (re.sub(rf"[^\d+{mark}-]", "", cell) for cell in cells)
    return [float(cell.replace(mark, ".")) for cell in plain]


def _ranks(numbers: Sequence[float]) -> list[int]:
    """Return for each number how many numbers are smaller."""
    return [sum(other < number for other in numbers) for number in numbers]
