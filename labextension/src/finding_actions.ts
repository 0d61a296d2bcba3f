/** What can be done about one finding, as a row of buttons under it and a place for the answer. */

import type { Actions } from './actions.js';
import { button, el } from './el.js';
import { kept } from './holder_row.js';
import { arrivalIn, writingIn } from './line_words.js';
import { VERSION } from './message.js';
import type { Account, Message, Muted, Request, Scope } from './message.js';
import { MuteChoice } from './mute_choice.js';
import { saidOf } from './muted_words.js';
import { size } from './quantity.js';
import { heldName, isAboutMemory } from './saved_run.js';
import type { Found, SavedRun } from './saved_run.js';
import type { Subject, Target } from './subject.js';

export class FindingActions {
  private readonly said = el('div', { className: 'ti-Answer' });
  private readonly node: HTMLElement;
  private readonly choice: MuteChoice;
  private readonly feed;
  /** What an answer is awaited to. */
  private awaited: Request | null = null;
  /** True until the account comes that follows what was freed. */
  private awaitsSum = false;

  constructor(
    private readonly found: Found,
    private readonly run: SavedRun,
    private readonly subject: Subject,
    private readonly actions: Actions
  ) {
    const { trans } = actions;
    this.feed = subject.feed;
    this.said.setAttribute('role', 'status');
    this.said.tabIndex = -1;
    this.choice = new MuteChoice(trans, found.slug, scope => {
      this.mute(scope, true);
    });
    const row = el('div', { className: 'ti-Row' }, ...this.buttons());
    this.node = el('div', { className: 'ti-Actions' }, row, this.choice.node, this.said);
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', trans.__('actions: %1', this.where));
    this.feed?.answered.connect(this.take, this);
  }

  dispose(): void {
    this.feed?.answered.disconnect(this.take, this);
    this.node.remove();
  }

  /** Stands here from now on. */
  moveTo(place: HTMLElement): void {
    const focused = document.activeElement;
    place.append(this.node);
    if (focused instanceof HTMLElement && this.node.contains(focused)) {
      focused.focus();
    }
  }

  private get where(): string {
    const { slug, line } = this.found;
    return line === null ? slug : `${slug}, line ${line}`;
  }

  // what is offered -----------------------------------------------------------

  private buttons(): HTMLElement[] {
    const { trans } = this.actions;
    const { line, slug } = this.found;
    const meant = button(
      trans.__('I meant this'),
      trans.__('Be silent about it here; nothing is written into your code'),
      () => {
        this.mute(line === null ? 'cell' : 'line', true);
      }
    );
    const held = heldName(this.found);
    return [
      meant,
      this.choice.opener,
      ...this.way(),
      ...(held ? [this.holders(held)] : []),
      ...(isAboutMemory(this.found) ? [this.free()] : []),
      button(trans.__('Read more'), trans.__('Open the page of this pitfall'), () => {
        this.actions.openPage(slug);
      })
    ];
  }

  private way(): HTMLElement[] {
    const { trans } = this.actions;
    const { cell, line } = this.found;
    const other = cell !== null && cell !== this.run.cell;
    if (line === null && !other) {
      return [];
    }
    const text = other ? trans.__('Go to cell %1', cell) : trans.__('Go to line %1', String(line));
    return [
      button(text, trans.__('Show it in its cell'), () => {
        const said = arrivalIn(this.subject.jump(this.target()), trans);
        // What can still be done in an answer stays.
        if (said || !this.said.querySelector('button')) {
          this.say(said);
        }
      })
    ];
  }

  private holders(path: string): HTMLElement {
    const { trans } = this.actions;
    return button(trans.__('Show holders'), trans.__('What keeps %1 alive now', path), () => {
      this.ask({ v: VERSION, ask: 'holders', path });
    });
  }

  private free(): HTMLElement {
    const { trans } = this.actions;
    return button(
      trans.__('Free memory …'),
      trans.__('Look for what the notebook itself holds; asks before it lets go'),
      () => {
        this.ask({ v: VERSION, ask: 'account' });
      }
    );
  }

  // asking --------------------------------------------------------------------

