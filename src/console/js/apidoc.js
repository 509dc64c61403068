// The page about the API: what /api/v1/openapi.json says, for people. Nothing is fetched from elsewhere.

import { lang as chosen, setLang } from './i18n.js';
import { store } from './store.js';
import { h, put } from './ui/dom.js';
import { en, zh } from './words/apidoc.js';

const WORDS = { en, zh };
const VERBS = ['get', 'post', 'put', 'patch', 'delete'];
const DEEP = 4;

let lang = 'en';
const t = (key, values = {}) => (WORDS[lang][key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

/** The words of a key, with elements in the places of names. */
function rich(key, parts) {
  const words = (WORDS[lang][key] ?? key).split(/\{(\w+)\}/);
  return words.map((word, at) => (at % 2 ? parts[word] : word));
}

let api = null;

const named = (schema) => schema?.$ref?.split('/').pop();
const seen = (schema) => (schema?.$ref ? (api.components.schemas[named(schema)] ?? {}) : (schema ?? {}));

/** A type in words: `string`, `list of JobLine`, `one of …`. */
function kind(schema) {
  if (schema === true || schema === undefined) return t('anything');
  if (schema.$ref) {
    const there = seen(schema);
    return there.type === 'object' || there.properties ? named(schema) : kind(there);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) {
    const words = choices.map(kind);
    return [...new Set(words)].join(` ${t('or')} `);
  }
  if (schema.allOf) return schema.allOf.map(kind).join(' + ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(' | ');
  const types = [schema.type ?? []].flat();
  const orNull = types.includes('null') ? ` ${t('or')} null` : '';
  if (types.includes('array')) return `${t('list_of')} ${kind(schema.items ?? true)}${orNull}`;
  if (types.includes('object') && schema.additionalProperties && !schema.properties)
    return `${t('map_of')} ${kind(schema.additionalProperties)}${orNull}`;
  const type = types.join(` ${t('or')} `) || t('anything');
  return schema.format ? `${type} (${schema.format})` : type;
}

/** The schema below a list, a choice or a map whose fields are worth showing. */
function within(schema) {
  const there = seen(schema);
  if (there.properties) return there;
  if (there.items) return within(there.items);
  const choice = (there.anyOf ?? there.oneOf ?? there.allOf)?.map(within).find(Boolean);
  if (choice) return choice;
  return there.additionalProperties && there.additionalProperties !== true ? within(there.additionalProperties) : null;
}

function table(rows) {
  return h(
    'div.ap-scroll',
    { tabindex: '0', role: 'group', 'aria-label': t('shape') },
    h(
      'table.ap-fields',
      h(
        'thead',
        h(
          'tr',
          [t('name'), t('kind'), t('about')].map((word) => h('th', { scope: 'col' }, word)),
        ),
      ),
      h('tbody', rows),
    ),
  );
}

function fields(schema, depth = 0) {
  const there = within(schema);
  if (!there) return null;
  const must = new Set(there.required ?? []);
  const rows = Object.entries(there.properties).map(([name, field]) => {
    const about = field.description ?? seen(field).description ?? '';
    const inner = depth < DEEP && within(field) && within(field) !== there;
    const more =
      inner &&
      h(
        'details.ap-shape',
        {
          ontoggle: (event) => {
            const at = event.currentTarget;
            if (at.open && at.childElementCount === 1) at.append(fields(field, depth + 1));
          },
        },
        h('summary', t('shape')),
      );
    return h(
      'tr',
      h('th', { scope: 'row' }, h('code', name), must.has(name) && h('span.ap-must', { title: t('required') }, ' *')),
      h('td', h('code', kind(field))),
      h('td', about, more),
    );
  });
  return table(rows);
}

function parameters(operation, where, words) {
  const all = (operation.parameters ?? []).filter((p) => p.in === where);
  if (!all.length) return null;
  const rows = all.map((p) =>
    h(
      'tr',
      h('th', { scope: 'row' }, h('code', p.name), p.required && h('span.ap-must', { title: t('required') }, ' *')),
      h('td', h('code', kind(p.schema))),
      h('td', p.description),
    ),
  );
  return h('div', h('h3', words), table(rows));
}

/** A value that a schema would take: the smallest that says something. */
function sample(schema, depth = 0) {
  const there = seen(schema);
  if (there.const !== undefined) return there.const;
  if (there.enum) return there.enum[0];
  if (there.default !== undefined) return there.default;
  const choices = there.anyOf ?? there.oneOf;
  if (choices) return sample(choices.find((c) => c.type !== 'null') ?? choices[0], depth);
  const type = [there.type].flat().find((one) => one !== 'null');
  if (there.properties) {
    const must = depth > 2 ? [] : Object.keys(there.properties).filter((name) => (there.required ?? []).includes(name));
    return Object.fromEntries(
      must.map((name) => [name, name === 'reason' ? 'why' : sample(there.properties[name], depth + 1)]),
    );
  }
  return { array: [], object: {}, integer: there.minimum ?? 1, number: 1, boolean: true }[type] ?? '…';
}

function curl(verb, path, operation) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl ${verb === 'get' ? '' : `-X ${verb.toUpperCase()} `}${quote(location.origin + path)}`];
  if (operation.security?.length !== 0) lines.push('-H "Authorization: Bearer $PROCESSION_TOKEN"');
  const body = operation.requestBody?.content?.['application/json']?.schema;
  if (body) {
    lines.push("-H 'Content-Type: application/json'", '-H "Idempotency-Key: $(uuidgen)"');
    lines.push(`-d ${quote(JSON.stringify(sample(body), null, 1).replace(/\n */g, ' '))}`);
  }
  return lines.join(' \\\n  ');
}

function needs(operation) {
  const said = operation['x-needs'];
  if (said === 'nothing') return t('public');
  if (said === 'login' || !said?.permission) return t('login');
  return t(said.of === 'all groups' ? 'everywhere' : 'somewhere', { permission: said.permission });
}

function details(verb, path, operation) {
  const body = operation.requestBody?.content?.['application/json']?.schema;
  const answers = Object.entries(operation.responses?.['200']?.content ?? {});
  return h(
    'div.ap-body',
    h('p', h('strong', `${t('needs')}: `), needs(operation)),
    parameters(operation, 'path', t('place')),
    parameters(operation, 'query', t('query')),
    body && h('div', h('h3', t('sent')), fields(body) ?? h('code', kind(body))),
    answers.map(([media, answer]) =>
      h(
        'div',
        h('h3', t('answered')),
        h('p', h('code', media), media === 'application/json' && [' ', h('code', kind(answer.schema))]),
        media === 'application/json' && fields(answer.schema),
      ),
    ),
    h(
      'div',
      h('h3', t('example')),
      h('pre.ap-code', { tabindex: '0', role: 'group', 'aria-label': t('example') }, curl(verb, path, operation)),
    ),
  );
}

function entry(route) {
  const { verb, path, operation } = route;
  return h(
    'details.ap-route',
    {
      id: operation.operationId,
      'data-test': 'route',
      ontoggle: (event) => {
        const at = event.currentTarget;
        if (at.open && at.childElementCount === 1) at.append(details(verb, path, operation));
      },
    },
    h(
      'summary',
      h(`span.ap-verb.ap-${verb}`, verb.toUpperCase()),
      h('span.ap-path', path),
      h('span.ap-about', operation.summary),
    ),
  );
}

const routesOf = () =>
  Object.entries(api.paths).flatMap(([path, verbs]) =>
    VERBS.filter((verb) => verbs[verb]).map((verb) => ({
      verb,
      path,
      operation: verbs[verb],
      noun: verbs[verb].tags?.[0] ?? '',
    })),
  );

function page() {
  const all = routesOf();
  const text = ({ path, operation, verb }) => `${verb} ${path} ${operation.summary}`.toLowerCase();
  const routes = h('div', { 'data-test': 'routes' });
  const list = h('nav.ap-list', { 'aria-label': t('routes') });
  const show = (words) => {
    const found = all.filter((route) =>
      words
        .toLowerCase()
        .split(/\s+/)
        .every((word) => text(route).includes(word)),
    );
    const nouns = [...new Set(api.tags.map((tag) => tag.name))].filter((noun) =>
      found.some((route) => route.noun === noun),
    );
    const of = (noun) => found.filter((route) => route.noun === noun);
    put(
      routes,
      found.length
        ? nouns.map((noun) => h('section', h('h2.ap-noun', noun), of(noun).map(entry)))
        : h('p.muted', t('none')),
    );
    put(
      list,
      nouns.map((noun) => [
        h('h2', noun),
        of(noun).map(({ verb, path, operation }) =>
          h(
            'a.ap-to',
            { href: `#${operation.operationId}` },
            h(`span.ap-verb.ap-${verb}`, verb.toUpperCase()),
            path.replace('/api/v1', ''),
          ),
        ),
      ]),
    );
  };
  show('');
  const other = lang === 'zh' ? 'en' : 'zh';
  const main = h(
    'main.ap-main',
    { id: 'main', 'data-page': 'api', 'data-ready': 'true' },
    h(
      'div.ap-head',
      h('h1', { tabindex: '-1' }, `Procession ${t('title')}`),
      h(
        'div.row',
        h('span.muted', t('version', { version: api.info.version })),
        h(
          'button.btn.btn-small',
          {
            type: 'button',
            lang: other,
            'data-test': 'lang',
            onclick: () => {
              // This page has its own words; those of the console come later.
              setLang(other);
              store.set({ lang: other });
              lang = chosen();
              draw();
              document.querySelector('h1').focus();
            },
          },
          other === 'zh' ? '中文' : 'English',
        ),
      ),
    ),
    h(
      'div.ap-lead',
      h('p', rich('lead', { file: h('a', { href: '/api/v1/openapi.json' }, 'openapi.json') })),
      h(
        'p',
        rich('auth', { header: h('code', 'Authorization: Bearer …'), command: h('code', 'procession user token') }),
      ),
      h('p', t('errors')),
    ),
    routes,
  );
  return h(
    'div.ap',
    h('a.ap-skip', { href: '#main', 'data-test': 'skip' }, t('skip')),
    h(
      'aside.ap-side',
      h('a.ap-brand', { href: '/' }, 'Procession · ', t('console')),
      h('input.input', {
        type: 'search',
        'aria-label': t('filter'),
        placeholder: t('filter'),
        'data-test': 'filter',
        oninput: (event) => show(event.currentTarget.value),
      }),
      list,
    ),
    main,
  );
}

function openTheOneAskedFor() {
  const there = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (there?.tagName !== 'DETAILS') return;
  there.open = true;
  there.scrollIntoView();
  there.querySelector('summary').focus({ preventScroll: true });
}

const host = h('div');

function draw() {
  document.documentElement.lang = lang === 'zh' ? 'zh' : 'en';
  document.title = `Procession ${t('title')}`;
  put(host, page());
  openTheOneAskedFor();
}

async function start() {
  store.dress();
  lang = chosen();
  document.body.prepend(host);
  put(host, h('main.ap-main', { id: 'main' }, h('p.muted', t('loading'))));
  try {
    const answer = await fetch('/api/v1/openapi.json');
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    api = await answer.json();
    draw();
  } catch (error) {
    put(
      host,
      h(
        'main.ap-main',
        { id: 'main', 'data-page': 'api' },
        h('p', { role: 'alert', 'data-test': 'error' }, t('failed', { why: error.message })),
      ),
    );
  }
}

window.addEventListener('hashchange', openTheOneAskedFor);
start();
