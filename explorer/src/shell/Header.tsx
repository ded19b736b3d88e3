/** The bar at the top: the index, its version, the search field and the theme. */

import { useContext, useState } from "preact/hooks";
import type { IndexSummary } from "../api";
import { FindBox } from "../find/FindBox";
import { Remove } from "../parts/Link";
import { DataContext } from "../parts/useData";
import { readTheme, setTheme, type Theme } from "../session";
import { EMPTY_ADDRESS, useAddress } from "../state";
import { texts } from "../texts";

interface HeaderProps {
  indexes: IndexSummary[];
  /** Forget the key; undefined if there is none. */
  onLeave?: (() => void) | undefined;
}

export function Header({ indexes, onLeave }: HeaderProps) {
  const { address, go, href } = useAddress();
  const open = useContext(DataContext);
  const { index, version } = address;
  return (
    <header class="top">
      <h1><a href={href({ ...EMPTY_ADDRESS, index })}>{texts.title}</a></h1>
      {indexes.length > 0 && (
        <select aria-label={texts.index} value={index}
          onChange={(event) => go({ ...EMPTY_ADDRESS, index: event.currentTarget.value })}>
          {!indexes.some(({ name }) => name === index) && <option value={index}>{index}</option>}
          {indexes.map(({ name }) => <option key={name} value={name}>{name}</option>)}
        </select>
      )}
      {version !== null && (
        <button type="button" class="chip removable" onClick={() => go({ version: null })}>
          {texts.versions.asOf(version)}<Remove label={texts.versions.back} />
        </button>
      )}
      <div class="grow">{open && open.summary.version > 0 && <FindBox />}</div>
      {onLeave && <button type="button" class="plain" onClick={onLeave}>{texts.key.leave}</button>}
      <ThemeChoice />
    </header>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_MARKS: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };

function ThemeChoice() {
  const [theme, setShown] = useState(readTheme);
  const change = () => {
    const next = NEXT_THEME[theme];
    setTheme(next);
    setShown(next);
  };
  const label = texts.theme(theme, NEXT_THEME[theme]);
  return (
    <button type="button" class="icon" aria-label={label} title={label} onClick={change}>
      <span aria-hidden="true">{THEME_MARKS[theme]}</span>
    </button>
  );
}
