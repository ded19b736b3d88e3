"""The command `evaluate verdicts`: the bias of position of recorded verdicts."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.cli import Json


def verdicts(
    files: Annotated[list[Path], typer.Argument(help="Recorded verdicts on pairs: JSON Lines.")],
    as_json: Json = False,
) -> None:
    """Tell how much recorded verdicts on pairs of answers owe to the order of the answers."""
    from graphrag_evaluation.judging.position_bias import measure_position_bias, read_verdicts
    from graphrag_index.cli.index_tables import align_columns

    found = measure_position_bias([one for path in files for one in read_verdicts(path)])
    if as_json:
        print(json.dumps({**asdict(found), "is_biased": found.is_biased}, indent=2))
        return
    p = "" if found.p_value is None else f", p {found.p_value:.4f}"
    share = f"{found.first_share:.1%} [{found.low:.1%}, {found.high:.1%}]"
    print(
        f"{found.n:,} verdicts with a winner, {found.n_ties:,} ties. The answer that was shown "
        f"first won {share}{p}."
    )
    if found.flip_rate is not None:
        print(
            f"{found.n_both_orders:,} pairs were seen in both orders: in {found.flip_rate:.1%} the "
            "same place won twice."
        )
    said = "biased by position" if found.is_biased else "no bias of position is shown"
    if found.p_value is None:
        said = "not known, since no two systems were shown in both orders"
    print(f"Verdict on the judge: {said}.\n")
    rows = [("system", "wins shown first", "wins shown second")]
    for name, shares in found.wins.items():
        first, second = ("-" if share is None else f"{share:.1%}" for share in shares)
        rows.append((name, first, second))
    print(*align_columns(rows, left=[0]), sep="\n")
