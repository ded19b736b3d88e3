/** The graph in the middle of the page, and the same things as a table. */

import { useState } from "preact/hooks";
import { filterQuery } from "../api";
import { GraphView } from "../graph/GraphView";
import { useAddress } from "../parts/useAddress";
import { useChanges, useComparison } from "../parts/useComparison";
import { useData } from "../parts/useData";
import { type Highlight, NO_HIGHLIGHT, useHighlight } from "../parts/useHighlight";
import { useLoaded } from "../parts/useLoaded";
import { hasFilters } from "../state";
import { texts } from "../texts";
import { DrawnTable } from "./DrawnTable";

// Entities that are lit because the filters keep them.
const MAX_FILTERED = 200;

export function GraphPane() {
  const { address, go } = useAddress();
  const { data, summary } = useData();
  const highlight = useShownHighlight();
  const changes = useChanges();
  const [failure, setFailure] = useState("");
  const { mode, only, version } = address;
  return (
    <section class="graph-pane" aria-label={texts.parts.graph}>
      <GraphTools />
      {failure && <p class="notice">{failure}</p>}
      {mode === "graph" && !failure ? (
        <GraphView data={data} dataKey={`${address.index}@${version ?? summary.version}`}
          selection={address.selection} highlight={highlight} only={only} showsPath={Boolean(address.path)}
          changes={changes}
          onSelect={(selection) => go({ selection })} onFailure={setFailure} />
      ) : <DrawnTable highlight={highlight} />}
    </section>
  );
}

function GraphTools() {
  const { address, go, href } = useAddress();
  const { kept, keep } = useHighlight();
  const { mode, only, path } = address;
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
      {path && <a class="chip removable" href={href({ path: null })}>{texts.path.title}<Remove /></a>}
      {!path && !isEmpty(kept) && (
        <button type="button" class="chip removable" onClick={() => keep(NO_HIGHLIGHT)}>
          {texts.graph.evidence}<Remove />
        </button>
      )}
    </div>
  );
}

function Remove() {
  return <><span aria-hidden="true"> ×</span><span class="unseen">{texts.filters.remove}</span></>;
}

const isEmpty = ({ entities, relationships, communities }: Highlight) =>
  !entities.length && !relationships.length && !communities.length;

/**
 * Return what the graph lights: what is pointed at, or else the selection by itself, or else the
 * evidence of the newest answer, or else the entities that the filters keep.
 */
function useShownHighlight(): Highlight {
  const { address } = useAddress();
  const { pointed, kept } = useHighlight();
  const filtered = useFiltered();
  if (pointed) return pointed;
  const { selection, path } = address;
  const isInGraph = selection && selection.kind !== "text_unit" && selection.kind !== "document";
  if (isInGraph && !path) return NO_HIGHLIGHT;
  return isEmpty(kept) ? filtered : kept;
}

/** Return the main entities that the filters keep; nothing without filters. */
function useFiltered(): Highlight {
  const { data } = useData();
  const { filters } = useAddress().address;
  const loaded = useLoaded(async (signal) => {
    if (!hasFilters(filters)) return NO_HIGHLIGHT;
    const query = { ...filterQuery(filters), limit: MAX_FILTERED };
    const { items } = await data.page("entities", query, signal);
    return { ...NO_HIGHLIGHT, entities: items.map((entity) => entity.number) };
  }, [filters]);
  return loaded.value ?? NO_HIGHLIGHT;
}
