// The panel of one job of a batch: what it does and why, its log, its data, its tries, and what can be done about it.

import { actionButtons } from './actions.js';
import { api, live } from './api.js';
import { t } from './i18n.js';
import { logView } from './log_view.js';
import { setQuery, to } from './router.js';
import { isActive, isFinal, isWaiting } from './status.js';
import { badge, button, copyButton, duration, empty, facts, failed, h, icon, loading, num, poll, put, settled, since, table, time, walkTabs } from './ui.js';

let open = null;

/** Closes the panel, if one is open. */
export function closePanel() {
  open?.close();
}

/** Opens the panel of a job; another job takes the place of the one before. */
export function openJob({ group, no, job, batch, onChange, onclose }) {
  const from = open ? open.from : document.activeElement;
  const tab = open?.tab;
  open?.close({ quiet: true });
  open = makePanel({ group, no, job, batch, onChange, onclose, from, tab });
  return open;
}

const TABS = ['now', 'log', 'data', 'tries', 'definition'];

function makePanel({ group, no, job, batch, onChange, onclose, from, tab = 'now' }) {
  const at = api.path`/groups/${group}/batches/${no}/jobs/${job}`;
  const known = batch?.jobs?.find((j) => j.job_code === job);
  const heading = h('h2', { id: 'job-panel-title', tabindex: '-1' }, job);
  const head = h('div.panel-status', { 'aria-live': 'polite' });
  const tablist = walkTabs(h('div.tabs', { role: 'tablist', 'aria-label': t('panel.views') }));
  const body = h('div.panel-body', { role: 'tabpanel', tabindex: '0', 'aria-labelledby': 'job-panel-title' });
  const actions = h('div.panel-actions', { role: 'group', 'aria-label': t('common.actions') });
  const el = h('aside.panel', { id: 'job-panel', 'aria-labelledby': 'job-panel-title', 'data-test': 'job-panel', 'data-job': job },
    h('header.panel-head', h('div', h('p.muted', `${group} · ${no}`), heading), h('span.spacer'), copyButton(() => location.href), button(t('common.close'), { icon: 'close', iconOnly: true, kind: 'quiet', test: 'panel-close', onclick: () => close() })),
    head, actions, tablist, body);
  let doc = known ? { ...known } : null;
  let log = null;
  let ended = false;
  const me = { from, tab, close };

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
    setQuery({ job: null });
    onclose?.();
    if (from?.isConnected) from.focus({ preventScroll: true });
  }

  function drawTabs() {
    put(tablist, TABS.map((key) => h('button.tab', { type: 'button', role: 'tab', 'aria-selected': String(key === me.tab), tabindex: key === me.tab ? '0' : '-1', 'data-test': `panel-${key}`, onclick: () => {
      me.tab = key;
      drawTabs();
      drawBody();
      tablist.querySelector('[aria-selected=true]')?.focus();
    } }, t(`panel.${key}`))));
  }

  let told = '';
  function drawHead() {
    if (!doc) return;
    const is = isActive(doc.status);
    put(head, [badge(doc.status, { mode: doc.run_mode }), doc.is_late && h('span.late', t('due.late')), h('span.muted', [doc.job_name, doc.job_type].filter(Boolean).join(' · ')), is && doc.start_time ? h('span', since(doc.start_time)) : doc.duration_ms !== null && doc.duration_ms !== undefined && h('span', duration(doc.duration_ms))]);
    const next = `${doc.status}|${doc.run_mode}`;
    if (next === told && actions.childElementCount) return;
    told = next;
    put(actions, actionButtons({ group, no, job: { ...doc, job_code: job }, onDone: () => {
      refresh();
      onChange?.();
    } }));
  }

  function drawBody() {
    if (me.tab !== 'log') {
      log?.destroy();
      log = null;
    }
    if (!doc) return;
    if (me.tab === 'now') put(body, nowTab(doc, { at, job, group, toLog: () => {
      me.tab = 'log';
      drawTabs();
      drawBody();
    } }));
    else if (me.tab === 'data') put(body, dataTab(doc));
    else if (me.tab === 'tries') put(body, triesTab(doc));
    else if (me.tab === 'definition') put(body, definitionTab(doc, job));
    else if (!log) {
      log = logView({ at, job, attempts: attemptsOf(doc), running: () => !isFinal(doc.status) });
      put(body, log.el);
    } else log.attempts(attemptsOf(doc));
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
  const onKey = (event) => {
    if (event.key === 'Escape' && !document.querySelector('dialog[open], [popover]:popover-open')) close();
  };
  document.addEventListener('keydown', onKey);
  const ends = [
    () => document.removeEventListener('keydown', onKey),
    live({ group, batch_no: no }, { job: (e) => (e.job_code ?? e.job) === job && soon(), gap: soon }),
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
function flat(next, known) {
  const row = next.row ?? next.queue ?? next.entry ?? {};
  return { ...known, ...row, ...next, definition: next.definition ?? next.definition_used ?? (typeof next.job === 'object' ? next.job : undefined) };
}
const attemptsOf = (doc) => doc.attempts ?? doc.tries ?? (doc.attempt ? [{ attempt: doc.attempt, status: doc.status }] : []);

const section = (title, ...children) => h('section.panel-section', h('h3', title), children);
const whyWords = (why) => (Array.isArray(why) ? why : [why]).filter(Boolean).map((w) => (typeof w === 'string' ? w : w.why ?? w.words ?? w.said ?? JSON.stringify(w)));

function nowTab(doc, { at, toLog }) {
  const why = whyWords(doc.why);
  const error = doc.error_message;
  const tail = h('div');
  if (doc.attempt > 0) {
    api.get(`${at}/log`, { attempt: doc.attempt, limit: 500 }).then((page) => {
      const lines = (page.items ?? page).slice(-12);
      if (lines.length) put(tail, section(t('panel.log_tail'), h('pre.log.log-short', lines.map((l) => `${l.text}\n`)), button(t('panel.log_all'), { small: true, icon: 'log', onclick: toLog })));
    }).catch(() => {});
  }
  const server = doc.on_server ?? doc.statement ?? doc.server;
  return [
    error && section(t('job.error'), h('div.note.note-bad', icon('warning'), h('pre', error)), copyButton(error)),
    why.length > 0 && section(isWaiting(doc.status) ? t('panel.why') : t('panel.what_now'), h('ul.plain', why.map((w) => h('li', w)))),
    server && section(t('panel.on_server'), typeof server === 'string' ? h('pre.code', server) : [server.sql || server.statement || server.text ? h('pre.code', server.sql ?? server.statement ?? server.text) : null, facts(Object.entries(server).filter(([k, v]) => !['sql', 'statement', 'text'].includes(k) && v !== null && typeof v !== 'object').map(([k, v]) => [k, String(v)]))]),
    !doc.job_type ? null : section(t('panel.facts'), facts([
      [t('job.began'), doc.start_time && time(doc.start_time, { seconds: true })],
      [t('job.ended'), doc.end_time && time(doc.end_time, { seconds: true })],
      [t('job.took'), doc.duration_ms !== null && doc.duration_ms !== undefined ? duration(doc.duration_ms) : null],
      [t('job.usually'), doc.stats?.p50_ms ? `${duration(doc.stats.p50_ms)} (p95 ${duration(doc.stats.p95_ms)})` : null],
      [t('job.starts'), doc.attempt ? num(doc.attempt) : null],
      [t('job.failed_tries'), doc.try_count ? num(doc.try_count) : null],
      [t('job.not_before'), doc.not_before && time(doc.not_before, { seconds: true })],
      [t('due.start_by'), doc.start_by && time(doc.start_by)], [t('due.due'), doc.due && h('span', { class: doc.is_late ? 'late' : null }, time(doc.due))],
      [t('job.priority'), doc.priority ? num(doc.priority) : null],
      [t('job.node'), doc.node ?? doc.host ?? null],
    ])),
    tail,
  ];
}

const plain = (value) => (value === null || value === undefined ? 'NULL' : typeof value === 'object' ? JSON.stringify(value) : String(value));

function dataTab(doc) {
  const parameters = doc.parameters ?? doc.params ?? [];
  const rows = Array.isArray(parameters) ? parameters : Object.entries(parameters).map(([name, value]) => (value && typeof value === 'object' ? { name, ...value } : { name, value }));
  const outputs = doc.outputs ?? {};
  const results = outputs.results ?? [];
  const rules = Object.entries(outputs.rules ?? {});
  const checks = Array.isArray(outputs.checks) ? outputs.checks.map((c) => [c.name ?? c.check, c]) : Object.entries(outputs.checks ?? {});
  const values = Object.entries(outputs.values ?? {});
  return [
    section(t('panel.parameters'), rows.length ? table({ caption: t('panel.parameters'), rows, rowKey: (r) => r.name, columns: [
      { key: 'name', label: t('param.name'), cell: (r) => h('code', r.name) },
      { key: 'value', label: t('param.value'), cell: (r) => h('code', r.is_secret || r.secret ? '••••••' : plain(r.value)) },
      { key: 'layer', label: t('param.layer'), hide: 'narrow', cell: (r) => h('span.muted', r.layer ?? r.from ?? r.mode ?? '') },
    ] }).el : h('p.muted', t('panel.no_parameters'))),
    section(t('panel.outputs'), values.length ? table({ caption: t('panel.outputs'), rows: values, rowKey: (r) => r[0], columns: [
      { key: 'name', label: t('param.name'), value: (r) => r[0], cell: (r) => h('code', r[0]) }, { key: 'value', label: t('param.value'), value: (r) => r[1], cell: (r) => h('code', plain(r[1])) }] }).el : h('p.muted', t('panel.no_outputs')),
      outputs.rows_affected ? h('p', t('job.rows_changed', { n: outputs.rows_affected })) : null),
    [...rules, ...checks].length > 0 && section(t('panel.checks'), h('ul.checks', [...rules, ...checks].map(([name, r]) => h('li', badge(r.ok === false ? (r.grade === 'warning' ? 'WARNING' : 'FAILED') : 'SUCCESS'), h('code', name), h('span.muted', r.said ?? r.value ?? ''))))),
    results.map((r, i) => section(`${t('panel.result_set', { n: i + 1 })} · ${t('panel.rows', { n: r.row_count })}`, table({ caption: t('panel.result_set', { n: i + 1 }), rows: (r.rows ?? []).map((cells, n) => ({ n, cells })), rowKey: (x) => x.n, locked: true, columns: (r.columns ?? []).map((c, at) => ({ key: String(at), label: c, cell: (x) => h('code', plain(x.cells[at])) })) }).el)),
    outputs.warnings?.length > 0 && section(t('panel.warnings'), h('ul.plain', outputs.warnings.map((w) => h('li.mono', plain(w))))),
  ];
}

function triesTab(doc) {
  const all = attemptsOf(doc);
  if (!all.length) return empty({ title: t('panel.no_tries') });
  return table({ caption: t('panel.tries'), rows: [...all].reverse(), rowKey: (a) => a.attempt, columns: [
    { key: 'attempt', label: t('job.start_no'), num: true },
    { key: 'status', label: t('common.status'), cell: (a) => badge(a.status) },
    { key: 'start_time', label: t('job.began'), cell: (a) => time(a.start_time ?? a.began ?? a.start, { seconds: true }) },
    { key: 'took', label: t('job.took'), num: true, value: (a) => a.duration_ms ?? 0, cell: (a) => duration(a.duration_ms ?? (a.end_time ? Date.parse(a.end_time) - Date.parse(a.start_time) : undefined)) },
    { key: 'node', label: t('job.node'), hide: 'narrow', cell: (a) => a.node ?? a.host ?? '' },
    { key: 'error_message', label: t('job.message'), cls: 'clip', cell: (a) => h('span', { title: a.error_message }, a.error_message ?? '') },
  ] }).el;
}

function definitionTab(doc, code) {
  const def = doc.definition;
  const body = def?.body ?? doc.body ?? {};
  const text = [def?.sql, def?.script, body.sql, body.script, body.text, def?.proc_name && `CALL ${def.proc_name}`, body.proc_name && `CALL ${body.proc_name}`].find((x) => typeof x === 'string' && x);
  return [
    h('div.row', h('a.btn.btn-small', { href: to`/jobs/${code}` }, icon('job'), h('span', t('panel.to_job'))), h('span.muted', t('panel.definition_lead'))),
    text && section(t('panel.body'), h('pre.code', text), copyButton(text)),
    def ? section(t('panel.definition'), h('pre.code', typeof def === 'string' ? def : JSON.stringify(def, (k, v) => (v === null || (Array.isArray(v) && !v.length) ? undefined : v), 2))) : h('p.muted', t('panel.no_definition')),
  ];
}

