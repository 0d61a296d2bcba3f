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
  const [from, to] = [plot.scales['x']?.min ?? 0, plot.scales['x']?.max ?? 0];
  const scale = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = palette.font.replace('10px', `${10 * scale}px`);
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'left';
  for (const [index, band] of bandsOf(marked, to).entries()) {
    if (band.end < from || band.begin > to) {
      continue;
    }
    const left = plot.valToPos(band.begin, 'x', true);
    const width = Math.max(plot.valToPos(band.end, 'x', true) - left, scale);
    ctx.globalAlpha = index % 2 === 0 ? 1 : FAINT;
    ctx.fillStyle = palette.band;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.globalAlpha = 1;
    const text =
      width > CHANGE_WIDTH * scale ? band.long : width > NUMBER_WIDTH * scale ? band.short : '';
    ctx.fillStyle = palette.text;
    ctx.fillText(text, Math.max(left, bbox.left) + 2 * scale, bbox.top + bbox.height - 2 * scale);
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
  begin: number;
  end: number;
  short: string;
  long: string;
}

function bandsOf(marked: Marked, now: number): Band[] {
  const bands = marked.cells.map(cell => {
    const memory = cell.memory.find(one => one.device === marked.device);
    const short = `[${cell.number ?? ' '}]`;
    const long = memory ? `${short} ${change(memory.after - memory.before)}` : short;
    return { begin: cell.began, end: cell.began + cell.duration_s * 1000, short, long };
  });
  if (marked.running) {
    const short = '[*]';
    bands.push({ begin: now - marked.running.elapsed_s * 1000, end: now, short, long: short });
  }
  return bands;
}
