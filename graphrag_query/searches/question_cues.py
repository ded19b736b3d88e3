"""Words by which a question shows what kind of answer it wants, in several languages."""

import re
from collections.abc import Mapping

from graphrag_query.question.written_names import folded

# A star stands for any ending or beginning, an underline for up to six words. Accents do not count.
_CUES: Mapping[str, str] = {
    # Speaks of the corpus itself, or of what only all of it can show.
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
    # Wants much in few words: of the corpus, unless it names something.
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
    # Asks how one thing is connected with another.
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
    # Wants the words of a document, or their place.
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
    # Wants what surrounds one thing.
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
    # Asks for all that fits, or for who it is.
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
# Two things side by side, of which a script without spaces and capitals does not show names.
_PAIR = re.compile(r".{2,}[和与與跟及同と、].{2,}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def _compiled(phrases: str) -> re.Pattern[str]:
    parts = []
    for phrase in (part.strip() for part in phrases.split("|")):
        start = "^" if phrase.startswith("^") else ""
        plain = folded(phrase.removeprefix("^").lower())
        pattern = (
            re.escape(plain)
            .replace(r"\ _\ ", r"\s(?:\w+\s){0,6}?")
            .replace("_", r"(?:\w+\s){0,6}?")
        )
        pattern = pattern.replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
        bound = "" if _UNSPACED.search(phrase) else r"\b"
        end = "" if plain.endswith(("*", '"', "“")) or not bound else r"\b"
        parts.append(f"{start}{bound}{pattern}{end}")
    return re.compile("|".join(parts))


_PATTERNS = {kind: _compiled(phrases) for kind, phrases in _CUES.items()}


def cues_in(question: str) -> dict[str, str]:
    """Return by kind the first words of a question that show it: whole, summary, connection,
    passage, surroundings, listing.
    """
    plain = re.sub(r"['’-]", " ", folded(question.lower()))
    plain = " ".join(re.sub(r"[¿¡?!.,;:]", " ", plain).split())
    found = {}
    for kind, pattern in _PATTERNS.items():
        match = pattern.search(plain)
        if match:
            found[kind] = match.group().strip()
    return found


def hides_names(question: str) -> bool:
    """Tell whether a question is in a script that has neither capitals nor spaces."""
    return bool(_UNSPACED.search(question))


def names_a_pair(question: str) -> bool:
    """Tell whether two things stand side by side in a script that does not mark names."""
    return hides_names(question) and bool(_PAIR.search(question))
