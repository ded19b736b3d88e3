/** Buttons of which one is pressed; with `isLabelled`, their label can be seen. */

interface SwitchProps<Name extends string> {
  label: string; names: readonly Name[]; titles: Record<Name, string>; value: Name; isLabelled?: boolean;
  onChoose: (name: Name) => void;
}

export function Switch<Name extends string>({ label, names, titles, value, isLabelled, onChoose }: SwitchProps<Name>) {
  return (
    <div class="switch" role="group" aria-label={label}>
      {isLabelled && <span class="switch-name" aria-hidden="true">{label}</span>}
      {names.map((name) => (
        <button key={name} type="button" aria-pressed={value === name} onClick={() => onChoose(name)}>{titles[name]}</button>
      ))}
    </div>
  );
}
