/** What is drawn behind and over a chart: the stretches of cells with their change, and lines for peak and limit. */

import type uPlot from 'uplot';

import type { CellRow, Running } from './message.js';
import type { Palette } from './palette.js';
import { change } from './quantity.js';

const NUMBER_WIDTH = 18;
const CHANGE_WIDTH = 74;
// Every second cell, so that cells without a pause between them can be told apart.
const FAINT = 0.35;

export interface Marked {
  device: string;
  cells: readonly CellRow[];
  running: Running | null;
  peak: number | null;
  limit: number | null;
}

/** Cells as bands; numbers and changes where there is room for them. */
export function drawCells(plot: uPlot, marked: Marked, palette: Palette): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const bands = bandsOf(plot, marked);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = palette.band;
  for (const odd of [false, true]) {
    ctx.globalAlpha = odd ? FAINT : 1;
    ctx.beginPath();
    for (const band of bands.filter(one => one.odd === odd)) {
      ctx.rect(band.left, bbox.top, band.width, bbox.height);
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  ctx.font = palette.font.replace('10px', `${10 * scale}px`);
  ctx.fillStyle = palette.text;
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'left';
  for (const { left, width, cell } of bands) {
    if (width > NUMBER_WIDTH * scale) {
      const words = wordsOf(cell, marked.device, width > CHANGE_WIDTH * scale);
      const x = Math.max(left, bbox.left) + 2 * scale;
      ctx.fillText(words, x, bbox.top + bbox.height - 2 * scale);
    }
  }
  ctx.restore();
}

/** Horizontal lines, where they are in sight. */
export function drawLines(plot: uPlot, marked: Marked, palette: Palette): void {
  for (const [bytes, colour] of [
    [marked.peak, palette.peak],
    [marked.limit, palette.limit]
  ] as const) {
    if (bytes === null || bytes > (plot.scales['y']?.max ?? 0)) {
      continue;
    }
    const { ctx, bbox } = plot;
    const y = plot.valToPos(bytes, 'y', true);
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }
}

interface Band {
  left: number;
  width: number;
  odd: boolean;
  /** Null for the running cell. */
  cell: CellRow | null;
}

/** What is in sight, in pixels of the canvas. */
function bandsOf(plot: uPlot, { cells, running }: Marked): Band[] {
  const [from, to] = [plot.scales['x']?.min ?? 0, plot.scales['x']?.max ?? 0];
  const bands: Band[] = [];
  const add = (begin: number, end: number, odd: boolean, cell: CellRow | null): void => {
    if (end >= from && begin <= to) {
      const left = plot.valToPos(begin, 'x', true);
      const right = plot.valToPos(end, 'x', true);
      bands.push({ left, width: Math.max(right - left, devicePixelRatio), odd, cell });
    }
  };
  cells.forEach((cell, i) => {
    add(cell.began, cell.began + cell.duration_s * 1000, i % 2 === 1, cell);
  });
  if (running) {
    const now = plot.data[0].at(-1) ?? to;
    add(now - running.elapsed_s * 1000, now, cells.length % 2 === 1, null);
  }
  return bands;
}

function wordsOf(cell: CellRow | null, device: string, long: boolean): string {
  if (!cell) {
    return '[*]';
  }
  const number = `[${cell.number ?? ' '}]`;
  const memory = long ? cell.memory.find(one => one.device === device) : undefined;
  return memory ? `${number} ${change(memory.after - memory.before)}` : number;
}
