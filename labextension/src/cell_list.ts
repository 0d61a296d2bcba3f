/** The cells that have run: number, duration, memory, findings. A click goes to the cell. */

import type { Actions } from './actions.js';
import { el } from './el.js';
import type { CellRow } from './message.js';
import { change, seconds, size } from './quantity.js';
import type { KernelRecord } from './record.js';
import { Rows } from './rows.js';
import { Section } from './section.js';

export class CellList {
  readonly section: Section;
  private readonly rows: Rows<CellRow>;
  private device = 'host';

  constructor(private readonly actions: Actions) {
    const { trans } = actions;
    this.section = new Section(trans.__('Cells'), 'cells');
    const head = el('div', { className: 'ti-Cell ti-Cell-head' });
    for (const title of [
      trans.__('cell'),
      trans.__('time'),
      trans.__('change'),
      trans.__('peak'),
      ''
    ]) {
      head.append(el('span', { text: title }));
    }
    const list = el('div', { className: 'ti-List' });
    this.section.body.append(head, list);
    this.rows = new Rows<CellRow>(
      list,
      cell => `${this.device} ${cell.began} ${cell.number ?? ''}`,
      cell => this.row(cell),
      count => trans.__('%1 earlier …', count)
    );
  }

  render(record: KernelRecord): void {
    this.device = record.mainDevice();
    this.section.setCount(record.cells.length);
    this.rows.show([...record.cells].reverse());
  }

  private row(cell: CellRow): HTMLElement {
    const memory = cell.memory.find(one => one.device === this.device);
    const { trans } = this.actions;
    const peak = memory ? size(memory.peak) : '';
    const failed = cell.error === null ? '' : trans.__('ended with %1', cell.error);
    const row = el('button', {
      className: 'ti-Cell',
      title: failed || trans.__('Go to the cell'),
      data: { tiCell: String(cell.number ?? ''), tiFailed: String(cell.error !== null) },
      onClick: () => {
        this.actions.jump({ id: cell.id, number: cell.number, line: null, code: '' });
      }
    });
    row.type = 'button';
    row.append(
      el('span', { className: 'ti-Cell-number', text: `[${cell.number ?? ' '}]` }),
      el('span', { text: seconds(cell.duration_s) }),
      el('span', {
        className: 'ti-Cell-change',
        text: memory ? change(memory.after - memory.before) : ''
      }),
      el('span', { text: peak }),
      this.marks(cell)
    );
    return row;
  }

  private marks(cell: CellRow): HTMLElement {
    const marks = el('span', { className: 'ti-Cell-marks' });
    for (const severity of ['error', 'warning', 'hint'] as const) {
      const found = cell.findings.filter(one => one.severity === severity);
      if (found.length > 0) {
        const title = found.map(one => one.slug).join(', ');
        marks.append(
          el('span', {
            className: 'ti-Mark',
            text: String(found.length),
            title,
            data: { tiSeverity: severity }
          })
        );
      }
    }
    return marks;
  }
}
