/** Drawing of the communities: discs with titles on a canvas below the entities. */

import { colourOfArea, colourOfType, isLitArea, type Look, type Palette } from "./appearance";
import type { DrawnCommunity, DrawnLink } from "./drawn";
import type { Area } from "./scene";

export interface Point { x: number; y: number }
/** Pixels of a point of the map, and pixels per unit. */
export interface Projection { at(point: Point): Point; scale: number }

/** The methods of a canvas that pictures are drawn with. */
export type Pen = Pick<CanvasRenderingContext2D,
  "canvas" | "setTransform" | "clearRect" | "beginPath" | "moveTo" | "lineTo" | "arc" | "roundRect" | "fill" | "stroke"
  | "fillText" | "strokeText" | "measureText" | "globalAlpha" | "lineWidth" | "lineJoin" | "font" | "textAlign"
  | "textBaseline"> & { fillStyle: string | CanvasGradient | CanvasPattern; strokeStyle: string | CanvasGradient | CanvasPattern };

/** A place on the screen that holds a text. */
export interface Box { left: number; right: number; top: number; bottom: number }

/** The communities of a picture, and what decides how they look. */
export interface CommunityPicture {
  communities: readonly DrawnCommunity[];
  links: readonly DrawnLink[];
  look: Look;
  isDimmed: boolean;
  /** Whether the rims of closed communities show the types of their entities. */
  showsTypes: boolean;
  /** The community with a strong rim, because it is selected or pointed at. */
  selected: number | null;
  /** Places of the names of entities: titles keep clear of them. */
  names: readonly Box[];
  outlines: readonly Point[];
  /** The part of the canvas that titles stay inside. */
  frame: Box;
}

// Radius in pixels from which a disc has its title inside; from which it has so if there is no room beside it; and
// from which it has a title at all.
const MIN_TITLE_RADIUS = 36;
const MIN_SHORT_TITLE_RADIUS = 24;
const MIN_RADIUS_OF_TITLE_BESIDE = 5;
// Maximum number of titles beside discs: each is compared with all others in each frame.
const MAX_TITLES_BESIDE = 50;
// Maximum width and the height of a title beside its disc, in pixels.
const MAX_WIDTH_BESIDE = 120;
const HEIGHT_BESIDE = 12;
// Maximum distance of a title from the middle of its disc, in pixels. Among many discs no place is looked for.
const MAX_LINE = 260;
// Places of a title in its disc, as shares of the radius below the middle.
const TITLE_SHIFTS = [0, -0.5, 0.5, -0.25, 0.25];
// Angle of a straight line of an arc.
const ARC_STEP = 0.08;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export function drawCommunities(context: Pen, picture: CommunityPicture, project: Projection): void {
  const { communities, look, isDimmed, showsTypes, selected, names, outlines, frame } = picture;
  const { palette, emphasis } = look;
  const { width, height } = context.canvas;
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  for (const half of outlines) drawOutline(context, half, project, palette);
  const opened = communities.filter(({ isOpen }) => isOpen);
  for (const area of opened) {
    drawOpened(context, area, project, palette, colourOfArea(area, look), area.community === selected);
  }
  drawLinks(context, picture, project);
  const taken = [...names];
  const untitled: Area[] = [];
  for (const area of communities) {
    if (area.isOpen) continue;
    const strong = area.community === selected || isLitArea(area, emphasis);
    drawClosed(context, area, project, palette, colourOfArea(area, look), strong, isDimmed && !strong);
    if (showsTypes) drawTypes(context, area, project, look, isDimmed && !strong);
    context.globalAlpha = isDimmed && !strong ? 0.5 : 1;
    const rim = showsTypes ? rimWidth(area.radius * project.scale) : 0;
    if (!drawTitle(context, area, project, rim, palette, taken, frame, MIN_TITLE_RADIUS)) untitled.push(area);
    context.globalAlpha = 1;
  }
  const closed = communities.filter(({ isOpen }) => !isOpen);
  context.globalAlpha = isDimmed ? 0.5 : 1;
  drawTitlesBeside(context, untitled, closed, project, palette, taken, frame);
  context.globalAlpha = 1;
  drawOpenedTitles(context, opened, project, palette, { width: width / ratio, height: height / ratio }, taken);
}

