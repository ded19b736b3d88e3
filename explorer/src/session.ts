/** What the browser keeps for the reader: the key until the tab is closed, and the theme. */

export type Theme = "system" | "light" | "dark";

const KEY = "graphrag-key";
const THEME = "graphrag-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const THEMES: readonly string[] = ["system", "light", "dark"];

// A browser may refuse storage, for example in a frame: then values last until the page is left.
const memory = new Map<string, string>();

/** Return what a function returns; undefined if it fails, as all storage may in a frame. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch { return undefined; }
}

const read = (storage: () => Storage, name: string) =>
  attempt(() => storage().getItem(name) ?? "") ?? memory.get(name) ?? "";

function write(storage: () => Storage, name: string, value: string): void {
  memory.set(name, value);
  attempt(() => storage().setItem(name, value));
}

export const readKey = () => read(() => sessionStorage, KEY);
export const writeKey = (key: string) => write(() => sessionStorage, KEY, key);

export function readTheme(): Theme {
  const theme = read(() => localStorage, THEME);
  return THEMES.includes(theme) ? (theme as Theme) : "system";
}

/** Show a theme, and keep it for the next visit. */
export function setTheme(theme: Theme): void {
  write(() => localStorage, THEME, theme);
  showTheme(theme);
}

export function showTheme(theme: Theme): void {
  const show = () => {
    document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  };
  dark.onchange = show;
  show();
}
