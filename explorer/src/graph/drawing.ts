/** Drawing of the communities: discs with titles on a canvas below the entities. */

import type { MapPart } from "./mapPart";
import type { Area, Scene } from "./scene";

export interface Point { x: number; y: number }
/** Pixels of a point of the map, and pixels per unit. */
export interface Projection { at(point: Point): Point; scale: number }

/** The methods of a canvas that pictures are drawn with. */
export type Pen = Pick<CanvasRenderingContext2D,
  "canvas" | "setTransform" | "clearRect" | "beginPath" | "moveTo" | "lineTo" | "arc" | "roundRect" | "fill" | "stroke"
  | "fillText" | "strokeText" | "measureText" | "globalAlpha" | "lineWidth" | "lineJoin" | "font" | "textAlign"
  | "textBaseline"> & { fillStyle: string | CanvasGradient | CanvasPattern; strokeStyle: string | CanvasGradient | CanvasPattern };

/** How a row of the shown version differs from the version that it is compared with. */
export type Change = "added" | "changed";
export type Changes = Record<"entities" | "relationships" | "communities", ReadonlyMap<number, Change>>;

/** Colours of the page, read from its style sheet. */
export interface Palette {
  hues: string[]; ink: string; muted: string; paper: string; panel: string; line: string; accent: string; none: string; added: string; changed: string;
}

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    hues: Array.from({ length: 8 }, (_, at) => read(`--c${at}`)),
    ink: read("--ink"), muted: read("--muted"), paper: read("--paper"), panel: read("--panel"), line: read("--line"),
    accent: read("--accent"), none: read("--none"), added: read("--added"), changed: read("--changed"),
  };
}

// Radius in pixels from which a disc has a title, and maximum links drawn for each disc of a part.
const MIN_TITLE_RADIUS = 26;
const MAX_LINKS_PER_DISC = 2;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export function drawCommunities(
  context: Pen, scene: Scene, project: Projection, palette: Palette,
  lit: { communities: ReadonlySet<number>; selected: number | null; isDimmed: boolean; changes: Changes | null },
): void {
  const { width, height } = context.canvas;
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const colour = (area: Area) => {
    const change = lit.changes?.communities.get(area.community);
    return change ? palette[change] : lit.changes ? palette.none : hueOf(area, palette);
  };
  for (const part of scene.openParts()) {
    const area = scene.areas.get(part.community);
    if (area) drawOpened(context, area, project, palette, colour(area), area.community === lit.selected);
    if (part.kind === "communities") drawLinks(context, scene, part, project, palette);
  }
  for (const area of scene.closedAreas()) {
    const strong = area.community === lit.selected || lit.communities.has(area.community);
    drawClosed(context, area, project, palette, colour(area), strong, lit.isDimmed && !strong);
  }
  const opened = scene.openParts().flatMap(({ community }) => scene.areas.get(community) ?? []);
  drawOpenedTitles(context, opened, project, palette, { width: width / ratio, height: height / ratio });
}

function drawOpened(
  context: Pen, area: Area, project: Projection, palette: Palette, colour: string, selected: boolean,
): void {
  const { x, y } = project.at(area);
  const radius = area.radius * project.scale;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.globalAlpha = 0.06;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = selected ? 1 : 0.5;
  context.lineWidth = selected ? 2.5 : 1;
  context.strokeStyle = selected ? palette.accent : colour;
  context.stroke();
  context.globalAlpha = 1;
}

