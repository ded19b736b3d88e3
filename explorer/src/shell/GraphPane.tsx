/** The graph in the middle of the page, and the same things as a table. */

import { useAddress } from "../parts/useAddress";
import { texts } from "../texts";
import { DrawnTable } from "./DrawnTable";

export function GraphPane() {
  const { address, go, href } = useAddress();
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
      <DrawnTable />
    </section>
  );
}
