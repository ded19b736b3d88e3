"""Questions about a known name whose other words no sentence says."""

import subprocess
import sys
from pathlib import Path

import graphrag_query
from graphrag_query.answer import Outcome

MINUTES = """Minutes of the committee

Ms Farrow: The surveyor came on Tuesday, and the roof has to be replaced before winter.
Mr Lindqvist: I would propose that we close the reading room in August.
Ms Farrow: I can ask three builders for offers by the end of the month.
Mr Lindqvist: The carpet is worn out, so I will bring samples to the next meeting.
"""


def test_sentences_that_only_share_a_name_with_the_question_are_no_evidence(
    tmp_path: Path,
) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input/minutes.txt").write_text(MINUTES, encoding="utf-8")
    (tmp_path / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    (tmp_path / "workflows").symlink_to(Path(__file__).parents[3] / "workflows")
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(tmp_path)]
    subprocess.run(command, check=True)
    with graphrag_query.open(tmp_path / "output") as index:
        known = index.search("local", "What did Ms Farrow say about the roof?")
        assert known.outcome is Outcome.ANSWERED
        # Two names are compared by other words, and "how far" asks for a number.
        for other in ("Who is older, Ms Farrow or Mr Lindqvist?", "How far did Ms Farrow come?"):
            assert index.search("local", other).outcome is Outcome.ANSWERED
        assert index.search("local", "Why did Ms Farrow resign?").outcome is Outcome.NO_EVIDENCE
