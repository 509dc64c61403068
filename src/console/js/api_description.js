// The description of the API with its references in place, part by part.
//
// The resolver of Swagger UI reads all of a description anew for every part that is shown: more than a second, and
// half a minute on a busy machine. This one description needs none of its generality: it is whole, and every
// reference in it begins with `#/`.

const unescaped = (key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');

function targetOf(spec, ref) {
  const found = ref.slice(2).split('/').map(unescaped);
  return found.reduce((at, key) => at?.[key], spec);
}

function resolved(node, { spec, base, open }) {
  if (Array.isArray(node)) return node.map((one) => resolved(one, { spec, base, open }));
  if (!node || typeof node !== 'object') return node;
  const ref = node.$ref;
  if (typeof ref === 'string') {
    const target = ref.startsWith('#/') && !open.includes(ref) ? targetOf(spec, ref) : undefined;
    // A circle, and what is not there, stay references.
    if (target === undefined) return node;
    const { $ref: _, ...beside } = node;
    const inner = { spec, base, open: [...open, ref] };
    return { ...resolved(target, inner), ...resolved(beside, { spec, base, open }), $$ref: base + ref };
  }
  return Object.fromEntries(Object.entries(node).map(([key, one]) => [key, resolved(one, { spec, base, open })]));
}

/** One part of a description, found by its path of keys. What operations inherit is written into them. */
export function resolvePart(spec, path, base = '') {
  const found = path.reduce((at, key) => at?.[key], spec);
  const part = resolved(found ?? null, { spec, base, open: [] });
  const isOperation = path.length === 3 && path[0] === 'paths';
  return isOperation && part && !part.security && spec.security ? { ...part, security: spec.security } : part;
}