/** Draw a ring around the middle of the map; files of pictures know no ellipses, so it consists of lines. */
function drawOutline(context: Pen, half: Point, project: Projection, palette: Palette): void {
  context.beginPath();
  for (let step = 0; step <= 2 * Math.PI / ARC_STEP + 1; step += 1) {
    const { x, y } = project.at({ x: half.x * Math.cos(step * ARC_STEP), y: half.y * Math.sin(step * ARC_STEP) });
    if (step) context.lineTo(x, y);
    else context.moveTo(x, y);
  }
  context.lineWidth = 1;
  context.strokeStyle = palette.line;
  context.stroke();
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
  view: { width: number; height: number }, taken: Box[],
): void {
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
    const title = shorten(context, area.title, Math.min(2 * radius, 0.8 * view.width));
    const half = context.measureText(title).width / 2 + 6;
    if (!isAround && (x < half || x > view.width - half || y - radius < 16)) continue;
    const bottom = Math.max(y - radius - 4, 16);
    // A title that has to stay in sight gives way to what stands there already, and stays at its disc.
    const places = [x, ...isAround ? [half, view.width / 2, view.width - half] : []].map((at) => {
      const middle = Math.min(Math.max(at, half), view.width - half);
      return { left: middle - half, right: middle + half, top: bottom - 15, bottom };
    });
    const isAt = ({ left }: Box) => Math.hypot(left + half - x, bottom - y) < radius + 5;
    const place = places.find((one) => isAt(one) && !taken.some((other) => overlap(one, other)));
    if (!place) continue;
    taken.push(place);
    context.fillText(title, (place.left + place.right) / 2, bottom);
  }
}

/**
 * Draw the name of an entity that is pointed at or selected, on a ground that hides what is below.
 * Returns the place of the name.
 */
