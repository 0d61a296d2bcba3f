/** One holder of memory: a bar; opened, what it is, and what can be done about it. */

import type { Actions } from './actions.js';
import { button, el } from './el.js';
import type { Group } from './holding.js';
import { VERSION } from './message.js';
import type { AccountRow, Holders } from './message.js';
import { size } from './quantity.js';

export interface Drawn {
  largest: number;
  /** The latest answer to what keeps something alive. */
  holders: Holders | null;
  /** Keys of the holders that stand open; changed by a click. */
  opened: Set<string>;
}

/** A holder, or several that are alike. */
export function holderRow(group: Group, actions: Actions, drawn: Drawn): HTMLElement {
  const made = el('div', {
    className: 'ti-Bar',
    data: { tiPath: group.path, tiKind: group.kind, tiKey: group.key }
  });
  const fill = el('span', { className: 'ti-Bar-fill' });
  fill.style.width = `${(100 * group.bytes) / drawn.largest}%`;
  const count = group.rows.length > 1 ? ` × ${group.rows.length}` : '';
  const head = el(
    'button',
    { className: 'ti-Bar-head', title: `${group.path}${count} – ${group.kind}` },
    el('span', { className: 'ti-Bar-text', text: group.path + count }),
    el('span', { className: 'ti-Bar-size', text: size(group.bytes) }),
    el('span', { className: 'ti-Bar-track' }, fill)
  );
  head.type = 'button';
  let more: HTMLElement | null = null;
  const show = (): void => {
    const open = drawn.opened.has(group.key);
    head.setAttribute('aria-expanded', String(open));
    more?.remove();
    more = open ? el('div', { className: 'ti-Bar-more' }, ...inside(group, actions, drawn)) : null;
    made.append(...(more ? [more] : []));
  };
  head.addEventListener('click', () => {
    if (!drawn.opened.delete(group.key)) {
      drawn.opened.add(group.key);
    }
    show();
  });
  made.append(head);
  show();
  return made;
}

function inside(group: Group, actions: Actions, drawn: Drawn): HTMLElement[] {
  const several = group.rows.length > 1;
  return group.rows.map(row => {
    const made = el('div', { className: 'ti-Holder', data: { tiPath: row.path } });
    const what = several ? [row.path, size(row.bytes)] : [row.kind, ...also(row, actions)];
    made.append(
      el('span', { className: 'ti-Quiet ti-Holder-what', text: what.join(', ') }),
      ...buttons(row, actions)
    );
    if (drawn.holders?.path === row.path) {
      made.append(kept(drawn.holders, actions));
    }
    return made;
  });
}

function also(row: AccountRow, { trans }: Actions): string[] {
  const pieces = row.pieces > 1 ? [trans.__('%1 pieces', row.pieces)] : [];
  return row.also.length > 0 ? [...pieces, trans.__('also %1', row.also.join(', '))] : pieces;
}

function buttons(row: AccountRow, actions: Actions): HTMLButtonElement[] {
  const { trans } = actions;
  const made = [
    button(trans.__('copy'), trans.__('Copy this name'), () => {
      actions.copy(row.path);
    }),
    button(trans.__('holders'), trans.__('What keeps this alive'), () => {
      actions.ask({ v: VERSION, ask: 'holders', path: row.path });
    })
  ];
  const { cell, free } = row;
  if (cell !== null) {
    made.unshift(
      button(
        trans.__('show'),
        trans.__('Go to cell [%1], after which it was first seen', cell),
        () => {
          actions.jump({ id: null, number: cell, line: null, code: '' });
        }
      )
    );
  }
  if (free !== null) {
    const path = free === 'outputs' ? row.path : '';
    made.push(
      button(trans.__('free …'), trans.__('Asks first'), () => {
        actions.free({ item: free, path });
      })
    );
  }
  return made;
}

/** What keeps it alive, each with the line that lets go of it there. */
export function kept(holders: Holders, actions: Actions): HTMLElement {
  const { trans } = actions;
  const made = el('ul', { className: 'ti-Holders' });
  if (holders.gone) {
    made.append(el('li', { text: trans.__('Nothing is called %1 any more.', holders.path) }));
  } else if (holders.unknown === true) {
    made.append(el('li', { text: trans.__('It cannot be looked up by its name.') }));
  } else if (holders.rows.length === 0) {
    made.append(el('li', { text: trans.__('Nothing that Python can see holds it.') }));
  }
  for (const { path, kind, fix } of holders.rows) {
    const item = el(
      'li',
      {},
      el('code', { text: path }),
      el('span', { className: 'ti-Quiet', text: ` ${kind}` })
    );
    if (fix) {
      const copy = button(trans.__('copy'), trans.__('Copy this line'), () => {
        actions.copy(fix);
      });
      item.append(
        el('div', { className: 'ti-Fix ti-Holder-fix' }, el('code', { text: fix }), copy)
      );
    }
    made.append(item);
  }
  return made;
}
