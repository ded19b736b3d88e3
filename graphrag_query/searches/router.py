"""Choose the search for a question: by a model, or by characteristic words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.text.normalize import fold, is_unspaced
from graphrag_query.answering.llm import LLM
from graphrag_query.question.question import Question

# The searches to choose from and their purposes, as a model is told them.
PURPOSES: Mapping[str, str] = {
    "global": "the whole collection: its themes, a summary, what is true across many documents",
    "local": "a certain person, place, thing, event or fact",
    "path": "how two or more named things are connected",
    "basic": "the wording or the place of a passage",
    "neighbourhood": "all that is linked with one named thing, as a list or a graph",
}
# Characteristic words by the kind of answer that a question wants. A star stands for any ending or
# beginning, an underscore for up to six words. Accents are ignored.
_CUES: Mapping[str, str] = {
    # About the corpus as a whole.
    "whole": """
        theme* | topic* | corpus | data set* | dataset* | trend* | pattern* | overall |
        as a whole |
        all _ documents | all _ texts | across | taken together | altogether |
        in general | these documents | these texts | the documents | the texts | the sources |
        the reports | whole collection | this collection | everything about the |
        in common across | lessons | over time | key differences |
        thema | themen | *themen | trends | sammlung | korpus | insgesamt | worum geht |
        worum es geht |
        alle _ dokumente | alle _ texte | allen texten | allen dokumenten | die dokumente |
        die texte | diese texte | diesen texten | im allgemeinen | uberblick uber alle |
        muster |
        temat* | korpus* | zbior* | ogolnie | ogolem | o czym sa | wszystkie dokumenty |
        wszystkich dokument* | te teksty | te dokumenty | zagadnie* | trendy |
        wszystkie teksty |
        theme principa* | themes | sujets | corpus | ensemble des | vue d ensemble |
        de quoi parlent |
        de quoi traitent | ces documents | ces textes | les documents | tendances |
        globalement |
        dans l ensemble | tous les _ documents |
        temas | corpus | en conjunto | de que tratan | de que hablan | estos textos |
        estos documentos | los documentos | tendencias | en general | coleccion |
        vision general |
        todos los _ documentos |
        temi | argomenti | questi documenti | i documenti | dei documenti | tendenze |
        nel complesso |
        assuntos | visao geral | estes documentos | os documentos | no geral |
        onderwerpen | thema s | deze documenten | alle documenten | overzicht |
        темы | тема* | тренд* | документ* | эти тексты | в целом | корпус* |
        主题 | 话题 | 总体 | 整体 | 整个 | 所有文 | 全部文 | 这些文 | 语料 | 趋势 | 全文 | 数据集 |
        テーマ | 話題 | 全体 | これらの文書 | この文書 | 傾向 | コーパス
    """,
    # Much in few words: of the corpus, unless the question names something.
    "summary": """
        summar* | overview | sum up | main | most important | most common* | most frequent* |
        most often | key | major | biggest | central | common |
        differ* | compare | attitude* | lesson* | kinds of | types of | what kind* |
        zusammenfass* | fass* _ zusammen | uberblick | wichtigst* | haufigst* | grosst* |
        haupt* |
        unterschied* | vergleich* | arten von |
        stresc* | streszcz* | podsum* | przeglad | glown* | najwazniejsz* | najczestsz* |
        roznic* |
        porown* | rodzaje |
        resum* | synthese | apercu | principa* | plus import* | difference* | compar* |
        types de |
        panorama | mas important* | diferencia* | tipos de |
        riassum* | sintesi | panoramica | differenz* | più importanti | diferenca* |
        samenvat* | belangrijkst* | verschil* |
        обобщ* | обзор* | резюм* | главн* | основн* | кратк* | сравн* |
        总结 | 概述 | 概括 | 概要 | 摘要 | 综述 | 主要 | 讲了什么 | 说了什么 | 比较 | 哪些 |
        要約 | 概要 | まとめ | 主な | 比較
    """,
    # How one thing is connected with another.
    "connection": """
        connect* | connection* | link* | relat* | relationship* | tied to | tied with | ties |
        path |
        in common | lead* to | led to | through whom | via whom | to do with |
        verbindung* | verbind* | verbunden* | verband* | zusammenhang* | zusammenhang |
        beziehung* |
        hang* _ zusammen | gemeinsam* | miteinander | weg von | verwandt* |
        zwiazek | zwiazk* | zwiazan* | powiaza* | lacz* | polacz* | relacj* | wspoln* |
        lien | liens | lie a | liee a | lies a | liees a | lies entre | est il lie |
        relation* | relie | relies | reliee | reliees | relient | connexion* | rapport* |
        en commun |
        chemin entre |
        relacion* | conexion* | conecta* | vincul* | enlace* | en comun | que une | que unen |
        camino entre |
        legame | legami | collega* | relazion* | connession* | in comune |
        ligacao | ligad* | relacao | em comum |
        verband | relatie* | verbonden |
        связ* | отношен* | общего |
        关系 | 联系 | 关联 | 连接 | 相关 | 有关 | 共同点 | 路径 |
        関係 | つなが | 関連 | 共通
    """,
    # The words of a document, or their place.
    "passage": """
        passage* | paragraph* | the sentence* | a sentence | excerpt* | verbatim | wording |
        quote* |
        quotation* | where _ does it say | where _ does it stand | where in the |
        exactly is written |
        exactly is said | exact words | text about | text on | which document* | which text* |
        which file* | which page* | search for | find " | find “ |
        absatz | absatze* | textstelle* | die stelle | stellen uber | zitat* | zitier* |
        wortlaut |
        wortlich* | welchem dokument | welchem text | wo steht |
        fragmen* | akapit* | cytat* | cytuj* | zacytuj* | doslown* | zdanie |
        w ktorym dokumencie |
        gdzie jest napisane |
        paragraphe* | extrait* | cite | cites | citation* | citer | mot pour mot | la phrase |
        quel document |
        ou est il ecrit |
        pasaje* | parrafo* | fragmento* | cita | citas | citar | textual* | la frase |
        que documento |
        donde dice |
        passaggio | paragrafo | brano | citazione | trecho | citacao | alinea | zin over |
        citaat |
        отрывок | абзац* | цитат* | процитир* | дословн* | где написано |
        哪一段 | 段落 | 原文 | 引用 | 原话 | 哪篇 | 哪个文件 | 哪份 | 出处 | 一字不差 |
        引用 | 段落 | 箇所 | 原文
    """,
    # The surroundings of one thing.
    "surroundings": """
        neighbo* | surround* | graph | subgraph | sub graph | ego network | network around |
        network of |
        nachbar* | umgebung | umfeld | graph* um |
        sasiedztw* | otoczeni* | sasiad* |
        voisin* | entourage | alentours |
        vecin* | entorno | alrededor* |
        vicinat* | vizinhan* | omgeving | buren |
        окружени* | сосед* | окрестност* |
        邻居 | 邻域 | 周围 | 所有关系 | 全部关系 |
        相关的实体 | 有关的实体 | 图谱 | 子图 | 近傍 | 周辺
    """,
    # Everything that matches, or who it is.
    "listing": """
        ^who | ^what | ^which | list | show | all | everything | everyone | anything | name |
        mit wem | womit | liste | zeig* | alle | wer ist | was ist | welche |
        z kim | z czym | pokaz | wymien | wszystk* | kto |
        avec qui | avec quoi | liste* | montre* | tous | toutes | quels sont | quelles sont |
        con quien* | con que | lista | muestra* | todos | todas | quienes | cuales |
        con chi | mostra | elenca | tutti | tutte | com quem | met wie | toon |
        с кем | с чем | покажи | все | перечисли |
        列出 | 显示 | 所有 | 哪些 | 谁 | 一覧 | すべて | 誰
    """,
}
# Two things side by side, where neither spaces nor capitals mark names.
_PAIR = re.compile(r".{2,}[和与與跟及同と、].{2,}")


@dataclass(frozen=True)
class Choice:
    """The search for a question, by the name of its method, and the reason in a few words.

    `is_without_model` is set if a model was asked and did not answer.
    """

    method: str
    why: str
    notes: tuple[str, ...] = ()
    is_without_model: bool = False


def choose(question: Question) -> Choice:
    """Choose the search for a question: by a model, or by rules without one or if it fails.

    A search that cannot answer from this index is replaced by the next best.
    """
    text, unknown = question.text, question.mentions.unknown
    n_known = len(question.mentions.likeliest)
    n_names = n_known + len(unknown)
    choice = choose_by_model(question.llm, text) if question.llm is not None else None
    if choice is None or choice.method not in PURPOSES:
        by_rules = choose_by_rules(text, n_names)
        choice = replace(choice or by_rules, method=by_rules.method, why=by_rules.why)
    needed = {"path": 2, "neighbourhood": 1}.get(choice.method, 0)
    # Of an unknown name the search itself tells.
    if n_known < needed and (not unknown or n_names < needed):
        why = f"{choice.why}, but the index knows too few of its names for {choice.method} search"
        return replace(choice, method="local", why=why)
    if choice.method == "global" and not question.index.has("community_reports"):
        return replace(choice, method="lazy", why=f"{choice.why}, and the index has no reports")
    return choice


def choose_by_rules(question: str, n_names: int) -> Choice:
    """Choose by the words of a question and the number of names in it."""
    cues = cues_in(question)
    named = ("it names nothing", "it names one thing", "it names several things")[min(n_names, 2)]

    def because(kind: str, meaning: str) -> str:
        return f"{meaning} (“{cues[kind]}”)"

    if "passage" in cues and not ("summary" in cues and "whole" in cues):
        return Choice("basic", because("passage", "it asks for a passage"))
    if "surroundings" in cues and n_names < 2:
        return Choice("neighbourhood", because("surroundings", "it asks what surrounds something"))
    if "connection" in cues and (n_names > 1 or (not n_names and names_a_pair(question))):
        why = because("connection", f"it asks how things are connected, and {named}")
        return Choice("path", why)
    is_one = n_names == 1 or (not n_names and hides_names(question))
    if is_one and "connection" in cues and "listing" in cues and "whole" not in cues:
        why = because("connection", "it asks what is connected with one thing")
        return Choice("neighbourhood", why)
    if "whole" in cues and n_names < 2:
        return Choice("global", because("whole", "it asks about the whole corpus"))
    if "summary" in cues and not n_names:
        return Choice("global", because("summary", f"it asks for much at once, and {named}"))
    return Choice("local", f"{named}, and it does not ask about the whole corpus")


def choose_by_model(llm: LLM, question: str) -> Choice:
    """Let a model choose; a choice without a method has a note on its failure."""
    searches = "\n".join(f"- {name}: {purpose}" for name, purpose in PURPOSES.items())
    messages = llm.messages("choose_search", question, searches=searches)
    try:
        [outcome] = llm.replies([Request("choose a search", messages, FORMAT)], rating=True)
    except ModelError as error:
        note = f"The search was chosen by rules, since no model did: {error}"
        return Choice("", "", (note,), is_without_model=True)
    if outcome.failure:
        note = f"The search was chosen by rules, since no model did: {outcome.failure}."
        return Choice("", "", (note,))
    choice: Choice = outcome.values[0]
    return choice


def read_choice(reply: Any) -> ParsedReply:
    """Parse the search from a reply; a name in a longer text is enough."""
    while isinstance(reply, list) and reply:
        reply = reply[0]
    fields = reply if isinstance(reply, Mapping) else {"search": reply}
    said = str(fields.get("search") or fields.get("method") or "").lower()
    found = [name for name in PURPOSES if name in said.replace("neighborhood", "neighbourhood")]
    if len(found) != 1:
        raise ReplyError(f"it names no search: {said[:40]!r}")
    why = " ".join(str(fields.get("why") or "a model chose it").split())
    return ParsedReply(Choice(found[0], why[:200].rstrip(".")))


FORMAT = ReplyFormat(
    "search",
    {
        "type": "object",
        "properties": {
            "why": {"type": "string"},
            "search": {"type": "string", "enum": list(PURPOSES)},
        },
        "required": ["why", "search"],
        "additionalProperties": False,
    },
    read_choice,
    'a JSON object like {"why": "it asks who somebody was", "search": "local"}',
)


def _plain(text: str) -> str:
    """Fold each word of a text; other characters stay."""
    return re.sub(r"(?:[^\W_]|[\u0300-\u036f])+", lambda word: fold(word.group()), text)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {kind: _compiled(phrases) for kind, phrases in _CUES.items()}


def _compiled(phrases: str) -> re.Pattern[str]:
    parts = []
    for phrase in (part.strip() for part in phrases.split("|")):
        start = "^" if phrase.startswith("^") else ""
        plain = _plain(phrase.removeprefix("^"))
        pattern = (
            re.escape(plain)
            .replace(r"\ _\ ", r"\s(?:\w+\s){0,6}?")
            .replace("_", r"(?:\w+\s){0,6}?")
        )
        pattern = pattern.replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
        bound = "" if is_unspaced(phrase) else r"\b"
        end = "" if plain.endswith(("*", '"', "“")) or not bound else r"\b"
        parts.append(f"{start}{bound}{pattern}{end}")
    return re.compile("|".join(parts))


def cues_in(question: str) -> dict[str, str]:
    """Return the first words of a question that show each kind of answer, by kind."""
    plain = " ".join(re.sub(r"['’¿¡?!.,;:-]", " ", _plain(question)).split())
    found = {}
    for kind, pattern in _patterns().items():
        match = pattern.search(plain)
        if match:
            found[kind] = match.group().strip()
    return found


def hides_names(question: str) -> bool:
    """Tell whether a question is in a script that has neither capitals nor spaces."""
    return is_unspaced(question)


def names_a_pair(question: str) -> bool:
    """Tell whether two things stand side by side in a script that does not mark names."""
    return hides_names(question) and bool(_PAIR.search(question))
