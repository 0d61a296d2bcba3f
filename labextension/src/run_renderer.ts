/**
 * Draws a run under its cell: at once as it was saved, with the drawing module that the widget has. As long as the kernel
 * that made it is the one that is connected, its findings can be acted on, and its widget takes the place of the card.
 */

import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { PanelLayout, Widget } from '@lumino/widgets';

import { draw, isCard } from '../../torch_inspector/views/static/card.js';
import type { Actions } from './actions.js';
import { el } from './el.js';
import { FindingActions } from './finding_actions.js';
import { LiveView, VIEW_MIME } from './live_view.js';
import { RUN_MIME, readRun } from './saved_run.js';
import type { Found, SavedRun } from './saved_run.js';
import type { Subject } from './subject.js';

export class RunRenderer extends Widget implements IRenderMime.IRenderer {
  private run: SavedRun | null = null;
  private trusted = false;
  private readonly card = el('div');
  private view: LiveView | null = null;
  /** The widget cannot come any more. */
  private hopeless = false;
  /** What can be done, by the place of the finding in the card. */
  private readonly shown = new Map<number, FindingActions>();
  /** The drawn card that it stands in. */
  private acted: Element | null = null;
  /** The widget, or what is drawn in place of a card. */
  private readonly others = new PanelLayout();

  /**
   * `subject` is the notebook that it stands in, null elsewhere, where nothing can be done; `rendermime` draws the widget,
   * and the other forms of an output that holds no card of this version.
   */
  constructor(
    private readonly subject: Subject | null,
    private readonly actions: Actions,
    private readonly rendermime: IRenderMimeRegistry
  ) {
    super();
    this.node.append(this.card);
    this.layout = this.others;
    this.addClass('ti-Run');
    subject?.changed.connect(this.decide, this);
  }

  override dispose(): void {
    this.subject?.changed.disconnect(this.decide, this);
    this.forget();
    super.dispose();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.forget();
    this.trusted = model.trusted;
    this.hopeless = false;
    this.run = readRun(model.data[RUN_MIME]);
    if (this.run && isCard(this.run.card)) {
      const options = { copy: true, places: this.trusted, pages: true, marks: true };
      draw(this.card, this.run.card, options);
    } else {
      this.run = null;
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

  /** True while the kernel that made the card is the one that is connected. */
  private get live(): boolean {
    const { run, subject, trusted } = this;
    const there = subject?.feed?.record.run ?? '';
    return trusted && run !== null && there !== '' && there === run.session;
  }

  private decide(): void {
    const modelId = this.run?.modelId ?? null;
    const { hopeless, live, rendermime } = this;
    // ipywidgets may be missing, and may come later than the notebook.
    if (modelId === null || hopeless || !live || !rendermime.mimeTypes.includes(VIEW_MIME)) {
      this.showCard();
    } else if (!this.view) {
      this.view = new LiveView(rendermime, modelId, {
        drawn: () => {
          this.card.hidden = true;
          this.act();
        },
        ended: forGood => {
          this.hopeless = forGood;
          this.showCard();
          this.act();
        }
      });
      this.others.addWidget(this.view.widget);
    }
    this.act();
  }

  private showCard(): void {
    this.view?.dispose();
    this.view = null;
    this.card.hidden = false;
  }

  /** Puts what can be done into the card that is seen. */
  private act(): void {
    const { run, subject, card, view } = this;
    const root = card.hidden && view ? view.widget.node : card;
    const seen = this.live ? root.querySelector('.ti-card') : null;
    if (seen !== this.acted && run && subject) {
      this.acted = seen;
      run.findings.forEach((found, index) => {
        this.put(index, seen && placeIn(seen, found, index), () => {
          return new FindingActions(found, run, subject, this.actions);
        });
      });
    }
    this.node.dataset['tiState'] = this.shown.size > 0 ? 'live' : 'static';
    this.node.dataset['tiView'] = root === card ? 'card' : 'widget';
  }

  private put(index: number, place: HTMLElement | null, make: () => FindingActions): void {
    const one = this.shown.get(index) ?? (place && make());
    if (one && place) {
      one.moveTo(place);
      this.shown.set(index, one);
    } else {
      one?.dispose();
      this.shown.delete(index);
    }
  }

  /** What was drawn is of another model now. */
  private forget(): void {
    this.showCard();
    for (const one of [...this.shown.values(), ...this.others.widgets]) {
      one.dispose();
    }
    this.shown.clear();
    this.acted = null;
    this.card.replaceChildren();
  }
}

/** The inside of a finding; null of one that cannot be opened, or if another one stands there. */
function placeIn(card: Element, { slug }: Found, index: number): HTMLElement | null {
  const finding = card.querySelectorAll('.ti-finding')[index];
  const inside = finding?.querySelector<HTMLElement>(':scope > .ti-inside');
  return inside?.dataset['tiSlug'] === slug ? inside : null;
}
