/** The widget of a card as ipywidgets draws it: out of sight until the card is in it, and over when the card is gone. */

import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';

export const VIEW_MIME = 'application/vnd.jupyter.widget-view+json';
// After a reload ipywidgets asks the kernel for its widgets, which is answered when a running cell has ended.
const PATIENCE_MS = 5000;

export interface Listener {
  /** The card is there, or another one in its place. */
  drawn: () => void;
  /** It does not come in time; or, for good, it cannot come or was taken away. */
  ended: (forGood: boolean) => void;
}

export class LiveView {
  readonly widget: IRenderMime.IRenderer;
  private readonly observer = new MutationObserver(() => {
    this.look();
  });
  private readonly timer = setTimeout(() => {
    this.listener.ended(false);
  }, PATIENCE_MS);
  private card: Element | null = null;

  constructor(
    rendermime: IRenderMimeRegistry,
    modelId: string,
    private readonly listener: Listener
  ) {
    this.widget = rendermime.createRenderer(VIEW_MIME);
    this.widget.hide();
    this.observer.observe(this.widget.node, { childList: true, subtree: true });
    // Not the model of the output: ipywidgets empties the id in it when the view ends, and the file would keep that.
    const data = { [VIEW_MIME]: { version_major: 2, version_minor: 0, model_id: modelId } };
    this.widget.renderModel(new MimeModel({ data, trusted: true })).catch(() => {
      this.listener.ended(true);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.widget.dispose();
  }

  private look(): void {
    const card = this.widget.node.querySelector('.ti-card');
    if (card && card !== this.card) {
      clearTimeout(this.timer);
      this.card = card;
      this.widget.show();
      this.listener.drawn();
    } else if (!card && (this.card !== null || this.failed)) {
      this.listener.ended(true);
    }
  }

  /** True if ipywidgets says in its place why there is none. */
  private get failed(): boolean {
    return this.widget.hasClass('jupyter-widgets') && this.widget.node.childElementCount === 0;
  }
}
