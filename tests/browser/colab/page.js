// What Colab does around its manager of widgets: it holds the kernel and the state of each widget itself, and each output is
// a frame of its own, with a manager of its own.
const { KernelManager, ServerConnection } = window.services;
const shown = document.getElementById("outputs");
const settings = ServerConnection.makeSettings({ baseUrl: `${location.origin}/`, wsUrl: `ws://${location.host}/` });
const kernels = new KernelManager({ serverSettings: settings });
const models = new Map();
let kernel = null;

// Since version 7 ipykernel can miss a request that comes while it replies to another one, until the next one comes.
const awake = async (done) => {
  const timer = setInterval(() => void kernel.requestKernelInfo().catch(() => undefined), 5000);
  await done.finally(() => clearInterval(timer));
};

// What was told since, and what will be, to each who listens.
function channel(model) {
  const told = [];
  const waiting = new Set();
  let open = true;
  const tell = (one) => {
    if (one) told.push(one);
    else open = false;
    waiting.forEach((wake) => wake());
    waiting.clear();
  };
  model.heard.add(tell);
  async function* messages() {
    for (let next = 0; open || next < told.length; ) {
      if (next < told.length) yield told[next++];
      else await new Promise((wake) => void waiting.add(wake));
    }
  }
  return {
    send: async (data) => void (await model.comm.send(data).done),
    close: () => void model.comm.close(),
    messages: { [Symbol.asyncIterator]: messages },
  };
}

function opened(comm, { content }) {
  const model = { comm, state: content.data.state, heard: new Set() };
  models.set(comm.commId, model);
  comm.onMsg = (message) => {
    const { data } = message.content;
    if (data.method === "update") Object.assign(model.state, data.state);
    model.heard.forEach((tell) => tell({ data }));
  };
  comm.onClose = () => model.heard.forEach((tell) => tell(null));
}

window.host = {
  environment: {
    getModelState: async (id) => {
      const model = models.get(id);
      if (!model) return undefined;
      const state = structuredClone(model.state);
      const names = { modelName: state._model_name, modelModule: state._model_module };
      return { ...names, modelModuleVersion: state._model_module_version, state, ...(model.comm ? { comm: channel(model) } : {}) };
    },
    openCommChannel: async () => Promise.reject(new Error("not here")),
    renderOutput: async () => undefined,
  },
  start: async (name) => {
    kernel = await kernels.startNew({ name });
    kernel.registerCommTarget("jupyter.widget", opened);
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
    const frame = document.createElement("iframe");
    frame.allow = "clipboard-write";
    frame.src = `frame.html#${id}`;
    shown.append(frame);
    await new Promise((done) => void frame.addEventListener("load", done));
    new frame.contentWindow.ResizeObserver(() => {
      frame.style.height = `${frame.contentDocument.documentElement.offsetHeight + 4}px`;
    }).observe(frame.contentDocument.body);
    return frame.contentWindow.drawn.then(() => "", String);
  },
  // As a notebook is that was opened anew: what was saved with it, and no kernel that knows of it.
  leave: () => models.forEach((model) => void (model.comm = null)),
  end: () => kernel.shutdown(),
  restart: () => kernel.restart(),
};
