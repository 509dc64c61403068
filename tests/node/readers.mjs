// One reader per shape. Each hands the text to the library that is to read it, and tells what the
// library then holds: `nodes` (ids), `edges` (pairs of ids), `status` (by id), `frames` (how many).
// What a shape cannot carry is left out. A reader throws where the library does.

import { readFileSync } from 'node:fs';
import { JSDOM, VirtualConsole } from 'jsdom';

// Some of these libraries look for a browser while they are loaded.
const { window } = new JSDOM('<!doctype html><div id="page"></div>', {
  pretendToBeVisual: true,
  virtualConsole: new VirtualConsole(), // jsdom complains of each canvas that it cannot draw on
});
for (const name of [
  'window',
  'document',
  'HTMLElement',
  'SVGElement',
  'Element',
  'Node',
  'Event',
  'CustomEvent',
  'DOMParser',
  'XMLSerializer',
  'MutationObserver',
  'HTMLCanvasElement',
  'requestAnimationFrame',
  'cancelAnimationFrame',
  'getComputedStyle',
  'Image',
  'DocumentFragment',
]) {
  globalThis[name] ??= name === 'window' ? window : window[name];
}
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
globalThis.window.ResizeObserver ??= globalThis.ResizeObserver;
if (!globalThis.navigator) globalThis.navigator = window.navigator;

/** The version of an installed package. */
export function version(name) {
  // Not through `require`: some packages do not export their package.json.
  const path = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(path, 'utf8')).version;
}

/**
 * The file that a package makes for browsers. Node cannot import some packages as they are: CommonJS
 * that is declared to be a module (X6), or that requires one (G6, before Node 20.19).
 */
function packed(path) {
  const module = { exports: {} };
  const code = readFileSync(new URL(`./node_modules/${path}`, import.meta.url), 'utf8');
  new Function('module', 'exports', code)(module, module.exports);
  return module.exports;
}

const isFrame = (id) => id.startsWith('group/');
const must = (holds, what) => {
  if (!holds) throw new Error(what);
};

/** Collects nodes, edges and states from whatever lists a library gives. */
function graph(nodes, edges, framed = []) {
  const status = {};
  for (const [id, word] of nodes) if (word !== undefined) status[id] = word;
  return { nodes: nodes.map(([id]) => id), edges, status, frames: framed.length };
}

async function native(text) {
  const doc = JSON.parse(text);
  must(doc.version === 1 && typeof doc.batch === 'string', 'no version or batch');
  const ids = new Set(doc.nodes.map((n) => n.id));
  for (const node of doc.nodes) {
    must(Number.isInteger(node.level) && Number.isInteger(node.order), `${node.id}: no level`);
    must([node.x, node.y, node.w, node.h].every(Number.isInteger), `${node.id}: no place`);
  }
  for (const edge of doc.edges) {
    must(ids.has(edge.source) && ids.has(edge.target), `${edge.id} hangs in the air`);
    must(edge.kind && edge.condition && edge.points.length >= 2, `${edge.id} is not complete`);
  }
  return graph(
    doc.nodes.map((n) => [n.id, n.status]),
    doc.edges.map((e) => [e.source, e.target]),
  );
}

async function reactflow(text) {
  const React = (await import('react')).default;
  const { renderToStaticMarkup } = await import('react-dom/server');
  const { ReactFlow, Handle, isNode, isEdge } = await import('@xyflow/react');
  const doc = JSON.parse(text);
  must(doc.viewport.zoom === 1, 'no viewport');
  must(doc.nodes.every(isNode) && doc.edges.every(isEdge), 'not nodes and edges');
  // On a server nothing measures the handles, so they are told.
  const handle = (type, position, { width, height }) => ({
    type,
    position,
    width: 1,
    height: 1,
    x: position === 'right' ? width : position === 'left' ? 0 : width / 2,
    y: position === 'bottom' ? height : position === 'top' ? 0 : height / 2,
  });
  const nodes = doc.nodes.map((n) =>
    n.type === 'group'
      ? n
      : {
          ...n,
          handles: [handle('source', n.sourcePosition, n), handle('target', n.targetPosition, n)],
        },
  );
  const Job = ({ data, sourcePosition, targetPosition }) =>
    React.createElement(
      'div',
      { 'data-status': data.status },
      data.label,
      React.createElement(Handle, { type: 'source', position: sourcePosition }),
      React.createElement(Handle, { type: 'target', position: targetPosition }),
    );
  const complaints = [];
  const html = renderToStaticMarkup(
    React.createElement(ReactFlow, {
      nodes,
      edges: doc.edges,
      nodeTypes: { job: Job },
      width: 4000,
      height: 4000,
      onError: (id, message) => complaints.push(`${id}: ${message}`),
    }),
  );
  must(complaints.length === 0, complaints.join('; '));
  const page = new JSDOM(html).window.document;
  const drawn = [...page.querySelectorAll('.react-flow__node')];
  const lines = new Set([...page.querySelectorAll('.react-flow__edge')].map((e) => e.dataset.id));
  const jobs = drawn.filter((n) => !isFrame(n.dataset.id));
  const frames = drawn.filter((n) => isFrame(n.dataset.id));
  const places = new Set(doc.nodes.map((n) => `${n.parentId} ${n.position.x} ${n.position.y}`));
  must(places.size === doc.nodes.length, 'two nodes stand at one place');
  return graph(
    jobs.map((n) => [n.dataset.id, n.querySelector('[data-status]')?.dataset.status]),
    doc.edges.filter((e) => lines.has(e.id)).map((e) => [e.source, e.target]),
    frames,
  );
}

