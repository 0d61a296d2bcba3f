import 'uplot/dist/uPlot.min.css';
import './base.css';
import '../../torch_inspector/views/static/style.css';
import './run.css';
import './contrast.css';
