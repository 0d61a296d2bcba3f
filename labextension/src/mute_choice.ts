/** How far the silence about a pitfall is to go: a button that opens the choice, and the choice. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { button, el } from './el.js';
import type { Scope } from './message.js';

export class MuteChoice {
  readonly opener: HTMLElement;
  readonly node: HTMLElement;

  constructor(trans: TranslationBundle, slug: string, mute: (scope: Scope) => void) {
    const words: [Scope, string][] = [
      ['cell', trans.__('in this cell')],
      ['notebook', trans.__('in this notebook')],
      ['always', trans.__('always')]
    ];
    const scopes = words.map(([scope, text]) =>
      button(text, trans.__('Be silent about %1', slug), () => {
        mute(scope);
      })
    );
    this.node = el('div', { className: 'ti-Choices' }, ...scopes);
    const title = trans.__('Choose where to be silent about it');
    this.opener = button(trans.__('Mute …'), title, () => {
      this.open(this.node.hidden);
    });
    for (const one of [this.opener, this.node]) {
      one.addEventListener('keydown', event => {
        this.closeOn(event);
      });
    }
    this.open(false);
  }

  /** True if one of the choices has the focus. */
  get hasFocus(): boolean {
    return this.node.contains(document.activeElement);
  }

  open(on: boolean): void {
    this.node.hidden = !on;
    this.opener.setAttribute('aria-expanded', String(on));
  }

  private closeOn(event: KeyboardEvent): void {
    if (event.key === 'Escape' && !this.node.hidden) {
      event.stopPropagation();
      this.open(false);
      this.opener.focus();
    }
  }
}
