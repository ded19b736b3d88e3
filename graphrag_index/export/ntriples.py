"""N-Triples (RDF 1.1): a resource for each row, and triples for its columns and links.

A row is `<urn:graphrag-index:CLASS/ID>` of the class `<urn:graphrag-index:schema#CLASS>`:
Entity, Document, TextUnit, Community or Relationship. A column is the property `schema#COLUMN`;
the title is `rdfs:label`, and the description `rdfs:comment`. A link is a property too. A
relationship is a resource with `schema#source` and `schema#target`, and also the triple `source
schema#related target`. A file begins with the domain and range of the links, and says that
`schema#related` is symmetric.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.graph_databases import Links, property_graph
from graphrag_index.export.text_rows import TextFile, quoted

BASE = "urn:graphrag-index:"
SCHEMA = f"{BASE}schema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_PREDICATES = {
    "title": f"{RDFS}label",
    "description": f"{RDFS}comment",
    "aliases": f"{SCHEMA}alias",
    "text_unit_ids": f"{SCHEMA}foundIn",
}
_LINKS = {
    "RELATED": "related",
    "PART_OF": "partOf",
    "MENTIONS": "mentions",
    "IN_COMMUNITY": "inCommunity",
    "PARENT": "parent",
}
_TYPES: dict[pl.DataType, str] = {
    pl.Int64(): "integer",
    pl.Float64(): "double",
    pl.Boolean(): "boolean",
}
# Characters that an IRI cannot hold, or that would divide an id.
_ENCODED = {chr(code): f"%{code:02X}" for code in (*range(0x21), *map(ord, '<>"{}|^`\\%/#?[]'))}


def write_ntriples(graph: Graph, path: Path) -> list[str]:
    """Write the triples of the whole index."""
    nodes, links = property_graph(graph)
    with TextFile(path) as file:
        file.write("".join(_vocabulary(links)))
        for part in nodes:
            triples = _row_triples(part.label, part.schema, ["id"])
            for batch in part.batches():
                file.write_column(batch.select(pl.concat_str(triples)).to_series())
        for link in links:
            source = _resource(link.source, pl.col("source"))
            target = _resource(link.target, pl.col("target"))
            triples = [_triple(source, f"{SCHEMA}{_LINKS[link.type]}", target)]
            if "id" in link.schema:
                subject = _resource("Relationship", pl.col("id"))
                triples += [
                    *_row_triples("Relationship", link.schema, ["id", "source", "target"]),
                    _triple(subject, f"{SCHEMA}source", source),
                    _triple(subject, f"{SCHEMA}target", target),
                ]
            for batch in link.batches():
                file.write_column(batch.select(pl.concat_str(triples)).to_series())
    return []


def _vocabulary(links: Sequence[Links]) -> Iterator[str]:
    yield f"<{SCHEMA}related> <{RDF}type> <{_OWL}SymmetricProperty> .\n"
    for link in links:
        name = _LINKS[link.type]
        yield f"<{SCHEMA}{name}> <{RDFS}domain> <{SCHEMA}{link.source}> .\n"
        yield f"<{SCHEMA}{name}> <{RDFS}range> <{SCHEMA}{link.target}> .\n"


def _resource(label: str, ids: pl.Expr) -> pl.Expr:
    encoded = ids.str.replace_many(list(_ENCODED), list(_ENCODED.values()))
    return pl.concat_str(pl.lit(f"<{BASE}{label}/"), encoded, pl.lit(">"))


def _row_triples(label: str, schema: pl.Schema, without: Collection[str]) -> list[pl.Expr]:
    """Return the triples of a row's columns that are not null."""
    subject = _resource(label, pl.col("id"))
    triples = [_triple(subject, f"{RDF}type", pl.lit(f"<{SCHEMA}{label}>"))]
    for name, dtype in schema.items():
        if name in without:
            continue
        predicate = _PREDICATES.get(name, f"{SCHEMA}{name}")
        if isinstance(dtype, pl.List):
            triples.append(_list_triples(subject, predicate, name))
        elif dtype == pl.String:
            triples.append(_triple(subject, predicate, quoted(name)))
        else:
            typed = pl.lit(f'"^^<{XSD}{_TYPES[dtype]}>')
            value = pl.concat_str(pl.lit('"'), pl.col(name).cast(pl.String), typed)
            triples.append(_triple(subject, predicate, value))
    return triples


def _triple(subject: pl.Expr, predicate: str, value: pl.Expr) -> pl.Expr:
    return pl.concat_str(subject, pl.lit(f" <{predicate}> "), value, pl.lit(" .\n")).fill_null("")


def _list_triples(subject: pl.Expr, predicate: str, name: str) -> pl.Expr:
    item = pl.element()
    values = quoted(item) if name == "aliases" else _resource("TextUnit", item)
    start = pl.concat_str(subject, pl.lit(f" <{predicate}> "))
    between = pl.concat_str(pl.lit(" .\n"), start)
    joined = pl.concat_str(start, pl.col(name).list.eval(values).list.join(between), pl.lit(" .\n"))
    return pl.when(pl.col(name).list.len() > 0).then(joined).otherwise(pl.lit(""))
