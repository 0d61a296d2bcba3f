/** Memory of one device over time, drawn by uPlot. */

import uPlot from 'uplot';

import { el, setText } from './el.js';
import { drawCells, drawLines } from './marks.js';
import type { CellRow } from './message.js';
import type { Marked } from './marks.js';
import { paletteOf } from './palette.js';
import { cellAt } from './pick.js';
import type { Picked } from './pick.js';
import type { Palette } from './palette.js';
import { size } from './quantity.js';
import type { Series } from './series.js';
import { thinned } from './thinning.js';

const HEIGHT = 120;
const AXIS_WIDTH = 54;
// The limit is drawn once it is near; before that it would flatten the rest of the chart.
const NEAR = 0.5;
// Sizes count in steps of 1,024, so the lines of the grid stand at powers of two.
const STEPS = Array.from({ length: 45 }, (_, power) => 2 ** power);
const HEADROOM = 1.12;
// How far from a cell the pointer may be, in pixels; and what a hand moves that only clicks.
const NEAR_CELL = 6;
const STILL = 4;

interface Drawn {
  width: number;
  until: number;
  latest: number | null;
  peak: number | null;
  limit: number | null;
  last: CellRow | undefined;
  busy: boolean;
}

export class Chart {
  readonly node: HTMLElement;
  private readonly words = el('span', { className: 'ti-Chart-words' });
  private readonly canvas = el('div', { className: 'ti-Chart-plot' });
  private plot: uPlot | null = null;
  private palette: Palette | null = null;
  private marked: Marked;
  private width = 0;
  /** What the drawing that is there shows. */
  private drawn: Drawn | null = null;
  /** What the user has chosen to see of it; null for all. */
  private zoom: { min: number; max: number } | null = null;

  /**
   * @param series - what is drawn
   * @param onCell - told which cell was clicked
   */
  constructor(
    private series: Series,
    private readonly onCell: (cell: Picked) => void
  ) {
    this.marked = { device: series.device, cells: [], running: null, peak: null, limit: null };
    const name = el('b', { text: series.device });
    const head = el('div', { className: 'ti-Chart-head' }, name, this.words);
    this.node = el(
      'div',
      { className: 'ti-Chart', data: { tiDevice: series.device } },
      head,
      this.canvas
    );
  }

  /** Draws what the series holds now. */
  render(series: Series, marked: Marked): void {
    this.series = series;
    this.marked = marked;
    this.say(series.latest);
    const width = this.canvas.clientWidth;
    if (width === 0 || series.at.length === 0) {
      return;
    }
    this.width = width;
    this.plot ??= this.make(width);
    if (this.plot.width !== width) {
      this.plot.setSize({ width, height: HEIGHT });
    }
    if (this.looksTheSame(this.plot)) {
      return;
    }
    const { at, latest, peak, limit } = series;
    const { cells, running } = marked;
    const until = at.at(-1) ?? 0;
    this.drawn = { width, until, latest, peak, limit, last: cells.at(-1), busy: running !== null };
    const { zoom } = this;
    this.plot.setData(this.data(), zoom === null);
    if (zoom) {
      this.plot.setScale('x', zoom);
    }
  }

  /** True if a drawing of this moment would differ from the one that is there by less than a pixel. */
  private looksTheSame(plot: uPlot): boolean {
    const { drawn, marked, series } = this;
    const { min: from = 0, max: to = 0 } = plot.scales['x'] ?? {};
    const { min: low = 0, max: high = 0 } = plot.scales['y'] ?? {};
    const until = series.at.at(-1) ?? 0;
    if (!drawn || this.zoom || to <= from || high <= low || until < drawn.until) {
      return false;
    }
    const right = ((until - drawn.until) / (to - from)) * (this.width - AXIS_WIDTH);
    const up = (Math.abs((series.latest ?? 0) - (drawn.latest ?? 0)) / (high - low)) * HEIGHT;
    return (
      right < 1 &&
      up < 1 &&
      drawn.width === this.width &&
      drawn.peak === series.peak &&
      drawn.limit === series.limit &&
      drawn.last === marked.cells.at(-1) &&
      drawn.busy === (marked.running !== null)
    );
  }

