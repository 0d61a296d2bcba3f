// One output: Colab's manager of widgets, and one widget.
import { createWidgetManager } from "./manager.min.js";

window.drawn = createWidgetManager(window.parent.host.environment).render(location.hash.slice(1), document.body);