/** Draw the titles of opened discs above their upper edges, those of the inner discs first. */
function drawOpenedTitles(
  context: Pen, areas: readonly Area[], project: Projection, palette: Palette,
  view: { width: number; height: number },
): void {
  const taken: { left: number; right: number; y: number }[] = [];
  context.font = `600 12px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "bottom";
  context.fillStyle = palette.muted;
  for (const area of [...areas].sort((one, other) => other.depth - one.depth)) {
    const { x, y } = project.at(area);
    const radius = area.radius * project.scale;
    // A disc that fills the middle of the view keeps its title in sight at the upper edge.
    const isAround = Math.hypot(x - view.width / 2, y - view.height / 2) < radius;
    if (radius < 90 || y - radius > view.height) continue;
    const title = shorten(context, area.title, Math.min(1.6 * radius, 0.8 * view.width));
    const half = context.measureText(title).width / 2 + 6;
    if (!isAround && (x < half || x > view.width - half || y - radius < 16)) continue;
    const middle = Math.min(Math.max(x, half), view.width - half);
    const bottom = Math.max(y - radius - 4, 16);
    const place = { left: middle - half, right: middle + half, y: bottom };
    if (taken.some((other) => Math.abs(other.y - place.y) < 16 && other.left < place.right && place.left < other.right)) {
      continue;
    }
    taken.push(place);
    context.fillText(title, middle, bottom);
  }
}

/** Draw the name of an entity that is pointed at or selected, on a ground that hides what is below. */
export function drawHoveredName(
  context: Pen,
  { x, y, size, label }: { x: number; y: number; size: number; label?: string | null }, palette: Palette,
): void {
  context.beginPath();
  context.arc(x, y, size + 2, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = palette.ink;
  context.stroke();
  if (!label) return;
  context.font = `600 12px ${FONT}`;
  const left = x + size + 2;
  context.beginPath();
  context.roundRect(left, y - 11, context.measureText(label).width + 12, 22, 5);
  context.fillStyle = palette.panel;
  context.fill();
  context.lineWidth = 1;
  context.strokeStyle = palette.line;
  context.stroke();
  context.fillStyle = palette.ink;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(label, left + 6, y);
}

function drawClosed(
  context: Pen, area: Area, project: Projection, palette: Palette, colour: string,
  strong: boolean, dimmed: boolean,
): void {
  const { x, y } = project.at(area);
  const radius = area.radius * project.scale;
  if (radius < 0.7) return;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  // Links to other discs do not shine through.
  context.fillStyle = palette.panel;
  context.fill();
  context.globalAlpha = dimmed ? 0.12 : 0.26;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = dimmed ? 0.3 : 0.9;
  context.lineWidth = strong ? 2.5 : 1;
  context.strokeStyle = strong ? palette.accent : colour;
  context.stroke();
  context.globalAlpha = dimmed ? 0.5 : 1;
  if (radius >= MIN_TITLE_RADIUS) drawTitle(context, area, { x, y }, radius, palette);
  context.globalAlpha = 1;
}

function drawTitle(
  context: Pen, area: Area, { x, y }: Point, radius: number, palette: Palette,
): void {
  const size = Math.min(15, Math.max(10, radius / 6));
  context.font = `${size}px ${FONT}`;
  const lines = wrap(context, area.title, radius * 1.7, Math.max(1, Math.floor(radius * 1.3 / (size * 1.2))));
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.ink;
  lines.forEach((line, at) => {
    context.fillText(line, x, y + (at - (lines.length - 1) / 2) * size * 1.2);
  });
}

/** Draw the strongest links between closed discs of a part, wider for more weight. */
function drawLinks(
  context: Pen, scene: Scene, part: MapPart, project: Projection, palette: Palette,
): void {
  const strongest = part.weight[0] ?? 1;
  const { clientWidth: width, clientHeight: height } = context.canvas;
  const isInside = ({ x, y }: Point) => x >= 0 && x <= width && y >= 0 && y <= height;
  context.strokeStyle = palette.none;
  for (let at = 0; at < Math.min(part.source.length, part.number.length * MAX_LINKS_PER_DISC); at += 1) {
    const [one, other] = [part.source[at]!, part.target[at]!].map((end) => scene.areas.get(part.number[end]!)!);
    if (!one || !other || scene.isOpen(one.community) || scene.isOpen(other.community)) continue;
    const [from, to] = [edgePoint(one, other), edgePoint(other, one)].map((point) => project.at(point));
    if (!isInside(from!) && !isInside(to!)) continue;
    context.globalAlpha = 0.15 + 0.35 * (part.weight[at]! / strongest);
    context.lineWidth = 0.5 + 3 * (part.weight[at]! / strongest);
    context.beginPath();
    context.moveTo(from!.x, from!.y);
    context.lineTo(to!.x, to!.y);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Return the point on the edge of a disc that faces another disc. */
function edgePoint(area: Area, other: Area): Point {
  const distance = Math.hypot(other.x - area.x, other.y - area.y) || 1;
  const share = area.radius / distance;
  return { x: area.x + (other.x - area.x) * share, y: area.y + (other.y - area.y) * share };
}

export function hueOf(area: Area, palette: Palette): string {
  return palette.hues[area.hue % palette.hues.length]!;
}

function wrap(context: Pen, text: string, width: number, maxLines: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (!line || context.measureText(longer).width <= width) line = longer;
    else { lines.push(line); line = word; }
  }
  lines.push(line);
  const kept = lines.slice(0, maxLines);
  if (lines.length > maxLines) kept[maxLines - 1] = `${kept[maxLines - 1]} …`;
  return kept.map((one) => shorten(context, one, width));
}

function shorten(context: Pen, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}
