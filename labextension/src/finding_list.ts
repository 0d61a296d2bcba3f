/** What was found in the notebook, by pitfall, the worst first. */

import { inline } from '../../torch_inspector/views/static/card.js';
import type { Actions } from './actions.js';
import { button, el } from './el.js';
import { countOf } from './grouping.js';
import type { Found, Group } from './grouping.js';
import type { KernelRecord } from './record.js';
import { Rows } from './rows.js';
import { Section } from './section.js';

const SHOWN = 20;

export class FindingList {
  readonly section: Section;
  private readonly rows: Rows<Group>;
  private record: KernelRecord | null = null;

  constructor(private readonly actions: Actions) {
    this.section = new Section(actions.trans.__('Findings'), 'findings');
    this.rows = new Rows<Group>(
      this.section.body,
      group => JSON.stringify(group),
      group => this.group(group),
      count => actions.trans.__('%1 more …', count)
    );
  }

  render(record: KernelRecord): void {
    this.record = record;
    const { groups } = record;
    this.section.setCount(countOf(groups));
    this.rows.show(groups);
  }

  private group(group: Group): HTMLElement {
    const { trans } = this.actions;
    const dot = el('span', {
      className: 'ti-Dot',
      title: group.severity,
      data: { tiSeverity: group.severity }
    });
    const page = button(trans.__('why?'), trans.__('Open the page of this pitfall'), () => {
      this.actions.openPage(group.slug);
    });
    const head = el(
      'div',
      { className: 'ti-Finding-head' },
      dot,
      el('b', { text: group.slug }),
      page
    );
    const made = el('div', { className: 'ti-Finding', data: { tiSlug: group.slug } }, head);
    for (const found of group.found.slice(0, SHOWN)) {
      made.append(this.one(found));
    }
    const more = group.found.length - SHOWN;
    if (more > 0) {
      made.append(el('div', { className: 'ti-Quiet', text: trans.__('and %1 more', more) }));
    }
    return made;
  }

  private one({ finding, cell }: Found): HTMLElement {
    const { trans } = this.actions;
    const number = finding.cell ?? cell.number;
    const where =
      finding.line === null
        ? trans.__('cell %1', number ?? '')
        : trans.__('cell %1, line %2', number ?? '', finding.line);
    const id =
      number === cell.number
        ? cell.id
        : (this.record?.cells.find(one => one.number === number)?.id ?? null);
    const link = el('button', {
      className: 'ti-Link',
      text: where,
      title: trans.__('Go to the cell'),
      onClick: () => {
        this.actions.jump({ id, number, line: finding.line, code: finding.code ?? '' });
      }
    });
    link.type = 'button';
    const told = el('span');
    told.append(...inline(finding.message));
    const made = el('div', { className: 'ti-Finding-one' }, link, told);
    if (finding.fix_sentence) {
      const sentence = el('div');
      sentence.append(trans.__('Fix: '), ...inline(finding.fix_sentence));
      made.append(sentence);
    } else if (finding.fix) {
      made.append(el('pre', { className: 'ti-Fix', text: finding.fix }));
    }
    return made;
  }
}
