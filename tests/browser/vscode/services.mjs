// Bundles JupyterLab's client of kernels for a page that is not JupyterLab: `node services.mjs FOLDER` writes `services.js`.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const labextension = fileURLToPath(new URL("../../../labextension/", import.meta.url));
const { rspack } = createRequire(`${labextension}package.json`)("@rspack/core");

rspack(
  {
    mode: "production",
    context: labextension,
    entry: "@jupyterlab/services",
    output: { path: process.argv[2], filename: "services.js", library: { type: "window", name: "services" } },
    // The client for Node, which a page does not have.
    resolve: { fallback: { ws: false, path: false } },
    performance: false,
  },
  (error, stats) => {
    const wrong = error ? String(error) : stats.toString("errors-only");
    if (wrong) {
      console.error(wrong);
      process.exitCode = 1;
    }
  },
);
