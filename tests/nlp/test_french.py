"""French: names that go on in lower case, elided articles, contracts and manuals."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("L'université de Liège participe au projet.", {"université de Liège"}),
        ("Nous allons souvent sur l'île de Ré en été.", {"île de Ré"}),
        ("Elle travaille à l'hôpital Paul-Brousse depuis mai.", {"hôpital Paul-Brousse"}),
        ("Le préfet des Côtes-d'Armor est venu hier.", {"Côtes-d'Armor"}),
        ("Le loup est revenu au Parc national des Cévennes hier.", {"Parc national des Cévennes"}),
        (
            "La société est ancienne, cette société aide la Société française de phonie.",
            {"Société française de phonie"},
        ),
        ("Elle est née au Centre hospitalier de Lens en mai.", {"Centre hospitalier de Lens"}),
        (
            "Il a saisi la Cour administrative suprême de Bulgarie.",
            {"Cour administrative suprême de Bulgarie"},
        ),
        (
            "Ils viennent du Collège de France et de l'université de Nantes.",
            {"Collège de France", "université de Nantes"},
        ),
        ("Le prestataire, Codalie Grenoble SA, entretient le logiciel.", {"Codalie Grenoble SA"}),
        ("Elle a saisi la SELARL Delvallée et associés hier.", {"SELARL Delvallée et associés"}),
        (
            "Mme Diarra, ci-après la Salariée, est venue. La Salariée est engagée en mai.",
            {"Diarra"},
        ),
        ("Il a écrit au ministre de l'Agriculture et des Forêts à Lens.", {"Lens"}),
        ("Il cite le règlement (UE) 2016/679 et la Norvège.", {"Norvège"}),
        ("Seul un client de la Norvège peut le faire.", {"Norvège"}),
        ("Raccordez Kubora à la borne. Elle aime Kubora.", {"Kubora"}),
        ("Appuyez sur Marche, puis appelez la Norvège.", {"Norvège"}),
        (
            "Elle a écrit à Pôle emploi et à Santé publique France.",
            {"Pôle emploi", "Santé publique France"},
        ),
        ("La Safer Grand Est a refusé la vente.", {"Safer Grand Est"}),
        ("CONTRAT DE LOCATION\nElle habite en Norvège depuis mai.", {"Norvège"}),
        (
            "Hier la SCP Gatineau, Fattaccini et Rebeyrol plaidait.",
            {"SCP Gatineau, Fattaccini et Rebeyrol"},
        ),
        (
            "Elle a aidé l'Agence de l'eau Seine-Normandie en mai.",
            {"Agence de l'eau Seine-Normandie"},
        ),
        (
            "Elle a vu à la Commission européenne Ursula Lindt.",
            {"Commission européenne", "Ursula Lindt"},
        ),
    ],
)
def test_french_names_are_found_whole_and_other_words_are_none(text: str, names: set[str]) -> None:
    types = extract(text).types
    assert {title for title, kind in types.items() if kind != "noun phrase"} == names
