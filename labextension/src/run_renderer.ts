/**
 * Draws a run under its cell: at once as it was saved, with the drawing module that the widget has. What can be done
 * about its findings is there only as long as the kernel that made it is the one that is connected.
 */

import type { IRenderMime } from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';

import { draw, isCard } from '../../torch_inspector/views/static/card.js';
import type { Actions } from './actions.js';
import { el } from './el.js';
import { FindingActions } from './finding_actions.js';
import { RUN_MIME, readRun } from './saved_run.js';
import type { SavedRun } from './saved_run.js';
import type { Subject } from './subject.js';

const TEXT = 'text/plain';

export class RunRenderer extends Widget implements IRenderMime.IRenderer {
  private run: SavedRun | null = null;
  private trusted = false;
  /** The inside of each finding that can be opened. */
  private places: HTMLElement[] = [];
  private shown: FindingActions[] = [];

  /** `subject` is the notebook that it stands in; null elsewhere, where nothing can be done. */
  constructor(
    private readonly subject: Subject | null,
    private readonly actions: Actions
  ) {
    super();
    this.addClass('ti-Run');
    subject?.changed.connect(this.decide, this);
  }

  override dispose(): void {
    this.subject?.changed.disconnect(this.decide, this);
    this.clear();
    super.dispose();
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.clear();
    this.trusted = model.trusted;
    this.run = readRun(model.data[RUN_MIME]);
    this.places = [];
    if (this.run && isCard(this.run.card)) {
      this.drawCard(this.run);
    } else {
      // Of another version, or no card: its words are there all the same.
      const words = model.data[TEXT];
      this.node.replaceChildren(el('pre', { text: typeof words === 'string' ? words : '' }));
    }
    this.decide();
    return Promise.resolve();
  }

  private drawCard({ card, findings }: SavedRun): void {
    draw(this.node, card, {
      copy: true,
      places: this.trusted,
      found: (inside, slug) => {
        if (findings[this.places.length]?.slug === slug) {
          this.places.push(inside);
        }
      }
    });
  }

  /** True while the kernel that made the card is the one that is connected. */
  private get live(): boolean {
    const { run, subject, trusted } = this;
    const there = subject?.feed?.record.run ?? '';
    return trusted && run !== null && there !== '' && there === run.session;
  }

  private decide(): void {
    if (!this.live) {
      this.clear();
    } else if (this.shown.length === 0 && this.run && this.subject) {
      const { run, subject, actions } = this;
      this.shown = this.places.flatMap((place, index) => {
        const found = run.findings[index];
        return found ? [new FindingActions(place, found, run, subject, actions)] : [];
      });
    }
    this.node.dataset['tiState'] = this.shown.length > 0 ? 'live' : 'static';
  }

  private clear(): void {
    for (const one of this.shown) {
      one.dispose();
    }
    this.shown = [];
  }
}
