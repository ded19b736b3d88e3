/** The graph in the middle of the page; two versions of it side by side if they are compared. */

import { useMemo } from "preact/hooks";
import { filterQuery } from "../api";
import { Console } from "../console/Console";
import { DocumentsView } from "../find/DocumentsView";
import type { Changes } from "../graph/appearance";
import { GraphView } from "../graph/GraphView";
import { LinkedViews } from "../graph/LinkedViews";
import { Remove } from "../parts/Link";
import { Switch } from "../parts/Switch";
import { type Comparison, useChanges, useComparison } from "../parts/useComparison";
import { type OpenIndex, useData, useLoaded } from "../parts/useData";
import {
  type Address, hasFilters, type Highlight, isEmptyHighlight, isInGraph, type Mode, MODES, NO_HIGHLIGHT, type Selection,
  useAddress, useHighlight,
} from "../state";
import { texts } from "../texts";

// Entities that are lit because the filters keep them.
const MAX_FILTERED = 200;

export function GraphPane() {
  const { address } = useAddress();
  const { summary } = useData();
  const comparison = useComparison();
  const changes = useChanges();
  const links = LinkedViews.of(address.index);
  const mode = useMode();
  const shown = address.version ?? summary.version;
  const versions = comparison ? [comparison.from, comparison.to] : [shown];
  // What came is more than what went.
  const leading = comparison && (changes?.after.entities.size ? comparison.to : comparison.from);
  return (
    <section class="graph-pane" aria-label={texts.parts.graph}>
      <GraphTools mode={mode} />
      {mode === "documents" ? <DocumentsView /> : mode === "console" ? <Console /> : (
        <div class="graph-panes" data-compared={Boolean(comparison)}>
          {versions.map((version) => (
            <VersionGraph key={version} version={version} links={links} comparison={comparison} showsChanges={version === leading}
              changes={comparison && changes && (version === comparison.from ? changes.before : changes.after)} />
          ))}
        </div>
      )}
    </section>
  );
}

/** Return what the address chooses to show, or else the graph: without a server, there is no console. */
function useMode(): Mode {
  const { address: { mode } } = useAddress();
  return listModes(useData()).includes(mode) ? mode : "graph";
}

function listModes({ data, summary: { scopes, tables } }: OpenIndex): Mode[] {
  return MODES.filter((mode) => (mode === "documents" ? tables.documents : mode !== "console" || data.query && scopes.includes("ask")));
}

interface VersionGraphProps {
  version: number;
  comparison: Comparison | null;
  changes: Changes | null;
  showsChanges: boolean;
  links: LinkedViews;
}

/** The graph of one version: the shown one, or the one that it is compared with. */
function VersionGraph({ version, comparison, changes, showsChanges, links }: VersionGraphProps) {
  const { address, go, href } = useAddress();
  const { data, summary } = useData();
  const { highlight, evidence } = useShownHighlight();
  const isShown = version === (address.version ?? summary.version);
  const versionData = useMemo(() => (isShown ? data : data.atVersion!(version)), [data, isShown, version]);
  // Rows have other numbers in another version, so only the shown one has what is selected and lit.
  const change = (selection: Selection): Partial<Address> => (isShown ? { selection } : {
    selection, version: version === summary.version ? null : version,
    compare: comparison!.from === version ? comparison!.to : comparison!.from,
  });
  const earlier = comparison?.from === version;
  return (
    <section class="version-graph" aria-label={comparison ? texts.version(version) : undefined}>
      {comparison && <h2>{earlier ? texts.versions.earlier(version) : texts.versions.later(version)}</h2>}
      <GraphView data={versionData} dataKey={`${address.index}@${version}`} mode={address.mode} links={links}
        selection={isShown ? address.selection : null} highlight={isShown ? highlight : NO_HIGHLIGHT} evidence={isShown ? evidence : NO_HIGHLIGHT}
        only={isShown ? address.only : null} around={isShown && !comparison ? address.around : null}
        path={isShown && !comparison ? address.path : null} filters={address.filters}
        changes={changes} showsChanges={showsChanges} colouredByType={address.colourBy === "type"}
        hrefOf={(selection) => href(change(selection))} onSelect={(selection) => go(change(selection))}
        onLeave={() => go({ around: null, path: null }, true)} />
    </section>
  );
}

function GraphTools({ mode }: { mode: Mode }) {
  const { address, go, href } = useAddress();
  const { kept, end } = useHighlight();
  const { only, path, around, colourBy, selection } = address;
  const comparison = useComparison();
  const isGraph = mode === "graph" || mode === "table";
  return (
    <div class="graph-tools">
      <Switch label={texts.graph.mode} names={listModes(useData())} titles={texts.modes} value={mode} onChoose={(name) => go({ mode: name }, true)} />
      {isGraph && !comparison && !around && !path && (
        <Switch label={texts.graph.colourBy} names={["community", "type"]} titles={texts.graph.colours} value={colourBy} isLabelled
          onChoose={(name) => go({ colourBy: name }, true)} />
      )}
      {isGraph && only !== null && (
        <a class="chip removable" href={href({ only: null })}>
          {texts.graph.only(only)}<Remove />
        </a>
      )}
      {isGraph && comparison && (
        <a class="chip removable" href={href({ compare: null })}>
          {texts.versions.compared(comparison.from, comparison.to)}<Remove />
        </a>
      )}
      {isGraph && !path && !around && !isInGraph(selection) && !isEmptyHighlight(kept) && (
        <button type="button" class="chip removable" onClick={() => end("kept")}>
          {texts.graph.evidence}<Remove />
        </button>
      )}
    </div>
  );
}

/**
 * Return what the graph lights: what is pointed at, or else the selection by itself, or else the
 * evidence of the newest answer, or else the entities that the filters keep; and that evidence.
 */
function useShownHighlight(): Record<"highlight" | "evidence", Highlight> {
  const { address } = useAddress();
  const { pointed, kept } = useHighlight();
  const filtered = useFiltered();
  const { selection, path, around } = address;
  const isOther = isInGraph(selection) || path || around;
  const evidence = isOther ? NO_HIGHLIGHT : kept;
  return { highlight: pointed ?? (isOther || !isEmptyHighlight(kept) ? evidence : filtered), evidence };
}

/** Return the main entities that the filters keep; nothing without filters. */
function useFiltered(): Highlight {
  const { data } = useData();
  const { filters } = useAddress().address;
  const loaded = useLoaded(async (signal) => {
    if (!hasFilters(filters)) return NO_HIGHLIGHT;
    const query = { ...filterQuery(filters), limit: MAX_FILTERED };
    const { items, total } = await data.page("entities", query, signal);
    const filtered = total && total > items.length ? texts.graph.filtered(items.length, total) : "";
    return { ...NO_HIGHLIGHT, entities: items.map((entity) => entity.number), filtered };
  }, [filters]);
  return loaded.value ?? NO_HIGHLIGHT;
}
