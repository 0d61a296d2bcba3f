/** One part of the panel, which can be folded; it is hidden while it has nothing to show. */

import { el, setText } from './el.js';

export class Section {
  readonly node: HTMLDetailsElement;
  readonly body = el('div', { className: 'ti-Section-body' });
  private readonly count = el('span', { className: 'ti-Section-count' });

  constructor(title: string, name: string) {
    const summary = el('summary', {}, el('span', { text: title }), this.count);
    this.node = el(
      'details',
      { className: 'ti-Section', data: { tiSection: name } },
      summary,
      this.body
    );
    this.node.open = true;
  }

  /** Shows how many there are, and hides the part if there are none. */
  setCount(count: number, text = String(count)): void {
    setText(this.count, text);
    this.node.hidden = count === 0;
  }
}
