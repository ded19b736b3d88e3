/** The details of a relationship: its ends, and the passages that it comes from. */

import { useState } from "preact/hooks";
import type { RelationshipDetails } from "../api";
import { EntityLink, Passage, TextUnitLink } from "../parts/Link";
import { List, More, Section } from "../parts/PagedList";
import { Await, useData, useLoaded } from "../parts/useData";
import { texts } from "../texts";

export function RelationshipView({ relationship }: { relationship: RelationshipDetails }) {
  const { description, evidence, stated, text_units, type, weight } = relationship;
  const { source, source_title, target, target_title } = relationship;
  return (
    <article>
      <h2 dir="auto">{texts.ends(source_title, target_title)}</h2>
      <p class="facts">
        {type && <span class="tag">{type}</span>}
        <span>{texts.weight} {texts.decimal(weight)}</span>
        <span class={stated ? "badge stated" : "badge counted"}>{stated ? texts.statedByText : texts.countedTogether}</span>
      </p>
      {!stated && <p class="muted">{texts.evidence.countedExplained}</p>}
      {stated && description && !evidence.some(({ text }) => text.replace(/\s+/g, " ") === description) && <p dir="auto">{description}</p>}
      <List rows={[{ number: source, title: source_title }, { number: target, title: target_title }]}>
        {(entity) => <EntityLink entity={entity} />}
      </List>
      {evidence.length > 0 && (
        <Section title={texts.evidence.sentences} count={evidence.length}>
          <List rows={evidence}>{(span) => <Passage span={span} />}</List>
        </Section>
      )}
      <SharedTextUnits numbers={text_units} isCounted={!stated} />
    </article>
  );
}

// Passages that are loaded at once.
const PAGE = 5;

/** The passages that name both ends. */
function SharedTextUnits({ numbers, isCounted }: { numbers: number[]; isCounted: boolean }) {
  const { data } = useData();
  const [shown, setShown] = useState(PAGE);
  const loaded = useLoaded(
    (signal) => Promise.all(numbers.slice(0, shown).map((number) => data.row("text_units", number, signal))),
    [numbers, shown],
  );
  if (!numbers.length) return null;
  return (
    <Section title={texts.evidence.together} count={numbers.length}>
      <Await loaded={loaded}>
        {(units) => <List rows={units}>{(unit) => <TextUnitLink unit={unit} isCounted={isCounted} />}</List>}
      </Await>
      <More left={numbers.length - shown} onShow={() => setShown(shown + 2 * PAGE)} />
    </Section>
  );
}
