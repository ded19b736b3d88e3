/** All that the drawing shows as tables: communities, entities and relationships. */

import { type Column, SortedTable } from "../parts/SortedTable";
import type { Selection } from "../state";
import { texts } from "../texts";
import { type Change, type Changes, type Emphasis, isLitArea } from "./appearance";
import type { DrawnCommunity, DrawnEntity, DrawnGraph } from "./drawn";
import type { Part } from "./scene";

interface DrawnTableProps {
  drawn: DrawnGraph;
  emphasis: Emphasis;
  changes: Changes | null;
  /** The opened communities around the middle of the view, the outermost first. */
  around: readonly { title: string; disc: Part }[];
  hrefOf: (selection: Selection) => string;
  /** Move the view to a disc, which opens the community of it. */
  onMove: (disc: Part) => void;
}

export function DrawnTable({ drawn, emphasis, changes, around, hrefOf, onMove }: DrawnTableProps) {
  return (
    <div class="drawn panel-body">
      <div class="around" role="group" aria-label={texts.drawn.around}>
        {around.map(({ title, disc }, at) => (
          <button key={title} type="button" class="plain" dir="auto" onClick={() => onMove(disc)}
            aria-current={at === around.length - 1 ? "location" : undefined}>{title}</button>
        ))}
      </div>
      <Communities {...{ drawn, emphasis, changes, hrefOf, onMove }} />
      <Entities {...{ drawn, emphasis, changes, hrefOf }} />
      <Relationships {...{ drawn, emphasis, changes, hrefOf }} />
    </div>
  );
}

type PartProps = Pick<DrawnTableProps, "drawn" | "emphasis" | "changes" | "hrefOf">;

function changeColumn<Row>(changes: ReadonlyMap<number, Change> | undefined, numberOf: (row: Row) => number): Column<Row>[] {
  const name = (row: Row) => {
    const change = changes!.get(numberOf(row));
    return change ? texts.versions.kinds[change] : "";
  };
  return changes ? [{ title: texts.drawn.change, value: name }] : [];
}

function Communities({ drawn, emphasis, changes, hrefOf, onMove }: PartProps & Pick<DrawnTableProps, "onMove">) {
  const { communities, selected } = emphasis;
  const isLit = (area: DrawnCommunity) => (area.isOpen ? communities.has(area.community) : isLitArea(area, emphasis));
  const numberOf = ({ community }: DrawnCommunity) => community;
  const columns: Column<DrawnCommunity>[] = [
    {
      title: texts.columns.title!, value: ({ title }) => title,
      cell: ({ community, title }) => <a href={hrefOf({ kind: "community", number: community })}>{title}</a>,
    },
    { title: texts.tables.entities, value: ({ size }) => size, cell: ({ size }) => texts.number(size) },
    {
      title: texts.drawn.state, value: ({ isOpen }) => (isOpen ? texts.drawn.opened : texts.drawn.closed),
      cell: (area) => (
        <>
          {area.isOpen ? texts.drawn.opened : texts.drawn.closed}{" "}
          <button type="button" class="plain" onClick={() => onMove(area)}
            aria-label={area.isOpen ? texts.drawn.fill(area.title) : texts.drawn.open(area.title)}>
            {area.isOpen ? texts.graph.zoomIn : texts.drawn.openShort}
          </button>
        </>
      ),
    },
    ...changeColumn(changes?.communities, numberOf),
  ];
  return (
    <SortedTable caption={texts.tables.communities} rows={drawn.communities} columns={columns} sortedBy={1} keyOf={numberOf}
      isLit={(area) => isLit(area) || (selected?.kind === "community" && selected.number === area.community)} />
  );
}

function Entities({ drawn, emphasis, changes, hrefOf }: PartProps) {
  const numberOf = ({ number }: DrawnEntity) => number;
  const columns: Column<DrawnEntity>[] = [
    {
      title: texts.columns.title!, value: ({ title }) => title,
      cell: ({ number, title }) => <a href={hrefOf({ kind: "entity", number })}>{title}</a>,
    },
    { title: texts.columns.type!, value: ({ type }) => type },
    {
      title: texts.tables.relationships, value: ({ relationships }) => relationships ?? -1,
      cell: ({ relationships }) => (relationships === null ? "" : texts.number(relationships)),
    },
    { title: texts.kinds.community, value: ({ community_title }) => community_title },
    ...changeColumn(changes?.entities, numberOf),
  ];
  return (
    <SortedTable caption={texts.tables.entities} rows={drawn.entities} columns={columns} sortedBy={2} keyOf={numberOf}
      isLit={({ number, type }) => emphasis.entities.has(number) || Boolean(emphasis.types?.has(type))} />
  );
}

/** A line of the drawing: a relationship, or all those between two closed communities. */
interface Line {
  key: string; number: number; kind: "entity" | "community";
  source: number; target: number; source_title: string; target_title: string; weight: number; how: string;
}

function Relationships({ drawn, emphasis, changes, hrefOf }: PartProps) {
  const lines: Line[] = [
    ...drawn.links.map(({ source, target, weight }): Line => ({
      key: `${source.community}-${target.community}`, number: -1, kind: "community", weight, how: texts.drawn.summed,
      source: source.community, target: target.community, source_title: source.title, target_title: target.title,
    })),
    ...drawn.relationships.map(({ stated, ...row }): Line => ({
      ...row, key: String(row.number), kind: "entity", how: stated ? texts.statedByText : texts.countedTogether,
    })),
  ];
  const end = (name: "source" | "target"): Column<Line> => ({
    title: texts.drawn[name], value: (line) => line[`${name}_title`],
    cell: (line) => <a href={hrefOf({ kind: line.kind, number: line[name] })}>{line[`${name}_title`]}</a>,
  });
  const columns: Column<Line>[] = [
    end("source"), end("target"),
    { title: texts.drawn.weight, value: ({ weight }) => weight },
    {
      title: texts.drawn.how, value: ({ how }) => how,
      cell: ({ number, how, source_title, target_title }) => (number < 0 ? how : (
        <a href={hrefOf({ kind: "relationship", number })} aria-label={`${how}: ${texts.ends(source_title, target_title)}`}>{how}</a>
      )),
    },
    ...changeColumn<Line>(changes?.relationships, ({ number }) => number),
  ];
  return (
    <SortedTable caption={texts.tables.relationships} rows={lines} columns={columns} sortedBy={2}
      keyOf={({ key }) => key} isLit={({ number }) => emphasis.relationships.has(number)} />
  );
}
