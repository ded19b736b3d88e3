/** The graph in the middle of the page; two versions of it side by side if they are compared. */

import { useMemo } from "preact/hooks";
import { filterQuery } from "../api";
import type { Changes } from "../graph/appearance";
import { GraphView } from "../graph/GraphView";
import { LinkedViews } from "../graph/LinkedViews";
import { type Comparison, useChanges, useComparison } from "../parts/useComparison";
import { useData } from "../parts/useData";
import { useLoaded } from "../parts/useLoaded";
import { type Address, hasFilters, type Highlight, isEmptyHighlight, NO_HIGHLIGHT, type Selection, useAddress, useHighlight } from "../state";
import { texts } from "../texts";

// Entities that are lit because the filters keep them.
const MAX_FILTERED = 200;

export function GraphPane() {
  const { address } = useAddress();
  const { summary } = useData();
  const comparison = useComparison();
  const changes = useChanges();
  const links = LinkedViews.of(address.index);
  const shown = address.version ?? summary.version;
  const versions = comparison ? [comparison.from, comparison.to] : [shown];
  // What came is more than what went.
  const leading = comparison && (changes?.after.entities.size ? comparison.to : comparison.from);
  return (
    <section class="graph-pane" aria-label={texts.parts.graph}>
      <GraphTools />
      <div class="graph-panes" data-compared={Boolean(comparison)}>
        {versions.map((version) => (
          <VersionGraph key={version} version={version} links={links} comparison={comparison} showsChanges={version === leading}
            changes={comparison && changes && (version === comparison.from ? changes.before : changes.after)} />
        ))}
      </div>
    </section>
  );
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
  const highlight = useShownHighlight();
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
        selection={isShown ? address.selection : null} highlight={isShown ? highlight : NO_HIGHLIGHT}
        only={isShown ? address.only : null} around={isShown && !comparison ? address.around : null}
        path={isShown && !comparison ? address.path : null} filters={address.filters}
        changes={changes} showsChanges={showsChanges} colouredByType={address.colourBy === "type"}
        hrefOf={(selection) => href(change(selection))} onSelect={(selection) => go(change(selection))}
        onLeave={() => go({ around: null, path: null }, true)} />
    </section>
  );
}

function GraphTools() {
  const { address, go, href } = useAddress();
  const { kept, end } = useHighlight();
  const { mode, only, path, around, colourBy } = address;
  const comparison = useComparison();
  return (
    <div class="graph-tools">
      <div class="switch" role="group" aria-label={texts.graph.mode}>
        {(["graph", "table"] as const).map((name) => (
          <button key={name} type="button" aria-pressed={mode === name} onClick={() => go({ mode: name }, true)}>
            {texts.graph[name]}
          </button>
        ))}
      </div>
      {!comparison && !around && !path && (
        <div class="switch" role="group" aria-label={texts.graph.colourBy}>
          <span class="switch-name" aria-hidden="true">{texts.graph.colourBy}</span>
          {(["community", "type"] as const).map((name) => (
            <button key={name} type="button" aria-pressed={colourBy === name} onClick={() => go({ colourBy: name }, true)}>
              {texts.graph.colours[name]}
            </button>
          ))}
        </div>
      )}
      {only !== null && (
        <a class="chip removable" href={href({ only: null })}>
          {texts.graph.only(only)}<Remove />
        </a>
      )}
      {comparison && (
        <a class="chip removable" href={href({ compare: null })}>
          {texts.versions.compared(comparison.from, comparison.to)}<Remove />
        </a>
      )}
      {!path && !around && !isEmptyHighlight(kept) && (
        <button type="button" class="chip removable" onClick={() => end("kept")}>
          {texts.graph.evidence}<Remove />
        </button>
      )}
    </div>
  );
}

function Remove() {
  return <><span aria-hidden="true"> ×</span><span class="unseen">{texts.filters.remove}</span></>;
}

/**
 * Return what the graph lights: what is pointed at, or else the selection by itself, or else the
 * evidence of the newest answer, or else the entities that the filters keep.
 */
function useShownHighlight(): Highlight {
  const { address } = useAddress();
  const { pointed, kept } = useHighlight();
  const filtered = useFiltered();
  if (pointed) return pointed;
  const { selection, path, around } = address;
  const isInGraph = selection && selection.kind !== "text_unit" && selection.kind !== "document";
  if (isInGraph || path || around) return NO_HIGHLIGHT;
  return isEmptyHighlight(kept) ? filtered : kept;
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
