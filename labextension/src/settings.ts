/** The user's settings, from `schema/plugin.json`. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

import type { StatusItem } from './status_item.js';

/** Applies the settings now and whenever they change. */
export function followSettings(
  registry: ISettingRegistry | null,
  id: string,
  status: StatusItem
): void {
  const apply = (settings: ISettingRegistry.ISettings): void => {
    status.enabled = settings.get('statusBar').composite !== false;
  };
  registry
    ?.load(id)
    .then(settings => {
      apply(settings);
      settings.changed.connect(apply);
    })
    .catch((error: unknown) => {
      console.warn('torch_inspector: settings could not be read', error);
    });
}
