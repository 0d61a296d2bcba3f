/** Who holds the memory, on request: bars by holder; a click on one asks what keeps it alive. */

import type { Actions } from './actions.js';
import { button, el } from './el.js';
import { VERSION } from './message.js';
import type { AccountRow, Holders } from './message.js';
import { size } from './quantity.js';
import type { KernelRecord } from './record.js';
import { Section } from './section.js';

const SHOWN = 300;

export class AccountView {
  readonly section: Section;
  private readonly answer = el('div', { className: 'ti-Account' });
  private readonly hint = el('div', { className: 'ti-Quiet' });

  constructor(private readonly actions: Actions) {
    const { trans } = actions;
    this.section = new Section(trans.__('Who holds memory'), 'account');
    const look = button(
      trans.__('Look now'),
      trans.__('Goes through all objects of the kernel, once'),
      () => {
        this.hint.textContent = trans.__('looking …');
        actions.ask({ v: VERSION, ask: 'account' });
      }
    );
    this.section.body.append(look, this.hint, this.answer);
  }

  render(record: KernelRecord): void {
    const { trans } = this.actions;
    this.section.node.hidden = !record.live;
    this.hint.textContent = record.refused
      ? trans.__('A cell is running: ask again when it has ended.')
      : '';
    this.answer.replaceChildren();
    if (!record.account) {
      return;
    }
    const { rows, notes } = record.account;
    if (rows.length === 0) {
      this.hint.textContent = trans.__('No tensor is alive.');
    }
    const largest = Math.max(...rows.map(row => row.bytes), 1);
    for (const row of rows.slice(0, SHOWN)) {
      const holders = record.holders?.path === row.path ? record.holders : null;
      this.answer.append(this.bar(row, largest, holders));
    }
    for (const note of notes) {
      this.answer.append(el('div', { className: 'ti-Quiet', text: note }));
    }
  }

  private bar(row: AccountRow, largest: number, holders: Holders | null): HTMLElement {
    const { trans } = this.actions;
    const fill = el('span', { className: 'ti-Bar-fill', data: { tiKind: row.kind } });
    fill.style.width = `${(100 * row.bytes) / largest}%`;
    const text = el('span', { className: 'ti-Bar-text', text: row.path, title: row.path });
    const copy = button(trans.__('copy'), trans.__('Copy this name'), () => {
      void navigator.clipboard.writeText(row.path).catch(() => undefined);
    });
    const keep = button(trans.__('holders'), trans.__('What keeps this alive'), () => {
      this.actions.ask({ v: VERSION, ask: 'holders', path: row.path });
    });
    const kind = el('span', {
      className: 'ti-Quiet ti-Bar-kind',
      text: `${row.kind}, ${row.device}`
    });
    const number = el('span', { className: 'ti-Bar-size', text: size(row.bytes) });
    const line = el('div', { className: 'ti-Bar-line' }, text, number, kind, copy, keep);
    const made = el('div', { className: 'ti-Bar', data: { tiPath: row.path } }, fill, line);
    return holders ? el('div', {}, made, this.kept(holders)) : made;
  }

  private kept(holders: Holders): HTMLElement {
    const { trans } = this.actions;
    const made = el('ul', { className: 'ti-Holders' });
    if (holders.gone) {
      made.append(el('li', { text: trans.__('It is gone.') }));
    }
    for (const row of holders.rows) {
      const parts = [
        el('code', { text: row.path }),
        el('span', { className: 'ti-Quiet', text: ` ${row.kind}` })
      ];
      made.append(
        el(
          'li',
          {},
          ...parts,
          ...(row.fix ? [el('pre', { className: 'ti-Fix', text: row.fix })] : [])
        )
      );
    }
    return made;
  }
}
