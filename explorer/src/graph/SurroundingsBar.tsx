/** What stands around the picture of a thing with what is near it: its name, the way back, and its types. */

import { type Surroundings, useAddress } from "../state";
import { texts } from "../texts";
import { Dot } from "./GraphLegend";
import { listTypeChoices, type ShownSurroundings, type TypeChoice } from "./surroundings";

export function SurroundingsBar({ nearby, shown, around }: ShownSurroundings) {
  const { href } = useAddress();
  const nHidden = around?.hidden.filter((number) => nearby.order.includes(number)).length ?? 0;
  return (
    <div class="surroundings-bar">
      <a class="button" href={href(around ? { around: null } : { path: null })}>
        <span aria-hidden="true">←</span>{texts.around.back}
      </a>
      <h2 dir="auto">{nearby.title}</h2>
      {around && <span class="muted">{texts.around.shown(shown.size, nearby.order.length)}</span>}
      {around && nHidden > 0 && (
        <a class="chip" href={href({ around: { ...around, hidden: [] } })}>{texts.around.showHidden(nHidden)}</a>
      )}
    </div>
  );
}

interface LegendProps extends ShownSurroundings {
  hues: ReadonlyMap<string, number>;
  onPoint: (types: ReadonlySet<string> | null) => void;
}

/** The types of what is near, each of which can be collapsed, and expanded to all its entities. */
export function SurroundingsLegend({ nearby, shown, around, hues, onPoint }: LegendProps) {
  const { go } = useAddress();
  if (!around) return null;
  const toggle = (key: "expanded" | "collapsed", { type }: TypeChoice) => {
    const other = key === "expanded" ? "collapsed" : "expanded";
    const without = (types: string[]) => types.filter((one) => one !== type);
    const changed: Surroundings = {
      ...around, [key]: around[key].includes(type) ? without(around[key]) : [...around[key], type], [other]: without(around[other]),
    };
    go({ around: changed });
  };
  return (
    <div class="type-legend" role="group" aria-label={texts.around.types}>
      {listTypeChoices(nearby, shown, around).map((choice) => {
        const { type, all, isCollapsed, isExpanded } = choice;
        const name = type || texts.around.noType;
        const hue = hues.get(type);
        const light = { onPointerEnter: () => onPoint(new Set([type])), onPointerLeave: () => onPoint(null) };
        return (
          <span key={type} class="type-choice" {...light}>
            <button type="button" aria-pressed={!isCollapsed} title={texts.around.collapse(name, isCollapsed)}
              onClick={() => { onPoint(null); toggle("collapsed", choice); }}>
              <Dot colour={hue === undefined ? "other" : `c${hue}`} /><span dir="auto">{name}</span>
              <span class="count">{texts.countOf(choice.shown, all)}</span>
            </button>
            {(isExpanded || !isCollapsed && choice.shown < all) && (
              <button type="button" class="expand" aria-pressed={isExpanded} aria-label={texts.around.expand(name, isExpanded)}
                title={texts.around.expand(name, isExpanded)} onClick={() => toggle("expanded", choice)}>
                {isExpanded ? "−" : "+"}
              </button>
            )}
          </span>
        );
      })}
    </div>
  );
}