async function cytoscape(text) {
  const { default: cytoscape } = await import('cytoscape');
  const cy = cytoscape({ headless: true, styleEnabled: false, ...JSON.parse(text) });
  const { elements } = cy.json();
  const all = elements.nodes;
  const jobs = all.filter((n) => !isFrame(n.data.id));
  must(
    jobs.every((n) => Number.isFinite(n.position.x) && Number.isFinite(n.position.y)),
    'no place',
  );
  must(
    cy
      .nodes()
      .filter((n) => n.isParent() !== isFrame(n.id()))
      .empty(),
    'a frame is empty',
  );
  return graph(
    jobs.map((n) => [n.data.id, n.data.status]),
    elements.edges.map((e) => [e.data.source, e.data.target]),
    all.filter((n) => isFrame(n.data.id)),
  );
}

async function g6(text) {
  const { Graph } = packed('@antv/g6/dist/g6.min.js');
  const container = document.createElement('div');
  const graph6 = new Graph({ container, width: 800, height: 600, data: JSON.parse(text) });
  const nodes = graph6.getNodeData();
  must(
    nodes.every((n) => Number.isFinite(n.style.x) && Number.isFinite(n.style.y)),
    'no place',
  );
  const edges = graph6.getEdgeData();
  const ids = new Set(nodes.map((n) => n.id));
  must(
    edges.every((e) => ids.has(e.source) && ids.has(e.target)),
    'an edge hangs in the air',
  );
  for (const node of nodes.filter((n) => n.combo)) must(graph6.getComboData(node.combo), node.combo);
  return graph(
    nodes.map((n) => [n.id, n.data.status]),
    edges.map((e) => [e.source, e.target]),
    graph6.getComboData(),
  );
}

async function x6(text) {
  const { Model } = packed('@antv/x6/dist/x6.min.js');
  const model = new Model();
  model.fromJSON(JSON.parse(text));
  const nodes = model.getNodes();
  const jobs = nodes.filter((n) => !isFrame(n.id));
  const edges = model.getEdges();
  for (const edge of edges) {
    must(edge.getSourceNode() && edge.getTargetNode(), `${edge.id} hangs in the air`);
    must(edge.getSourceNode().hasPort(edge.getSourcePortId()), `${edge.id}: no such port`);
    must(edge.getTargetNode().hasPort(edge.getTargetPortId()), `${edge.id}: no such port`);
  }
  for (const job of jobs) must(job.size().width > 0 && job.position().x > 0, `${job.id}: no place`);
  return graph(
    jobs.map((n) => [n.id, n.getData().status]),
    edges.map((e) => [e.getSourceCellId(), e.getTargetCellId()]),
    nodes.filter((n) => isFrame(n.id)),
  );
}

/** Lays a d3-dag graph out, which it can do only with a real DAG. */
async function laidOut(dag) {
  const { sugiyama, decrossTwoLayer, coordGreedy } = await import('d3-dag');
  const { width } = sugiyama().decross(decrossTwoLayer()).coord(coordGreedy())(dag);
  must(width > 0, 'no layout');
}

async function d3dag(text) {
  const { graphStratify } = await import('d3-dag');
  const dag = graphStratify()(JSON.parse(text));
  await laidOut(dag);
  return graph(
    [...dag.nodes()].map((n) => [n.data.id, n.data.data.status]),
    [...dag.links()].map((l) => [l.source.data.id, l.target.data.id]),
  );
}

