/** The drawing module that the widget and this extension share. */
declare module '*/static/card.js' {
  export interface Options {
    /** Code that has a caption gets a button that copies. */
    copy?: boolean;
    /** False to have links lead nowhere but to pages here. */
    places?: boolean;
    /** Draws links to pages here. */
    pages?: boolean;
    /** Names the pitfall at the inside of each finding. */
    marks?: boolean;
  }
  export function isCard(card: unknown): boolean;
  /** A text as nodes: what stands between backticks is code. */
  export function inline(text: string): (string | Node)[];
  export function draw(node: HTMLElement, card: unknown, options?: Options): void;
}
