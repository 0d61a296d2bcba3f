/**
 * Draws a run under its cell: at once as it was saved, with the drawing module that the widget has. What can be done
 * about its findings is there only as long as the kernel that made it is the one that is connected.
 */

import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { PanelLayout, Widget } from '@lumino/widgets';

import { draw, isCard } from '../../torch_inspector/views/static/card.js';
import type { Actions } from './actions.js';
import { FindingActions } from './finding_actions.js';
import { RUN_MIME, readRun } from './saved_run.js';
import type { SavedRun } from './saved_run.js';
import type { Subject } from './subject.js';

export class RunRenderer extends Widget implements IRenderMime.IRenderer {
  private run: SavedRun | null = null;
  private trusted = false;
  /** The inside of each finding; null where nothing can be put. */
  private places: (HTMLElement | null)[] = [];
  private shown: FindingActions[] = [];
  /** What is drawn in place of a card. */
  private readonly others = new PanelLayout();

  /**
   * `subject` is the notebook that it stands in, null elsewhere, where nothing can be done; `rendermime` draws the other
   * forms of an output that holds no card of this version.
   */
  constructor(
    private readonly subject: Subject | null,
    private readonly actions: Actions,
    private readonly rendermime: IRenderMimeRegistry
  ) {
    super();
    this.layout = this.others;
    this.addClass('ti-Run');
    subject?.changed.connect(this.decide, this);
  }

  override dispose(): void {
    this.subject?.changed.disconnect(this.decide, this);
    this.clear();
    super.dispose();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.clear();
    for (const old of [...this.others.widgets]) {
      old.dispose();
    }
    this.trusted = model.trusted;
    this.run = readRun(model.data[RUN_MIME]);
    this.places = [];
    if (this.run && isCard(this.run.card)) {
      this.drawCard(this.run);
    } else {
      await this.drawOther(model);
    }
    this.decide();
  }

  /** Draws the output as if there were no card in it. */
  private async drawOther({ data, trusted }: IRenderMime.IMimeModel): Promise<void> {
    const others = Object.fromEntries(Object.entries(data).filter(([mime]) => mime !== RUN_MIME));
    const mime = this.rendermime.preferredMimeType(others, trusted ? 'any' : 'ensure');
    if (mime !== undefined) {
      const drawn = this.rendermime.createRenderer(mime);
      this.others.addWidget(drawn);
      await drawn.renderModel(new MimeModel({ data: others, trusted }));
    }
  }

  private drawCard({ card, findings }: SavedRun): void {
    draw(this.node, card, {
      copy: true,
      places: this.trusted,
      found: (inside, slug) => {
        const same = findings[this.places.length]?.slug === slug;
        this.places.push(same ? inside : null);
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
        return found && place ? [new FindingActions(place, found, run, subject, actions)] : [];
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
