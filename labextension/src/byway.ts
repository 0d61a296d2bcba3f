/** A way into a kernel that is running a cell: one subshell, made when it is first needed. */

import type { Kernel } from '@jupyterlab/services';

export class Byway {
  private made: Promise<string> | null = null;
  private id = '';

  constructor(private readonly kernel: Kernel.IKernelConnection) {
    // A notebook that is closed lets go of its kernel before it is gone itself.
    kernel.disposed.connect(this.close, this);
    window.addEventListener('pagehide', this.end);
  }

  /** False with kernels before ipykernel 7 and with applications that know no subshells. */
  get isThere(): boolean {
    return this.kernel.supportsSubshells;
  }

  /** The id of the subshell. */
  open(): Promise<string> {
    return (this.made ??= this.make());
  }

  /** The kernel was restarted, and the subshell is gone. */
  forget(): void {
    this.made = null;
    this.id = '';
  }

  /** Ends the subshell. */
  close(): void {
    this.kernel.disposed.disconnect(this.close, this);
    window.removeEventListener('pagehide', this.end);
    this.end();
  }

  /** The same when the page is left; it may come back, and make another one. */
  private readonly end = (): void => {
    if (this.id && this.kernel.connectionStatus === 'connected') {
      this.kernel.requestDeleteSubshell({ subshell_id: this.id });
    }
    this.forget();
  };

  private async make(): Promise<string> {
    const { content } = await this.kernel.requestCreateSubshell({}).done;
    this.id = content.subshell_id;
    return this.id;
  }
}
