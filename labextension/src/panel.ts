/** The sidebar: follows the notebook in front, and draws at most once per frame while it can be seen. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { AccountView } from './account_view.js';
import type { Actions } from './actions.js';
import { CellList } from './cell_list.js';
import { Charts } from './charts.js';
import { FindingList } from './finding_list.js';
import { Head, stateOf } from './head.js';
import { ModuleList } from './module_list.js';
import type { Part } from './record.js';
import type { Subject } from './subject.js';

export class InspectorPanel extends Widget {
  private subject: Subject | null = null;
  private readonly head: Head;
  private readonly charts: Charts;
  private readonly findings: FindingList;
  private readonly cells: CellList;
  private readonly modules: ModuleList;
  private readonly account: AccountView;
  private readonly stale = new Set<Part>();
  private frame = 0;

  constructor(actions: Actions) {
    super();
    this.id = 'torch-inspector-panel';
    this.addClass('ti-Panel');
    this.head = new Head(
      actions,
      () => {
        this.togglePause();
      },
      () => {
        this.forget();
      }
    );
    this.charts = new Charts(actions);
    this.findings = new FindingList(actions);
    this.cells = new CellList(actions);
    this.modules = new ModuleList(actions.trans);
    this.account = new AccountView(actions);
    const { modules, optimizers } = this.modules;
    const sections = [
      this.findings.section,
      this.cells.section,
      modules,
      optimizers,
      this.account.section
    ];
    this.node.append(this.head.node, this.charts.node, ...sections.map(section => section.node));
    this.show_(null);
  }

  /** Follows another notebook. */
  show_(subject: Subject | null): void {
    this.subject?.changed.disconnect(this.onChanged, this);
    this.subject = subject;
    subject?.changed.connect(this.onChanged, this);
    this.redraw(['all']);
  }

  /** Stops or goes on to draw; the kernel's messages are taken in all the same. */
  togglePause(): void {
    this.head.paused = !this.head.paused;
    this.draw(new Set<Part>(this.head.paused ? [] : ['all']));
  }

  /** Forgets what was shown of this notebook. */
  forget(): void {
    this.subject?.feed?.clear();
    this.draw(new Set<Part>(['all']));
  }

  /** Draws the charts anew, in the colours of another theme. */
  recolour(): void {
    this.charts.reset();
    this.redraw(['all']);
  }

  protected override onAfterShow(_: Message): void {
    this.redraw(['all']);
  }

  protected override onResize(_: Widget.ResizeMessage): void {
    this.redraw(['memory']);
  }

  private onChanged(_: Subject, parts: Part[]): void {
    this.redraw(parts);
  }

  private redraw(parts: Part[]): void {
    parts.forEach(part => this.stale.add(part));
    if (this.frame !== 0) {
      return;
    }
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isVisible && !this.head.paused) {
        this.draw(this.stale);
        this.stale.clear();
      }
    });
  }

  private draw(stale: ReadonlySet<Part>): void {
    const state = stateOf(this.subject);
    this.node.dataset['tiState'] = state;
    this.head.render(this.subject, state);
    const record = this.subject?.feed?.record;
    const all = stale.has('all');
    if (!record) {
      return;
    }
    if (all || stale.has('memory')) {
      this.charts.render(record);
    }
    if (all || stale.has('findings')) {
      this.findings.render(record);
    }
    if (all || stale.has('cells')) {
      this.cells.render(record);
    }
    if (all || stale.has('state')) {
      this.modules.render(record);
    }
    if (all || stale.has('account')) {
      this.account.render(record);
    }
  }
}
