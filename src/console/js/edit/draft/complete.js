// What may stand at a place of a definition file, by its JSON Schema: keys, values of a list, codes of jobs, routines.

/** The keys that lead to a line, by indentation: `['jobs', 'A', 'params']`; `-` stands for an item of a list. */
export function pathAt(lines, number, indent) {
  const path = [];
  let depth = indent;
  for (let i = number - 1; i >= 0 && depth > 0; i--) {
    const found = lines[i].match(/^(\s*)((?:- )*)([^\s#'"][^:#]*|"[^"]*"|'[^']*')\s*:(?:\s|$)/);
    if (!found) continue;
    const at = found[1].length;
    const inner = at + found[2].length;
    if (found[2] && inner < depth) {
      path.unshift(found[3].trim().replace(/^["']|["']$/g, ''));
      path.unshift('-');
      depth = at;
    } else if (found[2] && inner === depth) {
      path.unshift('-');
      depth = at;
    } else if (at < depth) {
      path.unshift(found[3].trim().replace(/^["']|["']$/g, ''));
      depth = at;
    }
  }
  return path;
}

const resolved = (schema, root) => {
  let at = schema;
  for (let i = 0; at?.$ref && i < 10; i++)
    at = at.$ref
      .slice(2)
      .split('/')
      .reduce((found, part) => found?.[part], root);
  return at;
};

/** All schemas that may hold at one place: branches of anyOf, oneOf and allOf are all looked at. */
function spread(schema, root, found = []) {
  const at = resolved(schema, root);
  if (!at || typeof at !== 'object' || found.includes(at)) return found;
  found.push(at);
  for (const key of ['anyOf', 'oneOf', 'allOf']) for (const one of at[key] ?? []) spread(one, root, found);
  return found;
}

/** The schemas behind a path of keys. */
export function schemasAt(root, path) {
  let here = spread(root, root);
  for (const key of path) {
    const next = here.flatMap((one) => {
      if (key === '-') return one.items ? [one.items] : [];
      if (one.properties?.[key]) return [one.properties[key]];
      return typeof one.additionalProperties === 'object' ? [one.additionalProperties] : [];
    });
    here = next.flatMap((one) => spread(one, root));
  }
  return here;
}

/** Keys that may stand in a map: `[{label, detail}]`. */
export function keysAt(root, path) {
  const found = new Map();
  for (const schema of schemasAt(root, path))
    for (const [key, value] of Object.entries(schema.properties ?? {})) {
      const detail = value.description ?? resolved(value, root)?.description;
      if (!found.has(key) || detail) found.set(key, { label: key, detail: detail ?? found.get(key)?.detail ?? '' });
    }
  return [...found.values()];
}

/** Values that may stand behind a key. */
export function valuesAt(root, path, known = {}) {
  const key = path.at(-1) === '-' ? path.at(-2) : path.at(-1);
  if (known[key]) return known[key].map((label) => ({ label, detail: '' }));
  const found = new Map();
  const add = (value, detail = '') => value !== null && found.set(String(value), { label: String(value), detail });
  for (const schema of schemasAt(root, path)) {
    if ('const' in schema) add(schema.const, schema.description);
    const all = schema.enum ?? [];
    // Of all spellings of yes and no those of YAML are enough.
    (all.includes(true) && all.includes(false) ? [true, false] : all).forEach((value) => add(value));
    const types = [schema.type].flat();
    if (types.includes('boolean') && !types.includes('string')) [true, false].forEach((value) => add(value));
  }
  return [...found.values()];
}

/**
 * What may be completed where the cursor is: `{from, options: [{label, detail, insert}]}`, or null.
 * `known` has values of keys by name: `{depends_on: codes, proc_name: routines, source: names}`.
 */
export function complete(root, text, at, known) {
  const before = text.slice(0, at);
  const lines = before.split('\n');
  const line = lines.at(-1);
  if (/(^|\s)#/.test(line)) return null;
  const value = line.match(/^(\s*(?:- )*)([\w.-]+):\s+(?:\[(?:[^\]]*,)?\s*)?([^\s,[\]{}"']*)$/);
  if (value) {
    const path = [
      ...pathAt(lines, lines.length - 1, value[1].length),
      ...(value[1].includes('-') ? ['-'] : []),
      value[2],
    ];
    const clean = path.filter((key, i) => !(key === '-' && path[i - 1] === '-'));
    return { from: at - value[3].length, options: valuesAt(root, clean, known) };
  }
  const key = line.match(/^(\s*(?:- )*)([\w.-]*)$/);
  if (!key) return null;
  const path = pathAt(lines, lines.length - 1, key[1].length);
  const isItem = key[1].includes('-');
  if (isItem && path.at(-1) !== '-') path.push('-');
  const keys = keysAt(root, path).map((one) => ({ ...one, insert: `${one.label}: ` }));
  const items = isItem ? valuesAt(root, path, known) : [];
  return { from: at - key[2].length, options: [...items, ...keys] };
}
