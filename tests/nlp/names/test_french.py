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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Elle a porté plainte à l'hôpital contre Paul Martin hier.", {"Paul Martin"}),
        ("Il y a un hôpital entre Lyon et Grenoble en hiver.", {"Lyon", "Grenoble"}),
        ("Nous avons visité un musée proche de Rouen hier.", {"Rouen"}),
        ("Le col de Sylvie est blanc, et sa robe est noire.", {"Sylvie"}),
        ("Elle a relu la convention de Marie Leroy hier soir.", {"Marie Leroy"}),
        ("Nous attendons l'accord de Paul pour partir demain.", {"Paul"}),
        ("Les accords du PS avec les autres partis sont connus.", {"PS"}),
        ("Le ministère de Bruno Lavigne a refusé de répondre.", {"Bruno Lavigne"}),
        ("Le château de Paul Lavigne est vieux et froid.", {"Paul Lavigne"}),
        ("À l'université Marie a rencontré un ami hier.", {"Marie"}),
        ("Ils sont à la pointe de la Bretagne depuis mai.", {"Bretagne"}),
    ],
)
def test_common_nouns_before_persons_and_places_are_no_part_of_the_name(
    text: str, names: set[str]
) -> None:
    types = extract(text).types
    assert {title for title, kind in types.items() if kind != "noun phrase"} == names


@pytest.mark.parametrize(
    "name",
    [
        "accord de Schengen",
        "académie d'Aix-Marseille",
        "col du Galibier",
        "convention de Genève",
        "hôpital militaire de Lyon",
        "ministère de la Justice",
        "musée des beaux-arts de Lyon",
        "musée national de Varsovie",
        "tribunal de commerce de Nanterre",
        "université Paul Sabatier",
        "université de Nancy",
    ],
)
def test_heads_in_lower_case_begin_names_of_institutions_and_treaties(name: str) -> None:
    assert name in extract(f"Nous parlons ici de notre {name} depuis hier.").titles


def test_a_firm_with_relatives_is_an_organization() -> None:
    french = "La boutique Emma Leroy et fils vend des chaussures depuis mai."
    spanish = "La tienda Ana Gil e hijos vende zapatos desde el mes de mayo."
    assert extract(french).types["Emma Leroy et fils"] == "organization"
    assert extract(spanish).types["Ana Gil e hijos"] == "organization"
