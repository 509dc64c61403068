// The panel of one job of a batch: what it does and why, its log, its data, its tries, and what can be done about it.

import { actionButtons } from './actions.js';
import { api, live } from './api.js';
import { decideButtons } from './approve.js';
import { t } from './i18n.js';
import { clean } from './log_lines.js';
import { logView } from './log_view.js';
import { here, setQuery, to } from './router.js';
import { yaml } from './edit/yaml.js';
import { isActive, isFinal, isGood, isWaiting } from './status.js';
import {
  badge,
  button,
  bytes,
  copyButton,
  duration,
  empty,
  facts,
  failed,
  h,
  icon,
  linkButton,
  loading,
  num,
  poll,
  put,
  sentence,
  settled,
  since,
  table,
  time,
  walkTabs,
} from './ui.js';

let open = null;

/** Closes the panel, if one is open. */
export function closePanel() {
  open?.close();
}

/** Opens the panel of a job; another job takes the place of the one before.
 * `hear` listens to the events of the batch where somebody does already: a browser keeps few connections. */
export function openJob({ group, no, job, batch, onChange, onclose, hear }) {
  const from = open ? open.from : document.activeElement;
  const tab = open?.tab;
  open?.close({ quiet: true });
  open = makePanel({ group, no, job, batch, onChange, onclose, hear, from, tab });
  return open;
}

const TABS = ['now', 'log', 'data', 'tries', 'definition'];

function makePanel({ group, no, job, batch, onChange, onclose, hear, from, tab = 'now' }) {
  const at = api.path`/groups/${group}/batches/${no}/jobs/${job}`;
  const known = batch?.jobs?.find((j) => j.job_code === job);
  const heading = h('h2', { id: 'job-panel-title', tabindex: '-1' }, job);
  const head = h('div.panel-status', { 'aria-live': 'polite' });
  const tablist = walkTabs(h('div.tabs', { role: 'tablist', 'aria-label': t('panel.views') }));
  const body = h('div.panel-body', { role: 'tabpanel', tabindex: '0', 'aria-labelledby': 'job-panel-title' });
  const actions = h('div.panel-actions', { role: 'group', 'aria-label': t('common.actions') });
  const el = h(
    'aside.panel',
    { id: 'job-panel', 'aria-labelledby': 'job-panel-title', 'data-test': 'job-panel', 'data-job': job },
    h(
      'header.panel-head',
      h('div', h('p.muted', `${group} · ${no}`), heading),
      h('span.spacer'),
      copyButton(() => location.href),
      button(t('common.close'), {
        icon: 'close',
        iconOnly: true,
        kind: 'quiet',
        test: 'panel-close',
        onclick: () => close(),
      }),
    ),
    head,
    actions,
    tablist,
    body,
  );
  let doc = known ? { ...known } : null;
  let log = null;
  let ended = false;
  const line = here().query.get('line');
  const me = { from, tab: line ? 'log' : tab, close };

  function close({ quiet } = {}) {
    if (ended) return;
    ended = true;
    log?.destroy();
    ends.forEach((end) => end());
    el.remove();
    if (open === me) open = null;
    document.querySelectorAll('tr.is-current').forEach((tr) => tr.classList.remove('is-current'));
    if (quiet) return;
    document.documentElement.classList.remove('has-panel');
    setQuery({ job: null, line: null });
    onclose?.();
    if (from?.isConnected) from.focus({ preventScroll: true });
  }

  function drawTabs() {
    put(
      tablist,
      TABS.map((key) =>
        h(
          'button.tab',
          {
            type: 'button',
            role: 'tab',
            'aria-selected': String(key === me.tab),
            tabindex: key === me.tab ? '0' : '-1',
            'data-test': `panel-${key}`,
            onclick: () => {
              me.tab = key;
              drawTabs();
              drawBody();
              tablist.querySelector('[aria-selected=true]')?.focus();
            },
          },
          t(`panel.${key}`),
        ),
      ),
    );
  }

  let told = '';
  function drawHead() {
    if (!doc) return;
    const is = isActive(doc.status);
    put(head, [
      badge(doc.status, { mode: doc.run_mode }),
      doc.is_late && h('span.late', t('due.late')),
      h('span.muted', [doc.job_name, doc.job_type].filter(Boolean).join(' · ')),
      is && doc.start_time
        ? h('span', since(doc.start_time))
        : doc.duration_ms !== null && doc.duration_ms !== undefined && h('span', duration(doc.duration_ms)),
    ]);
    const next = `${doc.status}|${doc.run_mode}`;
    if (next === told && actions.childElementCount) return;
    told = next;
    put(
      actions,
      doc.job_type === 'APPROVAL' &&
        doc.status === 'RUNNING' &&
        decideButtons({
          group,
          no,
          job,
          onDone: () => {
            refresh();
            onChange?.();
          },
        }),
      actionButtons({
        group,
        no,
        job: { ...doc, job_code: job },
        onDone: () => {
          refresh();
          onChange?.();
        },
      }),
    );
  }

  function drawBody() {
    if (me.tab !== 'log') {
      log?.destroy();
      log = null;
    }
    if (!doc) return;
    if (me.tab === 'now')
      put(
        body,
        nowTab(doc, {
          at,
          open: (code) => openJob({ group, no, job: code, batch, onChange, onclose, hear }),
          toLog: () => {
            me.tab = 'log';
            drawTabs();
            drawBody();
          },
        }),
      );
    else if (me.tab === 'data') put(body, dataTab(doc, at));
    else if (me.tab === 'tries') put(body, triesTab(doc));
    else if (me.tab === 'definition') put(body, definitionTab(doc, job));
    else if (!log) {
      log = logView({ at, attempts: attemptsOf(doc), running: () => !isFinal(doc.status), line });
      put(body, log.el);
    } else {
      log.attempts(attemptsOf(doc));
      if (!log.el.isConnected) put(body, log.el);
    }
  }

  let before = '';
  async function refresh() {
    try {
      const next = await api.get(at);
      if (ended) return;
      doc = flat(next, known);
      drawHead();
      const now = JSON.stringify(doc);
      if (now !== before && !(me.tab === 'definition' && before)) drawBody();
      before = now;
    } catch (error) {
      if (!ended && !before) put(body, failed(error, refresh));
    }
  }
  const soon = settled(250, refresh);
  const heard = (event) => (event.job_code ?? event.job) === job && soon();
  const onKey = (event) => {
    if (event.key === 'Escape' && !document.querySelector('dialog[open], [popover]:popover-open')) close();
  };
  document.addEventListener('keydown', onKey);
  const ends = [
    () => document.removeEventListener('keydown', onKey),
    hear ? hear(heard) : live({ group, batch_no: no }, { job: heard, gap: soon }),
    poll(() => (doc && isFinal(doc.status) ? null : refresh()), 5000),
  ];
  document.body.append(el);
  document.documentElement.classList.add('has-panel');
  setQuery({ job });
  drawTabs();
  if (doc) {
    drawHead();
    drawBody();
  } else put(body, loading());
  heading.focus({ preventScroll: true });
  document.querySelectorAll(`tr[data-key="${CSS.escape(job)}"]`).forEach((tr) => tr.classList.add('is-current'));
  refresh();
  return me;
}

