/** Who holds the memory, on request: by device and kind as one bar, by holder below, and what can be let go of. */

import type { Actions } from './actions.js';
import { button, el } from './el.js';
import { holderRow } from './holder_row.js';
import type { Drawn } from './holder_row.js';
import { holdingsOf } from './holding.js';
import type { Group, Holding } from './holding.js';
import { VERSION } from './message.js';
import type { Account } from './message.js';
import { size } from './quantity.js';
import type { KernelRecord } from './record.js';
import { Rows } from './rows.js';
import { Section } from './section.js';

// A kind that would be no wider than a hair is named in the legend only.
const HAIR = 0.004;

export class AccountView {
  readonly section: Section;
  private readonly answer = el('div', { className: 'ti-Account' });
  private readonly hint = el('div', { className: 'ti-Quiet ti-Account-hint' });
  private readonly opened = new Set<string>();
  private record: KernelRecord | null = null;
  /** A question that has no answer yet, with what was known of its kernel when it was asked. */
  private asked: { record: KernelRecord; account: Account | null; waits: boolean } | null = null;

  constructor(private readonly actions: Actions) {
    const { trans } = actions;
    this.section = new Section(trans.__('Who holds memory'), 'account');
    const look = button(
      trans.__('Look now'),
      trans.__('Goes through all objects of the kernel, once'),
      () => {
        this.note(this.record);
        actions.ask({ v: VERSION, ask: 'account' });
      }
    );
    this.section.body.append(look, this.hint, this.answer);
  }

  render(record: KernelRecord): void {
    this.record = record;
    const { asked } = this;
    const same = asked?.record === record && asked.account === record.account;
    this.asked = same && record.live && !record.refused ? asked : null;
    this.section.node.hidden = !record.live;
    this.hint.textContent = this.said(record);
    this.answer.replaceChildren(...(record.account ? this.drawn(record.account, record) : []));
  }

  /** Notes that somebody asks, and says so until the answer is there. */
  private note(record: KernelRecord | null): void {
    if (record) {
      record.refused = false;
      this.asked = { record, account: record.account, waits: record.running !== null };
      this.render(record);
    }
  }

  private said({ account, freed, refused }: KernelRecord): string {
    const { trans } = this.actions;
    if (this.asked) {
      return this.asked.waits
        ? trans.__('A cell is running: the answer comes when it has ended.')
        : trans.__('looking …');
    }
    if (refused) {
      return trans.__('A cell is running: ask again when it has ended.');
    }
    if (freed) {
      return freed.bytes > 0
        ? trans.__('%1 came free.', size(freed.bytes))
        : trans.__('Nothing came free: something else holds it still.');
    }
    return account?.rows.length === 0 ? trans.__('No tensor is alive.') : '';
  }

  private drawn(account: Account, { holders }: KernelRecord): HTMLElement[] {
    const holdings = holdingsOf(account.rows);
    const largest = Math.max(...holdings.flatMap(one => one.groups.map(group => group.bytes)), 1);
    const drawn = { largest, holders, opened: this.opened };
    return [
      ...holdings.map(one => this.sums(one)),
      ...this.freeable(account),
      ...holdings.flatMap(one => [
        ...(holdings.length > 1
          ? [el('div', { className: 'ti-Account-device', text: one.device })]
          : []),
        this.bars(one, drawn)
      ]),
      ...account.notes.map(text => el('div', { className: 'ti-Quiet', text }))
    ];
  }

  /** The holders of a device; the small ones when they are asked for. */
  private bars({ groups }: Holding, drawn: Drawn): HTMLElement {
    const rows = new Rows<Group>(
      el('div'),
      group => group.key,
      group => holderRow(group, this.actions, drawn),
      count => this.actions.trans.__('%1 smaller …', count)
    );
    rows.show(groups);
    return rows.node;
  }

  /** One bar for a device, in which each kind has its share. */
  private sums({ device, bytes, kinds }: Holding): HTMLElement {
    const bar = el('div', { className: 'ti-Share' });
    const legend = el('div', { className: 'ti-Legend' });
    for (const [kind, some] of kinds) {
      const data = { tiKind: kind };
      if (some >= HAIR * bytes) {
        const part = el('span', { title: `${kind}: ${size(some)}`, data });
        part.style.flexGrow = String(some / Math.max(bytes, 1));
        bar.append(part);
      }
      const swatch = el('i', { data });
      const name = el('span', { text: `${kind} ${size(some)}` });
      legend.append(el('span', { className: 'ti-Legend-one' }, swatch, name));
    }
    const head = el(
      'div',
      { className: 'ti-Account-head' },
      el('b', { text: device }),
      el('span', { text: size(bytes) })
    );
    return el(
      'div',
      { className: 'ti-Account-sum', data: { tiDevice: device } },
      head,
      bar,
      legend
    );
  }

  /** What the notebook itself holds and no variable of the user does. */
  private freeable({ free }: Account): HTMLElement[] {
    const { trans } = this.actions;
    return free.map(({ item, what, bytes, why }) =>
      el(
        'div',
        { className: 'ti-Freeable', data: { tiItem: item } },
        el('span', { text: `${what}: ${size(bytes)}`, title: why }),
        button(trans.__('free …'), trans.__('Asks first'), () => {
          this.actions.free({ item, path: '' });
        })
      )
    );
  }
}
