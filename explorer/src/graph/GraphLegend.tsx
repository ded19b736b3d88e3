/** The legend of the graph; pointing at a type lights its entities. */

import type { ComponentChildren } from "preact";
import { texts } from "../texts";
import type { LegendEntry } from "./legend";

interface GraphLegendProps {
  entries: readonly LegendEntry[];
  /** Whether the entries are types; there may be none in sight. */
  byType: boolean;
  /** The types that stay lit; null: none. */
  litTypes: ReadonlySet<string> | null;
  /** Light types while they are pointed at, or for good; null ends it. */
  onPoint: (types: ReadonlySet<string> | null) => void;
  onKeep: (types: ReadonlySet<string> | null) => void;
  /** Stands in the place of the types. */
  children?: ComponentChildren;
}

export function GraphLegend({ entries, byType, litTypes, onPoint, onKeep, children }: GraphLegendProps) {
  return (
    <div class="graph-legend">
      {children || (byType || !entries.length) && (
        <div class="type-legend" role="group" aria-label={texts.graph.lightType}>
          {byType && entries.map(({ colour, text, count, types }) => {
            const isLit = [...litTypes ?? []].join() === [...types ?? []].join();
            return (
              <button key={text} type="button" aria-pressed={isLit}
                onPointerEnter={() => onPoint(types)} onPointerLeave={() => onPoint(null)}
                onFocus={() => onPoint(types)} onBlur={() => onPoint(null)}
                onClick={() => onKeep(isLit ? null : types)}>
                <Dot colour={colour} /><span dir="auto">{text}</span> <span class="count">{texts.number(count ?? 0)}</span>
              </button>
            );
          })}
        </div>
      )}
      {entries.map(({ colour, text, types }) => !types && <span key={text}><Dot colour={colour} />{text}</span>)}
      <span><span class="stated-line" aria-hidden="true" />{texts.graph.stated}</span>
      <span><span class="counted-line" aria-hidden="true" />{texts.graph.counted}</span>
    </div>
  );
}

export function Dot({ colour }: { colour: string }) {
  return <span class="legend-dot" style={{ background: `var(--${colour})` }} aria-hidden="true" />;
}
