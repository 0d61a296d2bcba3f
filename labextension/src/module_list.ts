/** The modules and optimizers that live after the latest cell; what is odd about one is said beside it. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { el } from './el.js';
import type { ModuleRow, OptimizerRow } from './message.js';
import { amount, size } from './quantity.js';
import type { KernelRecord } from './record.js';
import { Rows } from './rows.js';
import { Section } from './section.js';

export class ModuleList {
  readonly modules: Section;
  readonly optimizers: Section;
  private readonly moduleRows: Rows<ModuleRow>;
  private readonly optimizerRows: Rows<OptimizerRow>;

  constructor(private readonly trans: TranslationBundle) {
    this.modules = new Section(trans.__('Modules'), 'modules');
    this.optimizers = new Section(trans.__('Optimizers'), 'optimizers');
    const more = (count: number): string => trans.__('%1 more …', count);
    const key = (row: object): string => JSON.stringify(row);
    this.moduleRows = new Rows<ModuleRow>(this.modules.body, key, row => this.module(row), more);
    this.optimizerRows = new Rows<OptimizerRow>(
      this.optimizers.body,
      key,
      row => this.optimizer(row),
      more
    );
  }

  render(record: KernelRecord): void {
    const { modules, optimizers, complete } = record.state;
    const number = `${modules.length}${complete ? '' : '+'}`;
    this.modules.setCount(modules.length, number);
    this.optimizers.setCount(optimizers.length);
    this.moduleRows.show(modules);
    this.optimizerRows.show(optimizers);
  }

  private module(row: ModuleRow): HTMLElement {
    const { trans } = this;
    const mode = row.training ? trans.__('train') : trans.__('eval');
    const parts = [mode];
    // A module that no cell has called yet is not looked into, and says nothing of its parameters.
    if (row.parameters > 0) {
      parts.push(row.devices.join(', '), trans.__('%1 parameters', amount(row.parameters)));
    }
    if (row.trainable < row.parameters) {
      parts.push(trans.__('%1 trainable', amount(row.trainable)));
    }
    if (row.parameters > 0) {
      parts.push(size(row.bytes));
    }
    return thing(row.path, row.kind, parts, oddities(row, trans));
  }

  private optimizer(row: OptimizerRow): HTMLElement {
    const { trans } = this;
    const parts = [trans.__('%1 tensors', row.parameters)];
    if (row.learning_rate !== null) {
      parts.unshift(`lr ${Number(row.learning_rate.toPrecision(4))}`);
    }
    if (row.state_bytes > 0) {
      parts.push(trans.__('state %1', size(row.state_bytes)));
    }
    if (row.gradient_bytes > 0) {
      parts.push(trans.__('gradients %1', size(row.gradient_bytes)));
    }
    return thing(row.path, row.kind, parts, []);
  }
}

/** What a reader would stumble over, in words. */
export function oddities(row: ModuleRow, trans: Pick<TranslationBundle, '__'>): string[] {
  const odd: string[] = [];
  if (row.awake > 0 && row.asleep > 0) {
    odd.push(trans.__('mixed modes: %1 layers in train, %2 in eval', row.awake, row.asleep));
  }
  if (row.devices.length > 1) {
    odd.push(trans.__('parts on several devices'));
  }
  if (row.devices.includes('meta')) {
    odd.push(trans.__('parameters without data'));
  }
  if (row.parameters > 0 && row.trainable === 0) {
    odd.push(trans.__('frozen'));
  }
  return odd;
}

function thing(path: string, kind: string, parts: string[], odd: string[]): HTMLElement {
  const head = el(
    'div',
    {},
    el('b', { text: path || kind }),
    el('span', { className: 'ti-Quiet', text: path ? ` ${kind}` : '' })
  );
  const made = el(
    'div',
    { className: 'ti-Thing' },
    head,
    el('div', { className: 'ti-Quiet', text: parts.join(' · ') })
  );
  for (const text of odd) {
    made.append(el('span', { className: 'ti-Odd', text }));
  }
  return made;
}
