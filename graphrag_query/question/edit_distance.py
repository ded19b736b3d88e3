"""How many letters differ between two spellings of a word."""


def edit_distance(one: str, other: str, most: int) -> int:
    """Count the letters to insert, leave out, replace, or swap with the next, to make one of other.

    Optimal string alignment [1]_: no place is changed twice. Beyond `most` the result is
    `most` + 1, found sooner. A library for this would be 12 MB.

    References
    ----------
    .. [1] Boytsov, Indexing methods for approximate dictionary searching, JEA 16 (2011).
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        here = [row]
        for column, facing in enumerate(other, 1):
            changed = last[column - 1] + (letter != facing)
            cost = min(changed, last[column] + 1, here[column - 1] + 1)
            is_swap = row > 1 and column > 1 and letter == other[column - 2]
            if is_swap and one[row - 2] == facing:
                cost = min(cost, before[column - 2] + 1)
            here.append(cost)
        if min(here) > most and min(last) > most:
            return most + 1
        before, last = last, here
    return min(last[-1], most + 1)