export function drawHoveredName(
  context: Pen,
  { x, y, size, label }: { x: number; y: number; size: number; label?: string | null }, palette: Palette, frame: Box,
): Box | null {
  context.beginPath();
  context.arc(x, y, size + 2, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = palette.ink;
  context.stroke();
  if (!label) return null;
  context.font = `600 12px ${FONT}`;
  const width = context.measureText(label).width + 12;
  // Where the name would leave the frame on the right, it stands on the left, or as far left as it has to.
  const right = x + size + 2;
  const other = x - size - 2 - width;
  const left = right + width <= frame.right ? right : other >= frame.left ? other : Math.max(frame.left, frame.right - width);
  context.beginPath();
  context.roundRect(left, y - 11, width, 22, 5);
  context.fillStyle = palette.panel;
  context.fill();
  context.lineWidth = 1;
  context.strokeStyle = palette.line;
  context.stroke();
  context.fillStyle = palette.ink;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(label, left + 6, y);
  return { left, right: left + width, top: y - 11, bottom: y + 11 };
}

/** A sign of the legend: a dot of a colour, or a line of a width, and its meaning. */
export interface LegendSign { colour: string; text: string; width?: number }

/** Draw the legend in the lower left corner, for pictures that are saved. */
export function drawLegend(context: Pen, signs: readonly LegendSign[], palette: Palette, height: number): void {
  context.font = `12px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const width = Math.max(0, ...signs.map(({ text }) => context.measureText(text).width)) + 36;
  const top = height - 12 - signs.length * 18;
  context.beginPath();
  context.roundRect(8, top - 4, width, signs.length * 18 + 8, 6);
  context.fillStyle = palette.panel;
  context.fill();
  signs.forEach(({ colour, text, width: line }, at) => {
    const y = top + at * 18 + 9;
    context.beginPath();
    if (line) {
      Object.assign(context, { lineWidth: line, strokeStyle: colour });
      context.moveTo(14, y);
      context.lineTo(28, y);
      context.stroke();
    } else {
      context.fillStyle = colour;
      context.arc(21, y, 5, 0, 2 * Math.PI);
      context.fill();
    }
    context.fillStyle = palette.ink;
    context.fillText(text, 33, y);
  });
}

function drawClosed(
  context: Pen, area: Area, project: Projection, palette: Palette, colour: string,
  strong: boolean, dimmed: boolean,
): void {
  const { x, y } = project.at(area);
  const radius = area.radius * project.scale;
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
  context.globalAlpha = 1;
}

/** Return the width of a rim that shows types, in pixels. */
const rimWidth = (radius: number) => Math.min(9, Math.max(2, radius * 0.12));

/** Draw the rim of a closed community in the colours of the types of its entities. */
function drawTypes(context: Pen, area: Area, project: Projection, look: Look, dimmed: boolean): void {
  const { palette, typeHues, emphasis: { types: litTypes } } = look;
  if (!typeHues) return;
  const { x, y } = project.at(area);
  const width = rimWidth(area.radius * project.scale);
  const radius = area.radius * project.scale - width / 2;
  const total = area.types.reduce((sum, [, count]) => sum + count, 0);
  context.lineWidth = width;
  let angle = -Math.PI / 2;
  for (const [type, count] of area.types) {
    const end = angle + 2 * Math.PI * count / total;
    context.globalAlpha = litTypes ? (litTypes.has(type) ? 1 : 0.15) : dimmed ? 0.3 : 0.9;
    context.strokeStyle = colourOfType(type, palette, typeHues);
    context.beginPath();
    // Short straight lines: files of pictures know whole circles only.
    const steps = Math.max(1, Math.ceil((end - angle) / ARC_STEP));
    for (let step = 0; step <= steps; step += 1) {
      const at = angle + (end - angle) * step / steps;
      const point = [x + radius * Math.cos(at), y + radius * Math.sin(at)] as const;
      if (step) context.lineTo(...point);
      else context.moveTo(...point);
    }
    context.stroke();
    angle = end;
  }
  context.globalAlpha = 1;
}

/**
 * Draw the title of a disc where it covers no name: in the middle, or else above or below.
 * Returns whether the disc has room for it.
 */
function drawTitle(
  context: Pen, area: Area, project: Projection, rim: number, palette: Palette, taken: Box[],
  frame: Box, minRadius: number,
): boolean {
  if (area.radius * project.scale < minRadius) return false;
  const { x, y } = project.at(area);
  const radius = area.radius * project.scale - rim;
  const size = Math.min(15, Math.max(10, radius / 6));
  const height = size * 1.2;
  context.font = `${size}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.ink;
  const near = taken.filter(({ left, right, top, bottom }) =>
    left < x + radius && right > x - radius && top < y + radius && bottom > y - radius);
  for (const shift of TITLE_SHIFTS) {
    // Away from the middle the disc is narrower.
    const room = shift ? 1.2 * radius : 1.7 * radius;
    const maxLines = Math.max(1, Math.floor((shift ? 0.6 : 1.3) * radius / height));
    const lines = wrap(context, area.title, room, maxLines).map((line, at, all) => {
      const middle = y + shift * radius + (at - (all.length - 1) / 2) * height;
      const half = context.measureText(line).width / 2;
      return { line, middle, left: x - half, right: x + half, top: middle - height / 2, bottom: middle + height / 2 };
    });
    if (lines.some((line) => !isInside(line, frame) || near.some((name) => overlap(line, name)))) continue;
    for (const { line, middle } of lines) context.fillText(line, x, middle);
    taken.push(...lines);
    return true;
  }
  return false;
}

/** Draw the titles of discs that have no room for them beside the discs, or away from them at the end of a line. */
function drawTitlesBeside(
  context: Pen, untitled: readonly Area[], closed: readonly Area[], project: Projection, palette: Palette,
  taken: Box[], frame: Box,
): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.ink;
  const toDisc = (area: Area) => ({ area, ...project.at(area), radius: area.radius * project.scale });
  const discs = closed.map(toDisc);
  const small = untitled.map(toDisc).filter(({ x, y, radius }) => radius >= MIN_RADIUS_OF_TITLE_BESIDE
    && x > frame.left && x < frame.right && y > frame.top && y < frame.bottom)
    .sort((one, other) => other.radius - one.radius);
  for (const { area, x, y, radius } of small.slice(0, MAX_TITLES_BESIDE)) {
    const { title } = area;
    context.font = `10px ${FONT}`;
    // A theme without the names behind it fits more often.
    const lines = [title, title.split(": ")[0] ?? title].map((text) => shorten(context, text, MAX_WIDTH_BESIDE));
    const boxAt = (line: string, middle: number, height: number): Box & { line: string } => {
      const half = context.measureText(line).width / 2;
      return { line, left: middle - half, right: middle + half, top: height - HEIGHT_BESIDE / 2, bottom: height + HEIGHT_BESIDE / 2 };
    };
    const beside = lines.flatMap((line) => {
      const half = context.measureText(line).width / 2;
      const away = radius + HEIGHT_BESIDE / 2, aside = radius + half + HEIGHT_BESIDE / 4;
      return [boxAt(line, x, y + away), boxAt(line, x, y - away), boxAt(line, x + aside, y), boxAt(line, x - aside, y)];
    });
    const isFree = (box: Box) => isInside(box, frame) && !taken.some((other) => overlap(box, other))
      && !discs.some((disc) => isOnDisc(box, disc));
    let free = beside.find(isFree);
    if (!free && drawTitle(context, area, project, 0, palette, taken, frame, MIN_SHORT_TITLE_RADIUS)) continue;
    context.font = `10px ${FONT}`;
    if (!free && discs.length <= MAX_TITLES_BESIDE) {
      // The line crosses as few discs as possible; of equal lines the shortest.
      let fewest = Infinity;
      for (let distance = radius + 20; fewest && distance < MAX_LINE; distance += 12) {
        for (let angle = 0; fewest && angle < 2 * Math.PI; angle += Math.PI / 8) {
          const box = boxAt(lines[1]!, x + distance * Math.cos(angle), y + distance * Math.sin(angle));
          if (!isFree(box)) continue;
          const end = nearestPoint(box, { x, y });
          const nCrossed = discs.filter((disc) => disc.area !== area && isOnLine({ x, y }, end, disc)).length;
          if (nCrossed < fewest) [fewest, free] = [nCrossed, box];
        }
      }
      if (free) drawLeader(context, { x, y, radius }, free, palette);
    }
    if (!free) continue;
    context.fillText(free.line, (free.left + free.right) / 2, (free.top + free.bottom) / 2);
    taken.push(free);
  }
}

