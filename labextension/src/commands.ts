/** The commands of the palette. None takes code, a path or an address: any notebook could have them run. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Actions } from './actions.js';
import { icon } from './icon.js';
import { VERSION } from './message.js';
import type { InspectorPanel } from './panel.js';

export interface Targets {
  open: () => void;
  panel: InspectorPanel;
  actions: Actions;
}

export function addCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  trans: TranslationBundle,
  { open, panel, actions }: Targets
): void {
  const category = trans.__('torch_inspector');
  const add = (name: string, label: string, execute: () => void): void => {
    const command = `torch-inspector:${name}`;
    app.commands.addCommand(command, { label, icon, execute });
    palette?.addItem({ command, category });
  };
  add('open', trans.__('Show the Inspector'), open);
  add('load', trans.__('Load torch_inspector in This Kernel'), () => {
    actions.load();
  });
  add('pause', trans.__('Pause or Continue the Inspector'), () => {
    panel.togglePause();
  });
  add('clear', trans.__('Clear the Inspector'), () => {
    panel.forget();
  });
  add('account', trans.__('Show Who Holds the Memory'), () => {
    open();
    actions.ask({ v: VERSION, ask: 'account' });
  });
  app.commands.addCommand('torch-inspector:open-page', {
    label: trans.__('Open the Page of a Pitfall'),
    describedBy: { args: { type: 'object', properties: { page: { type: 'string' } } } },
    execute: args => {
      const page = args['page'];
      if (typeof page === 'string') {
        actions.openPage(page);
      }
    }
  });
}
