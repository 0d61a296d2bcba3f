/** A list whose rows stay in the page while their data stays, so that a long one costs only what changed. */

export class Rows<T> {
  private made = new Map<string, HTMLElement>();

  /**
   * @param node - where the rows stand
   * @param keyOf - stands for a row with all that it shows
   * @param make - draws a row
   */
  constructor(
    readonly node: HTMLElement,
    private readonly keyOf: (item: T) => string,
    private readonly make: (item: T) => HTMLElement
  ) {}

  show(items: readonly T[]): void {
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