/** Draw the line from a disc to its title. */
function drawLeader(context: Pen, { x, y, radius }: Point & { radius: number }, box: Box, palette: Palette): void {
  const end = nearestPoint(box, { x, y });
  const distance = Math.hypot(end.x - x, end.y - y);
  context.beginPath();
  context.moveTo(x + (end.x - x) * radius / distance, y + (end.y - y) * radius / distance);
  context.lineTo(end.x, end.y);
  context.lineWidth = 1;
  context.strokeStyle = palette.muted;
  context.stroke();
}

/** Return whether a line between two points crosses a disc. */
function isOnLine(from: Point, to: Point, { x, y, radius }: Point & { radius: number }): boolean {
  const [width, height] = [to.x - from.x, to.y - from.y];
  const share = ((x - from.x) * width + (y - from.y) * height) / (width * width + height * height || 1);
  const at = Math.min(1, Math.max(0, share));
  return Math.hypot(from.x + at * width - x, from.y + at * height - y) < radius;
}

const nearestPoint = ({ left, right, top, bottom }: Box, { x, y }: Point): Point =>
  ({ x: Math.min(Math.max(x, left), right), y: Math.min(Math.max(y, top), bottom) });

/** Return whether a box covers a part of a disc. */
function isOnDisc(box: Box, { x, y, radius }: Point & { radius: number }): boolean {
  const nearest = nearestPoint(box, { x, y });
  return Math.hypot(nearest.x - x, nearest.y - y) < radius;
}

/** Draw lines between closed communities, wider for more weight. */
function drawLinks(context: Pen, { links, look }: CommunityPicture, project: Projection): void {
  context.strokeStyle = look.palette.none;
  for (const { source, target, share } of links) {
    const [from, to] = [edgePoint(source, target), edgePoint(target, source)].map((point) => project.at(point));
    context.globalAlpha = 0.15 + 0.35 * share;
    context.lineWidth = 0.5 + 3 * share;
    context.beginPath();
    context.moveTo(from!.x, from!.y);
    context.lineTo(to!.x, to!.y);
    context.stroke();
  }
  context.globalAlpha = 1;
}

export const isInside = (box: Box, frame: Box) =>
  box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;

export const overlap = (one: Box, other: Box) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

/** Return the point on the edge of a disc that faces another disc. */
function edgePoint(area: Area, other: Area): Point {
  const distance = Math.hypot(other.x - area.x, other.y - area.y) || 1;
  const share = area.radius / distance;
  return { x: area.x + (other.x - area.x) * share, y: area.y + (other.y - area.y) * share };
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

export function shorten(context: Pen, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}
