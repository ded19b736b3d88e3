/** A conversation as a file that needs no server: Markdown, and a page of HTML without scripts. */

import { render } from "preact";
import { FormattedText } from "../parts/FormattedText";
import { StateProvider } from "../state";
import { texts } from "../texts";
import type { Turn } from "./kept";

type Escape = (text: string) => string;

/** Compose the questions, answers and quotations; texts that must stay in one line are escaped by `line`. */
function compose(name: string, turns: readonly Turn[], line: Escape, block: Escape): string {
  const oneLine = (text: string) => line(text.replace(/\s+/g, " "));
  const parts = turns.flatMap(({ question, text, error, answer }) => [
    `## ${oneLine(question)}`, block(text || error),
    ...(answer?.citations ?? []).map(({ number, quote, document, location }) =>
      `> ${line(`[${number}]`)} “${oneLine(quote)}” — *${oneLine([document, location].filter(Boolean).join(", "))}*`),
    answer && oneLine(texts.ask.effort(answer).join(" · ")),
  ]);
  return `${[name && `# ${oneLine(name)}`, ...parts].filter(Boolean).join("\n\n")}\n`;
}

/** Write Markdown in which nothing of an answer becomes HTML, a link or a picture. */
export const writeMarkdown = (name: string, turns: readonly Turn[]) => compose(name, turns,
  (text) => text.replace(/[\\`*_{}[\]<>#|!~$&]/g, "\\$&"),
  (text) => text.replace(/</g, "&lt;").replace(/\](?=[(:[])/g, "]\\"));

const HEAD = `<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}
h3{border-top:1px solid;padding-top:1em;margin-top:2em}blockquote{font-size:14px;margin:.5em 0 .5em 1.5em}
table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}</style>`;

/** Write a page whose texts are text nodes, so that nothing in them is HTML. */
export function writeHtml(name: string, turns: readonly Turn[]): string {
  const page = document.implementation.createHTMLDocument(name);
  page.documentElement.lang = "en";
  page.head.insertAdjacentHTML("afterbegin", HEAD);
  const text = compose("", turns, (part) => part, (part) => part);
  render(<StateProvider><main><h1 dir="auto">{name}</h1><FormattedText text={text} /></main></StateProvider>, page.body);
  const copy = page.documentElement.cloneNode(true) as HTMLElement;
  render(null, page.body);
  // Rows of the index cannot be opened without the server.
  for (const link of copy.querySelectorAll("a, button")) link.replaceWith(link.textContent ?? "");
  return `<!doctype html>\n${copy.outerHTML}\n`;
}
