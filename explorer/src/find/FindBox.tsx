/** The search field of the page: names, reports and passages, as one types. */

import { type Entity, filterQuery, type IndexData, type Query } from "../api";
import { useData } from "../parts/useData";
import { type Selection, useAddress } from "../state";
import { texts } from "../texts";
import { type Choice, Combobox } from "./Combobox";
import { useState } from "preact/hooks";

const MAX_CHOICES = 8;

export function FindBox() {
  const { data } = useData();
  const { address, go } = useAddress();
  const query = { ...filterQuery(address.filters), limit: MAX_CHOICES };
  const show = (selection: Selection) => go({ selection });
  return (
    <Combobox class="find" label={texts.find.label} placeholder={texts.find.placeholder} shortcut="/"
      find={(text, signal) => findChoices(data, text, query, show, signal)}
      onSubmit={(search) => go({ panel: "browse", search })} />
  );
}

async function findChoices(
  data: IndexData, text: string, query: Query, show: (selection: Selection) => void,
  signal: AbortSignal,
): Promise<Choice[]> {
  const found = await data.suggest(text, query, signal);
  const { entities, communities, text_units } = found;
  return [
    ...entities.map((entity) => ({
      key: `entity-${entity.number}`, group: texts.tables.entities,
      content: <ChoiceLine name={entity.title} note={entity.type} />,
      choose: () => show({ kind: "entity", number: entity.number }),
    })),
    ...communities.map((community) => ({
      key: `community-${community.community}`, group: texts.tables.reports,
      content: <ChoiceLine name={community.title} note={texts.level(community.level)} />,
      choose: () => show({ kind: "community", number: community.community }),
    })),
    ...text_units.map((unit) => ({
      key: `text_unit-${unit.number}`, group: texts.tables.text_units,
      content: <ChoiceLine name={unit.text.slice(0, 160)} note={unit.document_title} />,
      choose: () => show({ kind: "text_unit", number: unit.number }),
    })),
  ];
}

export function ChoiceLine({ name, note }: { name: string; note: string }) {
  return (
    <span class="row">
      <span class="row-name" dir="auto">{name}</span>
      <span class="row-note" dir="auto">{note}</span>
    </span>
  );
}

interface EntityChooserProps {
  label: string;
  placeholder: string;
  onChoose: (entity: Entity) => void;
}

export function EntityChooser({ label, placeholder, onChoose }: EntityChooserProps) {
  const { data } = useData();
  const [isOpen, setOpen] = useState(false);
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>{label}</button>;
  return (
    <Combobox label={label} placeholder={placeholder} autoFocus find={async (text, signal) => {
        const { entities } = await data.suggest(text, { limit: 10 }, signal);
        return entities.map((entity) => ({
          key: String(entity.number), group: texts.tables.entities,
          content: <ChoiceLine name={entity.title} note={entity.type} />,
          choose: () => { setOpen(false); onChoose(entity); },
        }));
      }} />
  );
}