/** The document of a job, with what the batch's says of it at the same level. */
const flat = (next, known) => ({ ...known, ...next, ...next.job });
const attemptsOf = (doc) => doc.attempts ?? (doc.attempt ? [{ attempt: doc.attempt, status: doc.status }] : []);

const section = (title, ...children) => h('section.panel-section', h('h3', title), children);
const jobLinks = (all, show) =>
  h(
    'ul.neighbours',
    all.map((n) =>
      h(
        'li',
        badge(n.status),
        h('button.link', { type: 'button', onclick: () => show(n.job_code) }, n.job_code),
        n.when && n.when !== 'success' && h('span.tag', n.when),
      ),
    ),
  );

function nowTab(doc, { at, toLog, open: openOther }) {
  const why = doc.why;
  const error = doc.error_message;
  const tail = h('div');
  if (doc.attempt > 0) {
    api
      .get(`${at}/log`, { attempt: doc.attempt, before: `${doc.attempt}:999999999`, limit: 12 })
      .then((page) => {
        const lines = page.items;
        if (lines.length)
          put(
            tail,
            section(
              t('panel.log_tail'),
              h(
                'pre.log.log-short',
                { tabindex: '0', role: 'region', 'aria-label': t('panel.log_tail') },
                lines.map((l) => `${clean(l.text)}\n`),
              ),
              button(t('panel.log_all'), { small: true, icon: 'log', onclick: toLog }),
            ),
          );
      })
      .catch(() => {});
  }
  const { session, node, expected, below } = doc;
  return [
    error &&
      (isGood(doc.status)
        ? section(t('job.remark'), h('div.note', { 'data-test': 'job-remark' }, icon('info'), h('p.grow', error)))
        : section(t('job.error'), h('div.note.note-bad', icon('warning'), h('pre.grow', error), copyButton(error)))),
    why &&
      !(error && why.why.includes(error)) &&
      section(isWaiting(doc.status) ? t('panel.why') : t('panel.what_now'), h('p', sentence(why.why))),
    below?.open > 0 &&
      section(
        t('panel.below'),
        h(
          'p',
          t('panel.below_n', { n: below.open }),
          below.waiting?.length > 0 &&
            h('span.muted', ` ${below.waiting.slice(0, 8).join(', ')}${below.waiting.length > 8 ? ' …' : ''}`),
        ),
      ),
    session &&
      section(
        t('panel.on_server'),
        session.statement && h('pre.code', session.statement),
        facts([
          [t('job.source'), session.source],
          [t('panel.lock'), h('code', session.lock)],
          [t('panel.waits_on'), session.waits_on],
        ]),
      ),
    !doc.job_type
      ? null
      : section(
          t('panel.facts'),
          facts([
            [t('job.began'), doc.start_time && time(doc.start_time, { seconds: true })],
            [t('job.ended'), doc.end_time && time(doc.end_time, { seconds: true })],
            [
              t('job.took'),
              doc.duration_ms !== null && doc.duration_ms !== undefined ? duration(doc.duration_ms) : null,
            ],
            [
              t('job.usually'),
              // Without a history of its own it is what other jobs take, which nobody would call usual.
              expected && expected.basis !== 'assumed'
                ? `${duration(expected.p50_ms)} (p95 ${duration(expected.p95_ms)})`
                : null,
            ],
            [t('job.starts'), doc.attempt ? num(doc.attempt) : null],
            [t('job.failed_tries'), doc.try_count ? num(doc.try_count) : null],
            [t('job.not_before'), doc.not_before && time(doc.not_before, { seconds: true })],
            [t('due.start_by'), doc.start_by && time(doc.start_by)],
            [t('due.due'), doc.due && h('span', { class: doc.is_late ? 'late' : null }, time(doc.due))],
            [t('job.priority'), doc.priority ? num(doc.priority) : null],
            [
              t('job.node'),
              node
                ? h(
                    'span',
                    { class: node.is_alive ? null : 'late' },
                    [node.host, node.pid].filter(Boolean).join(' · ') || node.node_id,
                    node.is_given_only && ` (${t('job.given_only')})`,
                  )
                : null,
            ],
          ]),
        ),
    doc.parents?.length > 0 && section(t('panel.parents'), jobLinks(doc.parents, openOther)),
    doc.children?.length > 0 && section(t('panel.children'), jobLinks(doc.children, openOther)),
    tail,
    doc.mails?.length > 0 &&
      section(
        t('nav.outbox'),
        h(
          'ul.lines',
          doc.mails.map((m) =>
            h('li', h('span', m.subject), h('span.end', time(m.sent ?? m.created), h('br'), h('span.muted', m.to))),
          ),
        ),
      ),
  ];
}

