/** The drawing module that the widget and this extension share. */
declare module '*/static/card.js' {
  export interface Options {
    /** Code that has a caption gets a button that copies. */
    copy?: boolean;
    /** False to have links lead nowhere but to pages here. */
    places?: boolean;
    /** Gets the inside of each finding, null of one that cannot be opened, in the order of the card. */
    found?: (inside: HTMLElement | null, slug: string) => void;
  }
  export function isCard(card: unknown): boolean;
  export function draw(node: HTMLElement, card: unknown, options?: Options): void;
}
