// node check.mjs FOLDER: reads every picture below FOLDER with the library that is to read it.
//
// FOLDER holds a folder per scene; in it `expected.json` ({ nodes, edges, status, groups }) and a file
// per shape, named after it. What the library holds afterwards must be what is expected. Then each
// file is spoilt in several ways, and each time the same check must fail: a check that cannot fail
// says nothing. Prints a line per shape, or what is wrong, and ends with 1 then.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { READERS, version } from './readers.mjs';

/** What differs between two lists, as words; empty when nothing does. */
function difference(what, found, wanted) {
  const [a, b] = [[...found].sort(), [...wanted].sort()];
  const missing = b.filter((x) => !a.includes(x)).slice(0, 3);
  const extra = a.filter((x) => !b.includes(x)).slice(0, 3);
  if (a.length === b.length && missing.length === 0 && extra.length === 0) return [];
  return [`${a.length} ${what} instead of ${b.length}; missing: ${missing.join(' | ')}; extra: ${extra.join(' | ')}`];
}

/** Everything that is not as expected. */
async function faults(shape, text, expected) {
  let found;
  try {
    found = await READERS[shape][1](text);
  } catch (error) {
    return [String(error?.message ?? error).split('\n')[0]];
  }
  // Mermaid has ids of its own; there a node is known by the first line of its text.
  const name = (id) => (shape === 'mermaid' && Object.hasOwn(expected.heads, id) ? expected.heads[id] : id);
  const pair = ([source, target]) => `${source} -> ${target}`;
  const list = [
    ...difference('nodes', found.nodes, expected.nodes.map(name)),
    ...difference(
      'edges',
      found.edges.map(pair),
      expected.edges.map((e) => pair(e.map(name))),
    ),
  ];
  if (found.status) {
    const states = (of) => Object.entries(of).map(([id, word]) => `${name(id)}: ${word}`);
    list.push(...difference('states', states(found.status), states(expected.status)));
  }
  const frames = expected.groups > 1 ? expected.groups : 0;
  if (['reactflow', 'cytoscape', 'g6', 'x6', 'elk', 'dagre', 'svg'].includes(shape) && found.frames !== frames) {
    list.push(`${found.frames} frames instead of ${frames}`);
  }
  if (found.clusters !== undefined && found.clusters !== expected.groups) {
    list.push(`${found.clusters} clusters instead of ${expected.groups}`);
  }
  return list;
}

/** Where a JSON shape keeps its edges, so that one can be taken away. */
const edgesOf = {
  native: (d) => d.edges,
  reactflow: (d) => d.edges,
  cytoscape: (d) => d.elements.edges,
  g6: (d) => d.edges,
  x6: (d) => d.edges,
  'd3dag-connect': (d) => d,
  d3: (d) => d.links,
  elk: (d) => d.edges,
  dagre: (d) => d.edges,
  jgf: (d) => d.graph.edges,
  echarts: (d) => d.series[0].links,
  d3dag: (d) => d.findLast((n) => n.parentIds).parentIds,
  tree: (d) => {
    let n = d;
    while (n.children?.length) {
      d = n;
      n = n.children.at(-1);
    }
    return d.children;
  },
};

const TEXT = {
  dot: { edge: /\n {2}"[^\n]* -> [^\n]*/, cut: /}\s*$/, state: /SUCCESS/g },
  mermaid: { edge: /\n {2}n\d+ -->[^\n]*/, cut: /flowchart LR/, state: /SUCCESS/g },
  svg: { edge: /<path[^>]* data-source="[^\n]*/, cut: /<\/svg>\s*$/, state: /data-status="SUCCESS"/g },
};

/** Spoilt copies of a picture, by what was done to them. */
function spoilt(shape, text, expected) {
  const copies = {};
  const hasState = Object.values(expected.status).includes('SUCCESS') && shape !== 'd3dag-connect';
  if (TEXT[shape]) {
    const { edge, cut, state } = TEXT[shape];
    copies['an edge is gone'] = text.replace(edge, '');
    copies['it is cut'] = text.replace(cut, '');
    if (hasState) copies['a state is another'] = text.replace(state, (w) => w.replace('SUCCESS', 'FAILED'));
    return copies;
  }
  const without = JSON.parse(text);
  edgesOf[shape](without).pop();
  copies['an edge is gone'] = JSON.stringify(without);
  const astray = JSON.parse(text);
  redirect(edgesOf[shape](astray));
  copies['an edge leads nowhere'] = JSON.stringify(astray);
  copies['it is cut'] = text.trimEnd().slice(0, -1);
  if (hasState) copies['a state is another'] = text.replace(/"SUCCESS"/g, '"FAILED"');
  return copies;
}

/** Lets the last edge of a list end at a node that is not there. */
function redirect(edges) {
  const edge = edges.at(-1);
  if (typeof edge === 'string') edges[edges.length - 1] = 'NOBODY';
  else if (Array.isArray(edge)) edge[1] = 'NOBODY';
  else if (edge.data?.target) edge.data.target = 'NOBODY';
  else if (edge.target?.cell) edge.target.cell = 'NOBODY';
  else if (edge.targets) edge.targets = ['NOBODY'];
  else if (edge.w) edge.w = 'NOBODY';
  else if (edge.target) edge.target = 'NOBODY';
  else edge.id = 'NOBODY';
}

async function main(folder) {
  const wrong = [];
  for (const scene of readdirSync(folder).sort()) {
    const read = (name) => readFileSync(join(folder, scene, name), 'utf8');
    const expected = JSON.parse(read('expected.json'));
    for (const [shape, [library]] of Object.entries(READERS)) {
      const text = read(shape);
      const found = await faults(shape, text, expected);
      wrong.push(...found.map((fault) => `${scene}, ${shape}: ${fault}`));
      if (expected.spoil) {
        for (const [how, copy] of Object.entries(spoilt(shape, text, expected))) {
          if (copy === text) wrong.push(`${scene}, ${shape}: could not be spoilt so that ${how}`);
          else if ((await faults(shape, copy, expected)).length === 0) {
            wrong.push(`${scene}, ${shape}: is accepted although ${how}`);
          }
        }
      }
      const by = library === 'JSON' ? 'JSON.parse' : `${library} ${version(library)}`;
      console.log(`${scene} ${shape}: ${expected.nodes.length} nodes, ${expected.edges.length} edges, read by ${by}`);
    }
    const others = readdirSync(join(folder, scene)).filter((f) => f !== 'expected.json' && !READERS[f]);
    wrong.push(...others.map((shape) => `${scene}: no reader for the shape ${shape}`));
  }
  for (const fault of wrong) console.error(fault);
  process.exit(wrong.length === 0 ? 0 : 1);
}

await main(process.argv[2]);
