/** The graph in the middle of the page, and the same things as a table. */

import { useState } from "preact/hooks";
import { GraphView } from "../graph/GraphView";
import { useAddress } from "../parts/useAddress";
import { useData } from "../parts/useData";
import { useHighlight } from "../parts/useHighlight";
import { texts } from "../texts";
import { DrawnTable } from "./DrawnTable";

export function GraphPane() {
  const { address, go, href } = useAddress();
  const { data, summary } = useData();
  const { highlight } = useHighlight();
  const [failure, setFailure] = useState("");
  const { mode, only, path } = address;
  return (
    <section class="graph-pane" aria-label={texts.parts.graph}>
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
            {texts.graph.only(only)}<span aria-hidden="true"> ×</span>
            <span class="unseen">{texts.filters.remove}</span>
          </a>
        )}
        {path && (
          <a class="chip removable" href={href({ path: null })}>
            {texts.path.title}<span aria-hidden="true"> ×</span>
            <span class="unseen">{texts.filters.remove}</span>
          </a>
        )}
      </div>
      {failure && <p class="notice">{failure}</p>}
      {mode === "graph" && !failure ? (
        <GraphView data={data} dataKey={`${address.index}@${address.version ?? summary.version}`}
          selection={address.selection} highlight={highlight} only={only}
          onSelect={(selection) => go({ selection })} onFailure={setFailure} />
      ) : <DrawnTable />}
    </section>
  );
}
