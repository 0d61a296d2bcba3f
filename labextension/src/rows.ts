/** A list whose rows stay in the page while their data stays, so that a long one costs only what changed. */

import { el, setText } from './el.js';

// Each row costs in every frame that is drawn, in sight or not.
const MOST = 100;
const MORE = 100;

export class Rows<T> {
  private made = new Map<string, HTMLElement>();

  private items: readonly T[] = [];
  private limit = MOST;
  private readonly more = el('button', {
    className: 'ti-More',
    onClick: () => {
      this.limit += MORE;
      this.draw();
    }
  });

  /**
   * @param node - where the rows stand
   * @param keyOf - stands for a row with all that it shows
   * @param make - draws a row
   * @param wordsFor - names so many rows that are not drawn yet
   */
  constructor(
    readonly node: HTMLElement,
    private readonly keyOf: (item: T) => string,
    private readonly make: (item: T) => HTMLElement,
    private readonly wordsFor: (count: number) => string
  ) {
    this.more.type = 'button';
  }

  show(items: readonly T[]): void {
    this.items = items;
    this.draw();
  }

  private draw(): void {
    const items = this.items.slice(0, this.limit);
    const left = this.items.length - items.length;
    setText(this.more, this.wordsFor(left));
    this.more.remove();
    this.place(items);
    if (left > 0) {
      this.node.append(this.more);
    }
  }

  private place(items: readonly T[]): void {
    const made = new Map<string, HTMLElement>();
    for (const item of items) {
      const key = this.keyOf(item);
      made.set(key, this.made.get(key) ?? this.make(item));
    }
    for (const [key, row] of this.made) {
      if (!made.has(key)) {
        row.remove();
      }
    }
    let place = this.node.firstChild;
    for (const row of made.values()) {
      if (row === place) {
        place = place.nextSibling;
      } else {
        this.node.insertBefore(row, place);
      }
    }
    this.made = made;
  }
}