async function d3dagConnect(text) {
  const { graphConnect } = await import('d3-dag');
  const dag = graphConnect().single(true)(JSON.parse(text));
  await laidOut(dag);
  return {
    nodes: [...dag.nodes()].map((n) => n.data),
    edges: [...dag.links()].map((l) => [l.source.data, l.target.data]),
  };
}

async function d3(text) {
  const { forceSimulation, forceLink, forceManyBody } = await import('d3-force');
  const { nodes, links } = JSON.parse(text);
  must(
    nodes.every((n) => Number.isFinite(n.x)),
    'no place',
  );
  const force = forceSimulation(nodes)
    .force('charge', forceManyBody())
    .force(
      'link',
      forceLink(links).id((n) => n.id),
    )
    .stop();
  force.tick(3);
  return graph(
    force.nodes().map((n) => [n.id, n.status]),
    links.map((l) => [l.source.id, l.target.id]),
  );
}

async function tree(text) {
  const { hierarchy, tree: layout } = await import('d3-hierarchy');
  const root = layout()(hierarchy(JSON.parse(text)));
  const full = root.descendants().filter((n) => !n.data.ref && n.data.kind !== 'root');
  const known = new Set(full.map((n) => n.data.id));
  const links = root.links().filter((l) => l.source.data.kind !== 'root');
  for (const { target } of links) must(known.has(target.data.id), `${target.data.id} is nowhere`);
  return graph(
    full.map((n) => [n.data.id, n.data.status]),
    links.map((l) => [l.source.data.id, l.target.data.id]),
  );
}

async function elk(text) {
  const { default: ELK } = await import('elkjs/lib/elk.bundled.js');
  const laid = await new ELK().layout(JSON.parse(text));
  const nodes = [];
  const frames = [];
  const walk = (node) => {
    for (const child of node.children ?? []) {
      must(Number.isFinite(child.x) && Number.isFinite(child.y), `${child.id}: no place`);
      (isFrame(child.id) ? frames : nodes).push(child);
      walk(child);
    }
  };
  walk(laid);
  for (const edge of laid.edges) must(edge.sections?.length > 0, `${edge.id}: no way`);
  return graph(
    nodes.map((n) => [n.id, n.data.status]),
    laid.edges.map((e) => [e.sources[0], e.targets[0]]),
    frames,
  );
}

async function dagre(text) {
  const { json } = await import('@dagrejs/graphlib');
  const { layout } = (await import('@dagrejs/dagre')).default;
  const doc = JSON.parse(text);
  const known = new Set(doc.nodes.map((n) => n.v));
  // graphlib makes nodes out of unknown ends of edges.
  must(
    doc.edges.every((e) => known.has(e.v) && known.has(e.w)),
    'an edge hangs in the air',
  );
  const read = json.read(doc);
  layout(read);
  const jobs = read.nodes().filter((v) => !isFrame(v));
  for (const v of jobs) must(Number.isFinite(read.node(v).x), `${v}: no place`);
  return graph(
    jobs.map((v) => [v, read.node(v).status]),
    read.edges().map((e) => [e.v, e.w]),
    read.nodes().filter(isFrame),
  );
}

// What version 2 of the JSON Graph Format allows of a graph of nodes and edges. Its schema is in no
// package; this is its content.
const text = { type: 'string' };
const bag = { type: 'object' };
const closed = (properties, required = []) => ({ type: 'object', additionalProperties: false, properties, required });
const JGF = closed(
  {
    graph: closed({
      id: text,
      label: text,
      directed: { type: 'boolean' },
      type: text,
      metadata: bag,
      nodes: { type: 'object', additionalProperties: closed({ label: text, metadata: bag }) },
      edges: {
        type: 'array',
        items: closed(
          {
            id: text,
            source: text,
            target: text,
            relation: text,
            directed: { type: 'boolean' },
            label: text,
            metadata: bag,
          },
          ['source', 'target'],
        ),
      },
    }),
  },
  ['graph'],
);

async function jgf(text) {
  const { default: Ajv } = await import('ajv');
  const ajv = new Ajv({ strict: true });
  const doc = JSON.parse(text);
  must(ajv.validate(JGF, doc), ajv.errorsText());
  const { nodes, edges, directed } = doc.graph;
  must(directed === true, 'not directed');
  must(
    edges.every((e) => nodes[e.source] && nodes[e.target]),
    'an edge hangs in the air',
  );
  return graph(
    Object.entries(nodes).map(([id, n]) => [id, n.metadata.status]),
    edges.map((e) => [e.source, e.target]),
  );
}

