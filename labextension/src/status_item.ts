/** Memory and findings of the notebook in front, in the status bar. A click opens the sidebar. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { el, setText } from './el.js';
import { countOf } from './grouping.js';
import { size } from './quantity.js';
import type { KernelRecord } from './record.js';

export class StatusItem extends Widget {
  private _enabled = true;
  private record: KernelRecord | null = null;
  private shown = false;
  private readonly _activeChanged = new Signal<this, void>(this);

  constructor(
    private readonly trans: TranslationBundle,
    onClick: () => void
  ) {
    super({
      node: el('button', { className: 'ti-Status', title: trans.__('Open the inspector'), onClick })
    });
    this.id = 'torch-inspector-status';
  }

  get isActive(): boolean {
    return this._enabled && this.record?.live === true;
  }

  get activeChanged(): ISignal<this, void> {
    return this._activeChanged;
  }

  set enabled(on: boolean) {
    this._enabled = on;
    this._activeChanged.emit();
  }

  show_(record: KernelRecord | null): void {
    this.record = record;
    if (this.shown !== this.isActive) {
      this.shown = this.isActive;
      this._activeChanged.emit();
    }
    if (record && this.isActive) {
      setText(this.node, this.words(record));
    }
  }

  private words(record: KernelRecord): string {
    const device = record.mainDevice();
    const bytes = record.series.get(device)?.latest ?? null;
    const memory = bytes === null ? '' : `${device} ${size(bytes)}`;
    const findings = countOf(record.groups);
    const told = findings === 0 ? '' : this.trans._n('%1 finding', '%1 findings', findings);
    return [memory, told].filter(part => part !== '').join(' · ');
  }
}
