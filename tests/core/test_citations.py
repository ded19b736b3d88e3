import pytest

from graphrag_index.core.citations import check_citations, cited, find_citations


@pytest.mark.parametrize(
    ("citation", "rows"),
    [
        ("[Data: Reports (1, 2)]", {"Reports": {1, 2}}),
        ("[Data: Entities (1), Sources (2); Claims (3, +more)]",
         {"Entities": {1}, "Sources": {2}, "Claims": {3}}),
        # As small models write them.
        ("[Data: Sources (1), (2)]", {"Sources": {1, 2}}),
        ("[Data: Sources 1, 2; Reports 3]", {"Sources": {1, 2}, "Reports": {3}}),
        ("[Data: 1, 2]", {"Sources": {1, 2}}),
        ("[Sources: 1, 2]", {"Sources": {1, 2}}),
        ("[Source 1]", {"Sources": {1}}),
        ("[Reports 3; Sources 4 and 5]", {"Reports": {3}, "Sources": {4, 5}}),
        ("[Data: Sources (1 and 2)]", {"Sources": {1, 2}}),
        ("[Data: Text Units (7); Community Reports (3)]", {"Sources": {7}, "Reports": {3}}),
        ("[Data: Covariates (4); Communities (3)]", {"Claims": {4}, "Reports": {3}}),
        # Ranges, and what is none.
        ("[Data: Sources (3-5, 9)]", {"Sources": {3, 4, 5, 9}}),
        ("[Data: Sources (3–900000)]", {"Sources": {3, 900000}}),
        ("[Data: Sources (-1)]", {"Sources": {-1}}),
        ("[Data: Sources (3f2a)]", {}),
        # Other languages and their brackets.
        ("【Data: Sources (1)】", {"Sources": {1}}),
        ("［数据：来源（1、2）；报告（3）］", {"Sources": {1, 2}, "Reports": {3}}),
        ("[Daten: Quellen (1); Berichte (2)]", {"Sources": {1}, "Reports": {2}}),
        # What no section is called stays no section.
        ("[Data: Documents (1)]", {"documents": {1}}),
        ("[Data: nothing]", {}),
        ("[Source 1 of the Nile]", {}),
        ("[Reporters (3) came]", {}),
    ],
)  # fmt: skip
def test_citations_are_read_in_every_form_that_models_write(
    citation: str, rows: dict[str, set[int]]
) -> None:
    assert cited(f"So it is {citation}.") == rows


def test_what_was_not_shown_is_removed_and_counted() -> None:
    text = (
        "A [Data: Sources (1, 2, +more); Claims (3)]. B [Data: Documents (1)]. C [Sources: 1, 9]."
    )
    checked, n_removed = check_citations(text, {"Sources": {1}})
    assert checked == "A [Data: Sources (1, +more)]. B. C [Data: Sources (1)]."
    assert n_removed == 4


def test_citations_are_found_where_they_stand() -> None:
    text = "A 【Sources (1)】 and [2]."
    assert list(find_citations(text)) == [(1, text.index(" and"), [("Sources", 1)])]