const plain = (value) =>
  value === null || value === undefined ? 'NULL' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** `text, 3.2 MB, stored`, with a link to the value. */
function storedValue(stored, at) {
  const words = t('panel.stored_value', { type: stored.type ?? 'text', size: bytes(stored.bytes) });
  const link = { icon: 'download', download: '' };
  return h('span', words, ' ', linkButton(t('log.download'), api.href(`${at}/values/${stored.position}`), link));
}

function dataTab(doc, at) {
  const rows = doc.params ?? [];
  const outputs = doc.outputs ?? {};
  const results = outputs.results ?? [];
  const rules = Object.entries(outputs.rules ?? {});
  const checks = Array.isArray(outputs.checks)
    ? outputs.checks.map((c) => [c.name ?? c.check, c])
    : Object.entries(outputs.checks ?? {});
  const values = [
    ...Object.entries(outputs.values ?? {}).map(([name, value]) => ({ name, value })),
    ...Object.entries(outputs.stored ?? {}).map(([name, stored]) => ({ name, stored })),
  ];
  return [
    section(
      t('panel.parameters'),
      rows.length
        ? table({
            caption: t('panel.parameters'),
            rows,
            rowKey: (r) => r.name,
            columns: [
              { key: 'name', label: t('param.name'), cell: (r) => h('code', r.name) },
              {
                key: 'value',
                label: t('param.value'),
                cell: (r) =>
                  r.fault
                    ? h('span.bad', r.fault)
                    : r.layer || r.value !== null
                      ? h('code', plain(r.value))
                      : h('span.muted', t('param.out')),
              },
              { key: 'layer', label: t('param.layer'), hide: 'narrow', cell: (r) => h('span.muted', r.layer ?? '') },
            ],
          }).el
        : h('p.muted', t('panel.no_parameters')),
    ),
    section(
      t('panel.outputs'),
      values.length
        ? table({
            caption: t('panel.outputs'),
            rows: values,
            rowKey: (r) => r.name,
            columns: [
              { key: 'name', label: t('param.name'), value: (r) => r.name, cell: (r) => h('code', r.name) },
              {
                key: 'value',
                label: t('param.value'),
                value: (r) => r.value,
                cell: (r) => (r.stored ? storedValue(r.stored, at) : h('code', plain(r.value))),
              },
            ],
          }).el
        : h('p.muted', t('panel.no_outputs')),
      outputs.rows_affected ? h('p', t('job.rows_changed', { n: outputs.rows_affected })) : null,
    ),
    [...rules, ...checks].length > 0 &&
      section(
        t('panel.checks'),
        h(
          'ul.checks',
          [...rules, ...checks].map(([name, r]) =>
            h(
              'li',
              badge(r.ok === false ? (r.grade === 'warning' ? 'WARNING' : 'FAILED') : 'SUCCESS'),
              h('code', name),
              h('span.muted', r.message ?? r.value ?? ''),
            ),
          ),
        ),
      ),
    results.map((r, i) =>
      section(
        `${t('panel.result_set', { n: i + 1 })} · ${t('panel.rows', { n: r.row_count })}`,
        table({
          caption: t('panel.result_set', { n: i + 1 }),
          rows: (r.rows ?? []).map((cells, n) => ({ n, cells })),
          rowKey: (x) => x.n,
          locked: true,
          columns: (r.columns ?? []).map((c, column) => ({
            key: String(column),
            label: c,
            cell: (x) => {
              const aside = r.unusable?.find((cell) => cell.stored && cell.row === x.n && cell.column === column);
              return aside ? storedValue(aside.stored, at) : h('code', plain(x.cells[column]));
            },
          })),
        }).el,
      ),
    ),
    outputs.warnings?.length > 0 &&
      section(
        t('panel.warnings'),
        h(
          'ul.plain',
          outputs.warnings.map((w) => h('li.mono', plain(w))),
        ),
      ),
  ];
}

