/** The top of the panel: which notebook, what its kernel does, and what can be done about it. */

import { settingsIcon } from '@jupyterlab/ui-components';

import type { Actions } from './actions.js';
import { button, el, setText } from './el.js';
import { progressOf } from './progress.js';
import type { Subject } from './subject.js';

/** What the panel can say of the notebook in front. */
export type PanelState = 'none' | 'waiting' | 'absent' | 'live';

export class Head {
  readonly node: HTMLElement;
  /** Set while the panel stands still. */
  paused = false;
  private readonly name = el('span', { className: 'ti-Head-name' });
  private readonly words = el('div', { className: 'ti-Head-words' });
  private readonly notice = el('div', { className: 'ti-Notice' });
  private readonly load: HTMLButtonElement;
  private readonly pause: HTMLButtonElement;
  private readonly clear: HTMLButtonElement;

  constructor(
    private readonly actions: Actions,
    onPause: () => void,
    onClear: () => void
  ) {
    const { trans } = actions;
    this.load = button(
      trans.__('Load it'),
      trans.__('Runs %load_ext torch_inspector in this kernel'),
      () => {
        actions.load();
      }
    );
    this.pause = button('', trans.__('The kernel goes on; only the panel stands still'), onPause);
    this.clear = button(
      trans.__('Clear'),
      trans.__('Forgets in this page what was shown so far'),
      onClear
    );
    const settings = button('', trans.__('Settings'), () => {
      actions.openSettings();
    });
    settings.setAttribute('aria-label', trans.__('Settings'));
    settings.classList.add('ti-Head-settings');
    settingsIcon.element({ container: settings, height: '14px' });
    const bar = el(
      'div',
      { className: 'ti-Head-bar' },
      this.name,
      this.pause,
      this.clear,
      settings
    );
    this.node = el('header', { className: 'ti-Head' }, bar, this.words, this.notice, this.load);
  }

  render(subject: Subject | null, state: PanelState): void {
    const { trans } = this.actions;
    setText(this.name, subject?.name ?? '');
    this.name.title = subject?.name ?? '';
    this.load.hidden = state !== 'absent';
    this.pause.hidden = this.clear.hidden = state !== 'live';
    setText(this.pause, this.paused ? trans.__('Go on') : trans.__('Pause'));
    this.say(this.said(subject, state));
    const notice = subject?.feed?.notice ?? '';
    setText(
      this.notice,
      notice && trans.__('A message of the kernel could not be read: %1', notice)
    );
  }

  /** One line for each text. */
  private say(texts: string[]): void {
    while (this.words.childElementCount > texts.length) {
      this.words.lastChild?.remove();
    }
    texts.forEach((text, index) => {
      const line = this.words.children[index];
      if (line instanceof HTMLElement) {
        setText(line, text);
      } else {
        this.words.append(el('div', { text }));
      }
    });
  }

  private said(subject: Subject | null, state: PanelState): string[] {
    const { trans } = this.actions;
    switch (state) {
      case 'none':
        return [trans.__('No notebook is in front.')];
      case 'waiting':
        return [trans.__('Waiting for the kernel …')];
      case 'absent':
        return [trans.__('torch_inspector is not loaded in this kernel.')];
      case 'live':
        return subject?.feed ? progressOf(subject.feed.record, trans) : [];
    }
  }
}

/** What there is to say about a notebook. */
export function stateOf(subject: Subject | null): PanelState {
  if (!subject) {
    return 'none';
  }
  const presence = subject.feed?.presence ?? 'unknown';
  return presence === 'unknown' ? 'waiting' : presence;
}
