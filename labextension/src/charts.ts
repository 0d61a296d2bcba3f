/** One chart per device, the host last: what fills up first stands on top. */

import type { Actions } from './actions.js';
import { Chart } from './chart.js';
import { el } from './el.js';
import type { KernelRecord } from './record.js';

export class Charts {
  readonly node = el('div', { className: 'ti-Charts' });
  private charts = new Map<string, Chart>();

  /** @param actions - carries out a click on a cell */
  constructor(private readonly actions: Actions) {}

  render(record: KernelRecord): void {
    const names = [...record.series.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    for (const [name, chart] of this.charts) {
      if (!record.series.has(name)) {
        chart.reset();
        chart.node.remove();
        this.charts.delete(name);
      }
    }
    for (const name of names) {
      const series = record.series.get(name);
      if (series) {
        const { cells, running } = record;
        const { device, peak, limit } = series;
        this.chart(name, series).render(series, { device, cells, running, peak, limit });
      }
    }
  }

  /** Draws all anew: the theme has changed. */
  reset(): void {
    this.charts.forEach(chart => {
      chart.reset();
    });
  }

  private chart(name: string, series: ConstructorParameters<typeof Chart>[0]): Chart {
    let found = this.charts.get(name);
    if (!found) {
      found = new Chart(series, cell => {
        this.actions.jump({ ...cell, line: null, code: '' });
      });
      this.charts.set(name, found);
      this.node.append(found.node);
      const ordered = [...this.charts].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
      this.node.append(...ordered.map(([, chart]) => chart.node));
    }
    return found;
  }
}

function rank(device: string): number {
  return device === 'host' ? 1 : 0;
}