async function echarts(text) {
  const echarts = await import('echarts');
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 1200, height: 800 });
  try {
    chart.setOption(JSON.parse(text));
    must(chart.renderToSVGString().includes('<svg'), 'nothing is drawn');
    const series = chart.getModel().getSeriesByIndex(0);
    const drawn = series.getGraph();
    const words = series.getCategoriesData();
    const word = (n) => words.getName(n.getModel().get('category'));
    const status = (n) => (word(n) === 'DEFINED' ? undefined : word(n));
    return graph(
      drawn.nodes.map((n) => [n.id, status(n)]),
      drawn.edges.map((e) => [e.node1.id, e.node2.id]),
    );
  } finally {
    chart.dispose();
  }
}

async function dot(text) {
  const { instance } = await import('@viz-js/viz');
  const viz = await instance();
  const laid = viz.renderJSON(text);
  const nodes = laid.objects.filter((o) => o.label !== undefined && o.nodes === undefined);
  const names = laid.objects.map((o) => o.name);
  return {
    ...graph(
      nodes.map((n) => [n.name, stateIn(n.label.split('\\n'))]),
      (laid.edges ?? []).map((e) => [names[e.tail], names[e.head]]),
    ),
    clusters: laid.objects.filter((o) => o.name.startsWith('cluster_')).length,
  };
}

const STATES =
  /^(PENDING|HELD|QUEUED|RUNNING|RETRY_WAIT|KILLING|SUCCESS|WARNING|FAILED|TIMEOUT|KILLED|SKIPPED|UPSTREAM_FAILED|FORCED|UNKNOWN)\b/;
const stateIn = (lines) =>
  lines
    .slice(1)
    .map((l) => STATES.exec(l)?.[1])
    .findLast(Boolean);

async function mermaid(text) {
  const { default: mermaid } = await import('mermaid');
  mermaid.initialize({ startOnLoad: false, maxEdges: 100_000, maxTextSize: 10_000_000 });
  const { diagramType } = await mermaid.parse(text);
  must(diagramType.startsWith('flowchart'), `read as ${diagramType}`);
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
  const vertices = [...db.getVertices().values()];
  // Entities are replaced only when it draws.
  const plain = (label) => label.replace(/ﬂ°°(\d+)¶ß/g, (_, n) => String.fromCodePoint(n));
  const head = new Map(vertices.map((v) => [v.id, plain(v.text.split(/<br ?\/?>/)[0])]));
  const status = (v) => v.classes.find((c) => STATES.test(c));
  return {
    ...graph(
      vertices.map((v) => [head.get(v.id), status(v)]),
      db.getEdges().map((e) => [head.get(e.start), head.get(e.end)]),
    ),
    clusters: db.getSubGraphs().length,
  };
}

async function svg(text) {
  const { SaxesParser } = await import('saxes');
  const parser = new SaxesParser({ xmlns: true });
  const nodes = [];
  const edges = [];
  let frames = 0;
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes: a }) => {
    must(!['script', 'image', 'foreignObject', 'use'].includes(name), `holds a ${name}`);
    must(!a.href && !a['xlink:href'], 'names something outside');
    if (a['data-job']) nodes.push([a['data-job'].value, a['data-status']?.value]);
    if (a['data-source']) edges.push([a['data-source'].value, a['data-target'].value]);
    if (a.class?.value === 'frame') frames += 1;
  });
  parser.write(text).close();
  return graph(nodes, edges, Array(frames).fill(0));
}

/** Shape, the package that reads it, and how. */
export const READERS = {
  native: ['JSON', native],
  reactflow: ['@xyflow/react', reactflow],
  cytoscape: ['cytoscape', cytoscape],
  g6: ['@antv/g6', g6],
  x6: ['@antv/x6', x6],
  d3dag: ['d3-dag', d3dag],
  'd3dag-connect': ['d3-dag', d3dagConnect],
  d3: ['d3-force', d3],
  tree: ['d3-hierarchy', tree],
  elk: ['elkjs', elk],
  dagre: ['@dagrejs/dagre', dagre],
  jgf: ['ajv', jgf],
  echarts: ['echarts', echarts],
  dot: ['@viz-js/viz', dot],
  mermaid: ['mermaid', mermaid],
  svg: ['saxes', svg],
};
