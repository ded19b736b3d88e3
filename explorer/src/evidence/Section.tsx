/** A section of the details: a heading with a number of rows, and its content. */

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { texts } from "../texts";

interface SectionProps { title: string; count?: number | null; children: ComponentChildren }

export function Section({ title, count = null, children }: SectionProps) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h3 id={id}>{title}{count !== null && <span class="count"> {texts.number(count)}</span>}</h3>
      {children}
    </section>
  );
}

/** Names with their values. */
export function Pairs({ pairs }: { pairs: readonly (readonly [string, string])[] }) {
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => <div key={name}><dt dir="auto">{name}</dt><dd dir="auto">{value}</dd></div>)}
    </dl>
  );
}
