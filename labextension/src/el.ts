/** Elements made of plain text. There is no way to give markup, so names from a kernel stay names. */

export interface Properties {
  className?: string;
  text?: string;
  title?: string;
  data?: Record<string, string>;
  onClick?: () => void;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Node[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (properties.className !== undefined) {
    made.className = properties.className;
  }
  if (properties.text !== undefined) {
    made.textContent = properties.text;
  }
  if (properties.title !== undefined) {
    made.title = properties.title;
  }
  Object.assign(made.dataset, properties.data ?? {});
  if (properties.onClick) {
    made.addEventListener('click', properties.onClick);
  }
  made.append(...children);
  return made;
}

/** Changes a text only if it is another: the browser lays out anew whatever is written. */
export function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** A button that looks like the application's own. */
export function button(text: string, title: string, onClick: () => void): HTMLButtonElement {
  const made = el('button', { className: 'ti-Button', text, title, onClick });
  made.type = 'button';
  return made;
}
