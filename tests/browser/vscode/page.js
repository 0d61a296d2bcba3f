// What VS Code's extension for Jupyter does around its bundle of widgets: a live kernel, a loader of scripts, one element
// for each output.
import { activate } from "./ipywidgets.js";

const { KernelManager, ServerConnection } = window.services;
const told = [];
const shown = document.getElementById("outputs");

// Scripts of other packages come from `share/jupyter/nbextensions` of the kernel's environment.
const loader = {
  widgetsRegisteredInRequireJs: new Set(),
  loadWidgetScript: async (name) => {
    window.requirejs.config({ paths: { [name]: `/static/vscode/nbextensions/${name}/index` } });
    loader.widgetsRegisteredInRequireJs.add(name);
  },
  successHandler: () => undefined,
  errorHandler: (...words) => void told.push(words.map(String).join(" ")),
};

activate();
window.vscIPyWidgets8.load();

const settings = ServerConnection.makeSettings({ baseUrl: `${location.origin}/`, wsUrl: `ws://${location.host}/` });
const kernels = new KernelManager({ serverSettings: settings });
let kernel = null;
let widgets = null;

// Since version 7 ipykernel can miss a request that comes while it replies to another one, until the next one comes.
const awake = async (done) => {
  const timer = setInterval(() => void kernel.requestKernelInfo().catch(() => undefined), 5000);
  await done.finally(() => clearInterval(timer));
};

window.host = {
  told,
  start: async (name) => {
    kernel = await kernels.startNew({ name });
    widgets = new window.vscIPyWidgets.WidgetManager(kernel, shown, loader, () => undefined);
    await awake(kernel.info);
  },
  // The data of each output; texts that were printed count too.
  run: async (code) => {
    const outputs = [];
    const future = kernel.requestExecute({ code });
    future.onIOPub = ({ header, content }) => {
      if (["display_data", "execute_result"].includes(header.msg_type)) outputs.push(content.data);
      if (["stream", "error"].includes(header.msg_type)) outputs.push({ [header.msg_type]: content });
    };
    await awake(future.done);
    return outputs;
  },
  draw: async ({ model_id: id }) => {
    const node = document.createElement("div");
    shown.append(node);
    const view = await widgets.create_view(await widgets.get_model(id), { el: node });
    await widgets.display_view(null, view, { node });
  },
  end: () => kernel.shutdown(),
  restart: () => kernel.restart(),
};
