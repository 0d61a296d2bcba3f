/** A notebook or console with the feed of the kernel that it has now. It keeps collecting when it is not in front. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { ConsolePanel } from '@jupyterlab/console';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { KernelFeed } from './feed.js';
import { ignoring, nearestLine } from './ignore_comment.js';
import type { WhyNot } from './ignore_comment.js';
import { METADATA, readKept, withKept } from './kept_mutes.js';
import type { Message } from './message.js';
import type { Part } from './record.js';
import type { Wishes } from './wishes.js';

/** Where to go: a cell by the front end's id, or else by its number. */
export interface Target {
  id: string | null;
  number: number | null;
  line: number | null;
  /** What the line said when it ran; empty if that is not known. */
  code: string;
}

/** Where a jump ended. */
export type Arrival = 'there' | 'no cell' | 'no line';

/** What came of writing into a line. */
export type Writing = 'written' | 'locked' | WhyNot;

export class Subject {
  feed: KernelFeed | null = null;
  private readonly _changed = new Signal<this, Part[]>(this);

  constructor(
    readonly panel: NotebookPanel | ConsolePanel,
    private wishes: Wishes
  ) {
    this.context.kernelChanged.connect(this.follow, this);
    this.follow();
    panel.disposed.connect(() => {
      this.feed?.dispose();
      Signal.clearData(this);
    });
  }

  get changed(): ISignal<this, Part[]> {
    return this._changed;
  }

  get context(): ISessionContext {
    return this.panel.sessionContext;
  }

  /** What the user calls it. */
  get name(): string {
    return this.panel.title.label;
  }

  /** Keeps to other settings, with this kernel and those to come. */
  heed(wishes: Wishes): void {
    this.wishes = wishes;
    this.feed?.heed(wishes);
  }

  /** True if lines of Python can be run in its kernel. */
  async speaksPython(): Promise<boolean> {
    const info = await this.feed?.kernel.info;
    return info?.status === 'ok' && info.language_info.name === 'python';
  }

  /** Shows a cell, and the line in it that says what it said when it ran. */
  jump(target: Target): Arrival {
    if (!(this.panel instanceof NotebookPanel)) {
      return 'no cell';
    }
    const notebook = this.panel.content;
    const index = notebook.widgets.findIndex(({ model }) => isTarget(model, target));
    const cell = notebook.widgets[index];
    if (!cell) {
      return 'no cell';
    }
    const line = lineIn(cell.model.sharedModel.source, target);
    notebook.activeCellIndex = index;
    if (line !== null) {
      cell.editor?.setCursorPosition({ line: line - 1, column: 0 });
    }
    void notebook.scrollToItem(index, 'smart').catch(() => undefined);
    return line === null && target.line !== null ? 'no line' : 'there';
  }

  /** The id of the cell that holds a node of the page; null if none does. */
  cellAround(node: Node): string | null {
    const cells = this.panel instanceof NotebookPanel ? this.panel.content.widgets : [];
    return cells.find(cell => cell.node.contains(node))?.model.id ?? null;
  }

  /** Writes a comment behind a line that silences a pitfall there; says why if it does not. */
  annotate(target: Target, slug: string): Writing {
    const cells = this.panel instanceof NotebookPanel ? this.panel.content.widgets : [];
    const model = cells.find(cell => isTarget(cell.model, target))?.model;
    if (!model || target.line === null) {
      return 'gone';
    }
    if (model.getMetadata('editable') === false) {
      return 'locked';
    }
    const { sharedModel } = model;
    const edit = ignoring(sharedModel.source, target.line, target.code, slug);
    if (typeof edit === 'string') {
      return edit;
    }
    sharedModel.updateSource(edit.start, edit.end, edit.text);
    return 'written';
  }

  /** Pitfalls that the notebook's file keeps silent. */
  get kept(): string[] {
    return this.panel instanceof NotebookPanel
      ? readKept(this.panel.context.model.getMetadata(METADATA))
      : [];
  }

  /** Has the notebook's file keep a pitfall silent, or not any more. */
  keep(slug: string, on: boolean): void {
    if (!(this.panel instanceof NotebookPanel) || this.kept.includes(slug) === on) {
      return;
    }
    const { model } = this.panel.context;
    const part = withKept(model.getMetadata(METADATA), slug, on);
    if (part) {
      model.setMetadata(METADATA, part);
    } else {
      model.deleteMetadata(METADATA);
    }
  }

  /** What is reported again, whoever has asked for that, is not kept silent in the file. */
  private hear(_: unknown, message: Message): void {
    if (message.op === 'muted' && !message.on && !message.error) {
      const { slug, scope } = message;
      if (scope === 'notebook' || scope === 'always') {
        this.keep(slug, false);
      }
    }
  }

  private follow(): void {
    const kernel = this.context.session?.kernel ?? null;
    if (this.feed?.kernel === kernel) {
      return;
    }
    this.feed?.dispose();
    this.feed = kernel && new KernelFeed(kernel, this.wishes, () => this.kept);
    this.feed?.answered.connect(this.hear, this);
    this.feed?.changed.connect((_, parts) => {
      this._changed.emit(parts);
    });
    this._changed.emit(['all']);
  }
}

function lineIn(source: string, { line, code }: Target): number | null {
  if (line === null || code) {
    return line === null ? null : nearestLine(source, line, code);
  }
  return line > 0 && line <= source.split('\n').length ? line : null;
}

function isTarget(model: { id: string }, target: Target): boolean {
  return target.id === null ? numberOf(model) === target.number : model.id === target.id;
}

function numberOf(model: object): number | null {
  const count: unknown = 'executionCount' in model ? model.executionCount : null;
  return typeof count === 'number' ? count : null;
}
