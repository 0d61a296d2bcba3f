/** Listens to one kernel. It opens no comm: the kernel's is registered and broadcasts, so one message asks for history. */

import { KernelMessage } from '@jupyterlab/services';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { Byway } from './byway.js';
import { COMM_ID, TARGET, VERSION, readMessage } from './message.js';
import type { Message, Request } from './message.js';
import { Malformed } from './read.js';
import { KernelRecord } from './record.js';
import type { Part } from './record.js';
import { DEFAULTS, isSame } from './wishes.js';
import type { Wishes } from './wishes.js';

const WAKE_MS = 2000;

/** Whether the kernel has the inspector loaded: not known before it has answered. */
export type Presence = 'unknown' | 'absent' | 'live';

export class KernelFeed {
  readonly record = new KernelRecord();
  /** What was wrong with the latest message that could not be read; it stays until it is cleared. */
  notice = '';
  isDisposed = false;
  private readonly byway: Byway;
  private _presence: Presence = 'unknown';
  private readonly _changed = new Signal<this, Part[]>(this);
  private readonly _answered = new Signal<this, Message>(this);

  /** `kept` says which pitfalls the notebook keeps silent. */
  constructor(
    readonly kernel: Kernel.IKernelConnection,
    wishes: Wishes,
    private readonly kept: () => string[]
  ) {
    this.byway = new Byway(kernel);
    this.record.heed(wishes);
    kernel.iopubMessage.connect(this.onMessage, this);
    kernel.statusChanged.connect(this.onStatus, this);
    kernel.connectionStatusChanged.connect(this.onConnection, this);
    if (kernel.connectionStatus === 'connected') {
      void this.greet();
    }
  }

  get changed(): ISignal<this, Part[]> {
    return this._changed;
  }

  /** A message of the load of the extension that is listened to. */
  get answered(): ISignal<this, Message> {
    return this._answered;
  }

  get presence(): Presence {
    return this.record.live ? 'live' : this._presence;
  }

  dispose(): void {
    this.isDisposed = true;
    this.byway.close();
    Signal.clearData(this);
  }

  /** Forgets what was heard. */
  clear(): void {
    this.notice = '';
    this.record.clear();
  }

  /** Keeps to other settings from now on, and tells the kernel. */
  heed(wishes: Wishes): void {
    if (!isSame(wishes, this.record.wishes)) {
      this.record.heed(wishes);
      if (this.presence === 'live') {
        this.ask({ v: VERSION, ask: 'settings', ...wishes });
      }
      this._changed.emit(['all']);
    }
  }

  /** Asks the kernel for something; the answer comes as a message to all. */
  ask(request: Request, busy = this.busy): void {
    if (!busy || !this.canPass(request)) {
      this.send(request, null);
      return;
    }
    this.byway.open().then(
      id => {
        this.send(request, id);
      },
      () => {
        this.byway.forget();
        this.send(request, null);
      }
    );
  }

  /** True if the answer has to wait for the end of the running cell. */
  waits(request: Request): boolean {
    return this.busy && !this.canPass(request);
  }

  /** Loads the inspector in the kernel: one constant line. False if that failed. */
  async load(): Promise<boolean> {
    const reply = await this.kernel.requestExecute({
      code: '%load_ext torch_inspector',
      silent: true,
      store_history: false,
      allow_stdin: false
    }).done;
    if (reply.content.status === 'ok') {
      await this.greet();
      return true;
    }
    return false;
  }

  private get busy(): boolean {
    return this.kernel.status === 'busy' || this.record.running !== null;
  }

  /** What touches settings only can go past a running cell. A look at objects cannot: they change under it. */
  private canPass(request: Request): boolean {
    return request.ask === 'mute' && this.byway.isThere;
  }

  private send(request: Request, subshellId: string | null): void {
    if (this.isDisposed || this.presence !== 'live') {
      return;
    }
    const message = KernelMessage.createMessage<KernelMessage.ICommMsgMsg<'shell'>>({
      msgType: 'comm_msg',
      channel: 'shell',
      session: this.kernel.clientId,
      username: this.kernel.username,
      subshellId,
      content: { comm_id: COMM_ID, data: { ...request } }
    });
    this.kernel.sendShellMessage(message, false, true);
  }

  /** Looks whether the inspector is there, and asks for the history if so. */
  private async greet(): Promise<void> {
    try {
      const reply = await this.awake(this.kernel.requestCommInfo({ target_name: TARGET }));
      if (this.isDisposed || reply.content.status !== 'ok') {
        return;
      }
      const there = Object.hasOwn(reply.content.comms, COMM_ID);
      this._presence = there ? 'live' : 'absent';
      if (there) {
        this.tellWishes();
        this.ask({ v: VERSION, ask: 'hello' });
      }
      this._changed.emit(['all']);
      if (there) {
        // What comes after the question is answered after it.
        await this.awake(this.kernel.requestCommInfo({ target_name: TARGET }));
      }
    } catch {
      // The kernel went away before it answered; a status will tell.
    }
  }

  /**
   * Waits for an answer, and asks an idle kernel again if it takes long. Since version 7 ipykernel can miss a request
   * that comes while it replies to another one, until the next one comes (its issue 1554).
   */
  private async awake<T>(answer: Promise<T>): Promise<T> {
    const timer = setInterval(() => {
      if (!this.isDisposed && this.kernel.status === 'idle') {
        this.kernel.requestKernelInfo().catch(() => undefined);
      }
    }, WAKE_MS);
    try {
      return await answer;
    } finally {
      clearInterval(timer);
    }
  }

  /** A kernel that was just loaded keeps to the defaults, and knows nothing of the notebook's file. */
  private tellWishes(busy = this.busy): void {
    const { wishes } = this.record;
    if (!isSame(wishes, DEFAULTS)) {
      this.ask({ v: VERSION, ask: 'settings', ...wishes });
    }
    for (const slug of this.kept()) {
      const where = { scope: 'notebook', cell: null, line: null } as const;
      this.ask({ v: VERSION, ask: 'mute', slug, ...where, on: true }, busy);
    }
  }

  private onMessage(_: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    if (!KernelMessage.isCommMsgMsg(message) || message.content.comm_id !== COMM_ID) {
      return;
    }
    try {
      const read = readMessage(message.content.data);
      const { run } = this.record;
      const parts = read ? this.record.apply(read) : [];
      if (this.record.run !== run && this.record.live && read?.op !== 'history') {
        // Of all cells that are to run, the one that loaded may be the first: between two of them it looks idle.
        this.tellWishes(true);
      }
      if (read?.op === 'bye') {
        this._presence = 'absent';
      }
      if (parts.length > 0) {
        this._changed.emit(parts);
      }
      if (read?.run === this.record.run) {
        this._answered.emit(read);
      }
    } catch (error) {
      this.notice = error instanceof Malformed ? error.message : 'a message could not be read';
      this._changed.emit(['memory']);
    }
  }

  private onStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.byway.forget();
      this.record.end();
      this.notice = '';
      this._presence = 'unknown';
      this._changed.emit(['all']);
    }
  }

  private onConnection(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      void this.greet();
    }
  }
}