function triesTab(doc) {
  const all = attemptsOf(doc);
  if (!all.length) return empty({ title: t('panel.no_tries') });
  const starts = table({
    caption: t('panel.tries'),
    rows: [...all].reverse(),
    rowKey: (a) => a.attempt,
    columns: [
      { key: 'attempt', label: t('job.start_no'), num: true },
      { key: 'status', label: t('common.status'), cell: (a) => badge(a.status) },
      { key: 'start_time', label: t('job.began'), cell: (a) => time(a.start, { seconds: true }) },
      {
        key: 'took',
        label: t('job.took'),
        num: true,
        value: (a) => a.duration_ms ?? 0,
        cell: (a) => duration(a.duration_ms),
      },
      {
        key: 'node',
        label: t('job.node'),
        hide: 'narrow',
        cell: (a) => h('span', { title: a.node }, String(a.node ?? '').slice(0, 8)),
      },
      // Of scripts alone: user, isolation, limits.
      ...(all.some((a) => typeof a.script_hold === 'string')
        ? [{ key: 'script_hold', label: t('job.script_hold'), cell: (a) => a.script_hold || t('job.script_free') }]
        : []),
      {
        key: 'message',
        label: t('job.message'),
        cls: 'clip',
        cell: (a) => h('span', { title: a.message }, a.message ?? ''),
      },
    ],
  }).el;
  const steps = doc.changes ?? [];
  return [
    starts,
    steps.length > 0 &&
      section(
        t('panel.steps'),
        h(
          'ol.steps',
          steps.map((c) =>
            h('li', time(c.at, { seconds: true, millis: true }), badge(c.status), h('span.muted', c.message ?? '')),
          ),
        ),
      ),
  ];
}

function definitionTab(doc, code) {
  const def = doc.definition;
  const text = [
    def?.sql,
    def?.script,
    def?.proc_name && `CALL ${def.proc_name}`,
    def?.executor?.handler && `${def.executor.handler} @ ${def.executor.app}`,
  ].find((x) => typeof x === 'string' && x);
  return [
    h(
      'div.row',
      h(
        'a.btn.btn-small',
        { href: to`/jobs/${def?.group ? `${def.group}.${code}` : code}` },
        icon('job'),
        h('span', t('panel.to_job')),
      ),
      h('span.muted', t('panel.definition_lead')),
    ),
    text && section(h('span.row', t('panel.body'), copyButton(text)), h('pre.code', text)),
    def
      ? section(
          t('panel.definition'),
          h(
            'pre.code',
            yaml(
              Object.fromEntries(Object.entries(def).filter(([, v]) => v !== null && !(Array.isArray(v) && !v.length))),
            ),
          ),
        )
      : h('p.muted', t('panel.no_definition')),
  ];
}
