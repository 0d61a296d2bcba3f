/** Links of cards to pages of pitfalls: a click opens the page here, in trusted and untrusted notebooks alike. */

const LINK = 'a.ti-doc-link';
// The address comes from an output, which anybody may have written: only a name is taken from it, and looked up.
const ADDRESS = /#torch-inspector-([a-z0-9-]{1,80})$/;

/** The name of the page that an address ends with; null if there is none. */
export function slugOf(address: string): string | null {
  return ADDRESS.exec(address)?.[1] ?? null;
}

/**
 * Has clicks on such links open pages; before the application's own handlers, which would follow the address. The node then
 * says so, for widgets, which draw links to pages only there.
 */
export function catchLinks(node: HTMLElement, open: (slug: string) => void): void {
  node.dataset['tiPages'] = '';
  node.addEventListener(
    'click',
    event => {
      // A widget may keep its nodes in a shadow tree, outside of which only its host is the target.
      const [target] = event.composedPath();
      const link = target instanceof Element ? target.closest(LINK) : null;
      const slug = slugOf(link?.getAttribute('href') ?? '');
      if (slug !== null) {
        event.preventDefault();
        event.stopPropagation();
        open(slug);
      }
    },
    true
  );
}
