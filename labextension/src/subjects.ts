/** All open notebooks and consoles, and which of them is in front. */

import type { ConsolePanel, IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { Subject } from './subject.js';
import { DEFAULTS } from './wishes.js';
import type { Wishes } from './wishes.js';

export class Subjects {
  current: Subject | null = null;
  private wishes: Wishes = DEFAULTS;
  private readonly all = new Map<NotebookPanel | ConsolePanel, Subject>();
  private readonly _changed = new Signal<this, Subject | null>(this);

  constructor(notebooks: INotebookTracker, consoles: IConsoleTracker | null) {
    for (const tracker of [notebooks, ...(consoles ? [consoles] : [])]) {
      tracker.forEach(panel => this.of(panel));
      tracker.widgetAdded.connect((_, panel) => this.of(panel));
      tracker.currentChanged.connect((_, panel) => {
        this.choose(panel);
      });
    }
    this.choose(notebooks.currentWidget);
  }

  /** Another one came to the front, or none is left. */
  get changed(): ISignal<this, Subject | null> {
    return this._changed;
  }

  /** Has all of them keep to other settings. */
  heed(wishes: Wishes): void {
    this.wishes = wishes;
    for (const subject of this.all.values()) {
      subject.heed(wishes);
    }
  }

  /** The subject of a notebook or console. */
  of(panel: NotebookPanel | ConsolePanel): Subject {
    const known = this.all.get(panel);
    if (known) {
      return known;
    }
    const made = new Subject(panel, this.wishes);
    this.all.set(panel, made);
    panel.disposed.connect(() => {
      this.all.delete(panel);
      if (this.current === made) {
        this.choose(null);
      }
    });
    return made;
  }

  private choose(panel: NotebookPanel | ConsolePanel | null): void {
    const next = panel && !panel.isDisposed ? this.of(panel) : null;
    if (next !== this.current) {
      this.current = next;
      this._changed.emit(next);
    }
  }
}
