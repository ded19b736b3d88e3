/** A pen with the methods of a canvas that writes SVG: pictures are drawn by one code in both forms. */

import type { Pen } from "./drawing";
import { escapeXml } from "./exportView";

const ANCHORS: Record<string, string> = { center: "middle", left: "start", start: "start" };
// Shares of the size of the font by which SVG's baseline lies below the canvas' one.
const BASELINES: Record<string, number> = { middle: 0.35, bottom: -0.22, alphabetic: 0 };

export class SvgPen implements Pen {
  fillStyle = "#000"; strokeStyle = "#000"; globalAlpha = 1; lineWidth = 1; lineJoin: CanvasLineJoin = "miter";
  font = "12px sans-serif"; textAlign: CanvasTextAlign = "start"; textBaseline: CanvasTextBaseline = "alphabetic";
  private readonly elements: string[] = [];
  private shapes: string[] = [];
  private path = "";

  /** The canvas gives the size of the view, and its context the widths of texts. */
  constructor(readonly canvas: HTMLCanvasElement, private readonly measuring: CanvasRenderingContext2D) {}

  setTransform(): void {}
  clearRect(): void {}
  beginPath(): void { this.shapes = []; this.path = ""; }
  moveTo(x: number, y: number): void { this.path += `M${round(x)} ${round(y)}`; }
  lineTo(x: number, y: number): void { this.path += `L${round(x)} ${round(y)}`; }

  arc(x: number, y: number, radius: number): void {
    this.shapes.push(`circle cx="${round(x)}" cy="${round(y)}" r="${round(radius)}"`);
  }

  roundRect(x: number, y: number, width: number, height: number, radius: number): void {
    this.shapes.push(`rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}"`);
  }

  fill(): void { this.draw(`fill="${this.fillStyle}"`); }
  stroke(): void { this.draw(`fill="none" stroke="${this.strokeStyle}" stroke-width="${round(this.lineWidth)}"`); }
  fillText(text: string, x: number, y: number): void { this.write(text, x, y, `fill="${this.fillStyle}"`); }

  strokeText(text: string, x: number, y: number): void {
    const line = `stroke="${this.strokeStyle}" stroke-width="${round(this.lineWidth)}" stroke-linejoin="${this.lineJoin}"`;
    this.write(text, x, y, `fill="none" ${line}`);
  }

  measureText(text: string): TextMetrics {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }

  /** Return the picture on a ground of a colour. */
  finish(width: number, height: number, ground: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">\n`
      + `<rect width="${width}" height="${height}" fill="${ground}"/>\n${this.elements.join("\n")}\n</svg>\n`;
  }

  private draw(style: string): void {
    const shapes = this.path ? [...this.shapes, `path d="${this.path}"`] : this.shapes;
    for (const shape of shapes) this.elements.push(`<${shape} ${style}${this.opacity()}/>`);
  }

  private write(text: string, x: number, y: number, style: string): void {
    const [, weight = "400", size = "12", family = "sans-serif"] = /^(\d+(?= ))? ?([\d.]+)px (.+)$/.exec(this.font) ?? [];
    const baseline = y + (BASELINES[this.textBaseline] ?? 0) * Number(size);
    const font = `font-family="${escapeXml(family)}" font-size="${round(Number(size))}" font-weight="${weight}"`;
    const anchor = `text-anchor="${ANCHORS[this.textAlign] ?? "start"}"`;
    this.elements.push(
      `<text x="${round(x)}" y="${round(baseline)}" ${font} ${anchor} ${style}${this.opacity()}>${escapeXml(text)}</text>`,
    );
  }

  private opacity(): string {
    return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : "";
  }
}

const round = (value: number) => Math.round(value * 100) / 100;
