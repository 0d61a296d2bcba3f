/** Bundles `lib/` into what JupyterLab loads. The core's description comes from npm, so nothing is downloaded here. */

import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = path => fileURLToPath(new URL(`../${path}`, import.meta.url));
const output = here('../torch_inspector/labextension');
const command = [
  here('node_modules/@jupyter/builder/lib/build-labextension.js'),
  '--core-package-file',
  here('node_modules/@jupyterlab/core-meta/core.package.json'),
  here('.')
];

rmSync(output, { recursive: true, force: true });
const done = spawnSync(process.execPath, command, { encoding: 'utf8' });
if (done.status !== 0) {
  console.error(done.stdout, done.stderr);
  process.exit(1);
}
// The builder keeps its input beside the schema; nobody reads it.
rmSync(`${output}/schemas/torch-inspector/package.json.orig`, { force: true });
copyFileSync(here('install.json'), `${output}/install.json`);
