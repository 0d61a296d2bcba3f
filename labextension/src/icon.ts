/** A flame under a magnifying glass. */

import { LabIcon } from '@jupyterlab/ui-components';

const svgstr = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
<g class="jp-icon3" fill="none" stroke="#616161" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">
<circle cx="10.5" cy="10.5" r="8"/><path d="M16.4 16.4 21.5 21.5"/></g>
<path class="jp-icon3" fill="#616161" d="M11 5c.4 2.6 3.4 3.3 3.4 6.6 0 2.2-1.7 3.9-3.9 3.9s-3.9-1.7-3.9-3.9c0-1.4.7-2.4 1.6-3.1 0 1 .5 1.6 1.1 1.9C8.900 8.300 9.500 6.300 11 5z"/>
</svg>`;

export const icon = new LabIcon({ name: 'torch-inspector:icon', svgstr });
