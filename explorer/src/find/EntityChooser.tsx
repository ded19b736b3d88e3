/** A button that becomes a field, to choose another entity by its name. */

import { useState } from "preact/hooks";
import type { Entity } from "../api";
import { useData } from "../parts/useData";
import { texts } from "../texts";
import { Combobox } from "./Combobox";
import { ChoiceLine } from "./FindBox";

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
