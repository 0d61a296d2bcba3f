/** Bundles `lib/` into what JupyterLab loads. The core's description comes from npm, so nothing is downloaded here. */

import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = path => fileURLToPath(new URL(`../${path}`, import.meta.url));
const output = here('../torch_inspector/labextension');

rmSync(output, { recursive: true, force: true });
execFileSync(
  process.execPath,
  [
    here('node_modules/@jupyter/builder/lib/build-labextension.js'),
    '--core-package-file',
    here('node_modules/@jupyterlab/core-meta/core.package.json'),
    here('.')
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] }
);
copyFileSync(here('install.json'), `${output}/install.json`);