  private mute(scope: Scope, on: boolean): void {
    const { slug, cell, line } = this.found;
    const there = scope === 'cell' ? this.run.cell : cell;
    this.ask({ v: VERSION, ask: 'mute', slug, scope, cell: there, line, on });
  }

  private ask(request: Request): void {
    const { trans } = this.actions;
    this.awaited = request;
    const waits = this.feed?.waits(request) ?? false;
    this.feed?.ask(request);
    this.say(waits ? trans.__('A cell is running: the answer comes when it has ended.') : '');
  }

  /** The cell that holds the line: the one of this card, or another one by its number. */
  private target(): Target {
    const { cell, line, code } = this.found;
    const own = cell === null || cell === this.run.cell ? this.subject.cellAround(this.node) : null;
    const known = this.feed?.record.cells.find(one => one.number === cell)?.id ?? null;
    return { id: own ?? known, number: cell, line, code };
  }

  // answers -------------------------------------------------------------------

  private take(_: unknown, message: Message): void {
    const { awaited, actions } = this;
    if (!awaited) {
      return;
    }
    if (message.op === 'muted' && awaited.ask === 'mute' && this.isAbout(message)) {
      this.tellMuted(message);
    } else if (
      message.op === 'holders' &&
      awaited.ask === 'holders' &&
      message.path === awaited.path.slice(0, 200)
    ) {
      this.say('', kept(message, actions));
    } else if (message.op === 'account' && awaited.ask === 'account') {
      this.tellFreeable(message);
    } else if (message.op === 'freed' && awaited.ask === 'account') {
      this.tellFreed(message.bytes);
    } else if (message.op === 'refused' && message.ask === awaited.ask) {
      this.say(actions.trans.__('A cell is running: ask again when it has ended.'));
    }
  }

  private isAbout({ slug, scope, line }: Muted): boolean {
    const { awaited } = this;
    return (
      awaited?.ask === 'mute' &&
      slug === awaited.slug &&
      scope === awaited.scope &&
      line === awaited.line
    );
  }

  private tellMuted(message: Muted): void {
    const { trans } = this.actions;
    const chosen = this.choice.hasFocus;
    this.choice.open(false);
    if (message.on && !message.error && message.scope === 'notebook') {
      this.subject.keep(message.slug, true);
    }
    const undo = button(trans.__('Undo'), trans.__('Report it again'), () => {
      this.mute(message.scope, false);
    });
    const write = button(
      trans.__('Write it into the line'),
      trans.__('Adds # torchcheck: ignore[%1]', this.found.slug),
      () => {
        this.say(writingIn(this.subject.annotate(this.target(), this.found.slug), trans));
      }
    );
    const more = message.on && !message.error ? [undo] : [];
    this.say(
      saidOf(message, trans),
      ...more,
      ...(more.length > 0 && message.scope === 'line' ? [write] : [])
    );
    if (chosen) {
      (more[0] ?? this.choice.opener).focus();
    }
  }

  private tellFreeable({ free }: Account): void {
    const { trans } = this.actions;
    if (this.awaitsSum) {
      this.awaitsSum = false;
      return;
    }
    const rows = free.map(({ item, what, bytes, why }) =>
      el(
        'div',
        { className: 'ti-Freeable', data: { tiItem: item } },
        el('span', { text: `${what}: ${size(bytes)}. ${why.replaceAll('`', '')}.` }),
        button(trans.__('free …'), trans.__('Asks first'), () => {
          this.actions.free({ item, path: '' });
        })
      )
    );
    const none = trans.__('The notebook itself holds no memory: your own variables do.');
    this.say(rows.length > 0 ? '' : none, ...rows);
  }

  private tellFreed(bytes: number): void {
    const { trans } = this.actions;
    this.awaitsSum = true;
    this.say(
      bytes > 0
        ? trans.__('%1 came free.', size(bytes))
        : trans.__('Nothing came free: something else holds it still.')
    );
  }

  /** Whoever pressed what stood in the answer goes on in the answer to that. */
  private say(text: string, ...more: HTMLElement[]): void {
    const { said } = this;
    const had = said.contains(document.activeElement);
    said.replaceChildren(...(text ? [el('span', { text })] : []), ...more);
    if (had) {
      (said.querySelector('button') ?? said).focus();
    }
  }
}