  /** Forgets colours and drawing: the theme has changed. */
  reset(): void {
    this.plot?.destroy();
    this.plot = null;
    this.palette = null;
    this.drawn = null;
  }

  private data(): uPlot.AlignedData {
    const { at, allocated, reserved } = this.series;
    const { min, max } = this.zoom ?? { min: at[0] ?? 0, max: at.at(-1) ?? 0 };
    return thinned(at, [allocated, reserved], min, max, this.width - AXIS_WIDTH);
  }

  /** A stretch that was dragged over stays in sight while looks come in; a double click shows all again. */
  private noteZoom(min: number, max: number): void {
    const { at } = this.series;
    const all = min <= (at[0] ?? 0) && max >= (this.plot?.data[0].at(-1) ?? 0);
    this.zoom = all ? null : { min, max };
  }

  private say(allocated: number | null, cell: Picked | null = null): void {
    const { peak, limit } = this.series;
    const parts = [
      cell === null ? '' : `[${cell.number ?? ' '}]`,
      allocated === null ? '' : size(allocated)
    ];
    if (peak !== null) {
      parts.push(`peak ${size(peak)}`);
    }
    if (limit !== null) {
      parts.push(`of ${size(limit)}`);
    }
    setText(this.words, parts.filter(part => part !== '').join(' · '));
  }

  /** The cell at the pointer. */
  private cellUnder(plot: uPlot): Picked | null {
    const left = plot.cursor.left ?? -1;
    if (left < 0) {
      return null;
    }
    const { cells, running } = this.marked;
    const [at, beside] = [plot.posToVal(left, 'x'), plot.posToVal(left + NEAR_CELL, 'x')];
    return cellAt(cells, running, this.series.at.at(-1) ?? 0, at, beside - at);
  }

  /** A click that is no drag (which zooms) goes to the cell. */
  private listen(plot: uPlot): void {
    let began = 0;
    plot.over.addEventListener('mousedown', event => {
      began = event.clientX;
    });
    plot.over.addEventListener('click', event => {
      const cell = Math.abs(event.clientX - began) > STILL ? null : this.cellUnder(plot);
      if (cell) {
        this.onCell(cell);
      }
    });
  }

  private range(highest: number): [number, number] {
    const { peak, limit } = this.series;
    const top = Math.max(highest, peak ?? 0, 1 << 20) * HEADROOM;
    return [0, limit !== null && highest > NEAR * limit ? Math.max(top, limit * 1.02) : top];
  }

  private make(width: number): uPlot {
    const palette = (this.palette ??= paletteOf(this.node));
    const axis = {
      stroke: palette.text,
      font: palette.font,
      grid: { stroke: palette.grid, width: 1 }
    };
    const options: uPlot.Options = {
      width,
      height: HEIGHT,
      ms: 1,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      padding: [6, 6, 0, 0],
      scales: { y: { range: (_, __, highest) => this.range(highest) } },
      axes: [
        { ...axis, size: 26, space: 70 },
        {
          ...axis,
          size: AXIS_WIDTH,
          incrs: STEPS,
          space: 28,
          values: (_, values) => values.map(value => size(value))
        }
      ],
      series: [
        {},
        { stroke: palette.line, fill: palette.fill, width: 1.5, points: { show: false } },
        { stroke: palette.reserved, width: 1, dash: [3, 3], points: { show: false } }
      ],
      hooks: {
        ready: [
          plot => {
            this.listen(plot);
          }
        ],
        drawClear: [
          plot => {
            drawCells(plot, this.marked, palette);
          }
        ],
        draw: [
          plot => {
            drawLines(plot, this.marked, palette);
          }
        ],
        setScale: [
          (plot, key) => {
            if (key === 'x') {
              this.noteZoom(plot.scales['x']?.min ?? 0, plot.scales['x']?.max ?? 0);
            }
          }
        ],
        setCursor: [
          plot => {
            const index = plot.cursor.idx;
            if (typeof index === 'number') {
              this.say(plot.data[1]?.[index] ?? null, this.cellUnder(plot));
            } else {
              this.say(this.series.latest);
            }
          }
        ]
      }
    };
    return new uPlot(options, this.data(), this.canvas);
  }
}
