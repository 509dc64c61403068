// Changing a job: a form with an editor for its body, or its text as files have it. What would change is shown first.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { store } from '../store.js';
import { button, check, dialog, field, h, input, put, segmented, select, toast } from '../ui.js';
import { codeEditor } from './code.js';
import { changesView, faultsView } from './diff.js';
import { yaml } from './yaml.js';

const RULES = ['all_success', 'all_done', 'one_success', 'one_failed', 'all_failed', 'none_failed'];

/** In which language a job's body is. */
export function languageOf(job) {
  if (job.type === 'SQL' || job.type === 'SENSOR' || job.type === 'PROC') return 'sql';
  if (/python/.test(job.interpreter ?? '')) return 'python';
  if (job.type === 'GLUE')
    return { shell: 'sh', python: 'python', python2: 'python' }[job.executor?.language] ?? 'text';
  return job.type === 'SCRIPT' ? 'sh' : 'text';
}

const listOf = (text) =>
  text
    .split(/[,;\s]+/)
    .map((x) => x.trim())
    .filter(Boolean);
const edge = (d) => (!d.when || d.when === 'success' ? d.depends_on : { job: d.depends_on, when: d.when });

/** A group's file with one job in it replaced, and how many lines stand before what was put in. */
export function spliced(file, code, words) {
  const lines = file.split('\n');
  const top = lines.findIndex((l) => /^jobs:\s*$/.test(l));
  const is = (l) => l.startsWith(`  ${code}:`) || l.startsWith(`  "${code}":`) || l.startsWith(`  '${code}':`);
  const begins = lines.findIndex((l, i) => i > top && is(l));
  if (top < 0 || begins < 0) throw new Error(t('jbd.not_in_file', { code }));
  let ends = begins + 1;
  while (ends < lines.length && (lines[ends].startsWith('   ') || !lines[ends].trim())) ends += 1;
  const inner = words
    .replace(/\s+$/, '')
    .split('\n')
    .map((l) => (l ? `    ${l}` : l));
  return {
    text: [...lines.slice(0, begins), `  ${code}:`, ...inner, ...lines.slice(ends)].join('\n'),
    line: begins + 1,
  };
}

/** `doc`: what GET /jobs/CODE answers. `onDone()` after it is stored. */
export function editJob({ doc, onDone }) {
  const was = { ...structuredClone(doc.job) };
  const edges = doc.dependencies ?? (doc.depends_on ?? []).map((d) => ({ depends_on: d }));
  if (edges.length) was.depends_on = edges.map(edge);
  const d = structuredClone(was);
  const bodyKey =
    d.type === 'SQL' || d.type === 'SENSOR' ? 'sql' : d.type === 'SCRIPT' || d.type === 'GLUE' ? 'script' : null;
  const scriptWhy = store.why('script', d.group);
  let mode = 'form';
  let seen = null;
  const result = h('div.je-result', { 'aria-live': 'polite' });
  const set = (key) => (v) => {
    if (v === '' || v === null || (Array.isArray(v) && !v.length)) delete d[key];
    else d[key] = v;
    stale();
  };
  const text = (key, label, more = {}) =>
    field({
      label,
      hint: more.hint,
      input: input({
        value: more.show ? more.show(d[key]) : (d[key] ?? ''),
        mono: more.mono,
        type: more.type,
        min: more.min,
        max: more.max,
        list: more.list,
        placeholder: more.placeholder,
        test: `job-${key}`,
        oninput: (v) => set(key)(more.read ? more.read(v) : v),
      }),
    });
  const number = (key, label, more) =>
    text(key, label, { type: 'number', min: 0, read: (v) => (v === '' ? '' : Number(v)), ...more });
  const called = (key, label) =>
    field({
      label,
      input: input({
        value: d.executor[key] ?? '',
        mono: true,
        oninput: (v) => {
          if (v.trim()) d.executor[key] = v.trim();
          else delete d.executor[key];
          stale();
        },
      }),
    });
  const many = (key, label, hint, more) =>
    text(key, label, { hint, show: (v) => (v ?? []).join(', '), read: listOf, ...more });

  const simpleEdges = edges.every((x) => !x.when || x.when === 'success');
  const body =
    bodyKey && typeof (d[bodyKey] ?? '') === 'string'
      ? codeEditor({
          value: d[bodyKey] ?? '',
          language: languageOf(d),
          label: t('jbd.body'),
          readonly: Boolean(scriptWhy),
          test: 'job-script',
          rows: 18,
          onchange: set(bodyKey),
        })
      : null;

  function params() {
    const host = h('div.je-params');
    const draw = () =>
      put(
        host,
        (d.params ?? []).map((p, i) =>
          h(
            'div.je-param',
            input({
              value: p.name ?? '',
              mono: true,
              label: t('jbd.p_name'),
              placeholder: t('jbd.p_name'),
              oninput: (v) => {
                p.name = v.trim();
                stale();
              },
            }),
            select({
              value: p.mode ?? 'in',
              label: t('jbd.p_mode'),
              options: ['in', 'out', 'inout'].map((x) => [x, x]),
              onchange: (v) => {
                p.mode = v;
                if (v === 'out') delete p.value;
                stale();
                draw();
              },
            }),
            select({
              value: p.type ?? 'text',
              label: t('jbd.p_type'),
              options: [
                ...new Set(['text', 'int', 'decimal', 'date', 'datetime', 'bool', 'bytes', p.type ?? 'text']),
              ].map((x) => [x, x]),
              onchange: (v) => {
                p.type = v;
                stale();
              },
            }),
            p.mode === 'out'
              ? h('span.muted', t('jbd.p_out'))
              : input({
                  value: p.value === undefined || p.value === null ? '' : String(p.value),
                  mono: true,
                  label: t('jbd.p_value'),
                  placeholder: '${batch_no}',
                  oninput: (v) => {
                    if (v === '') delete p.value;
                    else p.value = v;
                    stale();
                  },
                }),
            button(t('jbd.p_remove'), {
              icon: 'close',
              iconOnly: true,
              kind: 'quiet',
              small: true,
              onclick: () => {
                d.params.splice(i, 1);
                if (!d.params.length) delete d.params;
                stale();
                draw();
              },
            }),
          ),
        ),
        button(t('jbd.p_add'), {
          icon: 'plus',
          small: true,
          onclick: () => {
            (d.params ??= []).push({ name: '', mode: 'in', type: 'text' });
            draw();
            host.querySelectorAll('.je-param input')[(d.params.length - 1) * 2]?.focus();
          },
        }),
      );
    draw();
    return host;
  }

  const form = h(
    'div.je-form',
    h(
      'div.sf-pair',
      text('name', t('sf.name')),
      d.type === 'PROC'
        ? text('proc_name', t('jbd.proc'), { mono: true })
        : d.type === 'SCRIPT'
          ? text('interpreter', t('jbd.interpreter'), { mono: true, placeholder: 'sh' })
          : text('owner', t('jobs.owner')),
    ),
    h(
      'div.sf-pair',
      d.source !== undefined || ['PROC', 'SQL', 'SENSOR'].includes(d.type)
        ? text('source', t('jbd.source'), { mono: true })
        : null,
      simpleEdges
        ? many('depends_on', t('jbd.after'), t('jbd.after_hint'), { mono: true })
        : h('div.field', h('span.field-label', t('jbd.after')), h('p.hint', t('jbd.after_text'))),
    ),
    d.executor &&
      h(
        'div.sf-pair',
        called('app', t('jbd.executor')),
        d.type === 'GLUE' ? called('language', t('jbd.language')) : called('handler', t('jbd.handler')),
      ),
    body &&
      h(
        'div.field',
        h('span.field-label', bodyKey === 'sql' ? 'SQL' : t('jbd.script')),
        scriptWhy && h('p.hint', scriptWhy),
        body.el,
      ),
    bodyKey && !body && h('p.hint', t('jbd.by_dialect')),
    h('div.field', h('span.field-label', t('sf.params')), params()),
    h(
      'div.sf-pair.je-four',
      number('timeout_sec', t('jbd.timeout_sec')),
      number('retry_count', t('jbd.retry_count')),
      number('retry_delay_sec', t('jbd.retry_delay')),
      number('priority', t('jbd.priority'), { min: -1000 }),
    ),
    h(
      'div.sf-pair',
      many('tags', t('jobs.tags'), t('jbd.list_hint')),
      many('notify_email', t('jbd.notify'), t('sf.notify_hint')),
    ),
    h(
      'div.sf-pair',
      text('schedule_time', t('jbd.time'), { placeholder: '02:30', hint: t('jbd.time_hint') }),
      field({
        label: t('jbd.rule'),
        input: select({
          value: d.trigger_rule ?? 'all_success',
          options: [...new Set([...RULES, d.trigger_rule ?? 'all_success'])].map((x) => [x, x]),
          onchange: set('trigger_rule'),
        }),
      }),
    ),
    h(
      'div.je-checks',
      check({
        label: t('jbd.is_active'),
        checked: d.is_active !== false,
        onchange: (v) => {
          d.is_active = v;
          stale();
        },
      }),
      check({
        label: t('jbd.is_idempotent'),
        checked: d.idempotent === true,
        hint: t('jbd.idempotent_hint'),
        onchange: (v) => {
          d.idempotent = v;
          stale();
        },
      }),
    ),
    h('p.hint', t('jbd.rest')),
  );

  const plain = (x) => {
    const { code, group, ...rest } = x;
    return rest;
  };
  const editor = codeEditor({
    value: '',
    language: 'yaml',
    label: t('jbd.as_text'),
    test: 'job-text',
    rows: 28,
    onchange: stale,
  });
  const textHost = h('div', { hidden: true }, h('p.hint', t('jbd.text_hint')), editor.el);
  const modes = segmented({
    label: t('jbd.how'),
    value: mode,
    options: [
      ['form', t('jbd.form')],
      ['text', t('jbd.as_text')],
    ],
    test: 'job-mode',
    onchange: (v) => {
      mode = v;
      form.hidden = v === 'text';
      textHost.hidden = v !== 'text';
      if (v === 'text') editor.set(yaml(plain(d)));
      else toast(t('jbd.form_back'), 'info');
      stale();
    },
  });

  /** What is sent: the keys of the job as a file has them. */
  const sent = () => (mode === 'text' ? editor.value() : yaml(plain(d)));
  /** Looks what a change would do, or stores it: the file of the group is sent with this job in it. */
  async function put_(more) {
    wholeGroup ??= await api.text('/definition/export', { group: was.group }, 'application/yaml, */*;q=0.1');
    const { text: file, line } = spliced(wholeGroup, was.code, sent());
    offset = line;
    return api.post(more.dry_run ? '/definition/diff' : '/definition/apply', {
      text: file,
      format: 'yaml',
      remark: more.remark,
      if_versions: doc.group_version ? { [was.group]: doc.group_version } : undefined,
    });
  }
  let wholeGroup = null;
  let offset = 0;
  function stale() {
    if (!seen) return;
    seen = null;
    put(result);
    actions();
  }

  async function look() {
    put(result);
    editor.faults([]);
    try {
      const got = await put_({ dry_run: true });
      seen = sent();
      put(
        result,
        h('h3', t('jbd.would')),
        changesView(got.changes),
        got.warnings?.length ? faultsView([], { warnings: got.warnings }) : null,
      );
      result.scrollIntoView({ block: 'start' });
      actions();
    } catch (error) {
      refused(error);
    }
  }
  function refused(error) {
    if (!Array.isArray(error.more?.faults) || !error.more.faults.length) throw error;
    const faults = error.more.faults.map((f) => ({ ...f, line: f.line > offset ? f.line - offset : 0 }));
    editor.faults(faults);
    put(result, h('h3', t('jbd.faults')), faultsView(faults, { goto: mode === 'text' ? (n) => editor.goto(n) : null }));
    result.scrollIntoView({ block: 'nearest' });
  }

  const remark = field({
    label: t('def.remark'),
    hint: t('def.remark_hint'),
    input: input({ name: 'reason', test: 'remark' }),
  });
  const box = dialog({
    title: `${t('sch.edit')} ${was.code}`,
    size: 'full',
    test: 'job-form',
    body: h('div.je', modes, form, textHost, remark, result),
    actions: [],
  });
  function actions() {
    box.setActions([
      { label: t('common.cancel'), run: (close) => close() },
      { label: t('def.look'), kind: seen ? undefined : 'primary', test: 'job-check', run: look },
      {
        label: t('sf.save'),
        kind: 'primary',
        test: 'job-save',
        disabled: seen ? false : t('def.look_first'),
        run: async (close) => {
          const words = remark.input.value.trim();
          if (words.length < 4) {
            remark.fail(t('def.remark_missing'));
            remark.input.focus();
            return;
          }
          try {
            await put_({ remark: words });
          } catch (error) {
            if (error.status === 412) throw new Error(t('def.moved'), { cause: error });
            refused(error);
            return;
          }
          toast(t('jbd.saved', { code: was.code }), 'good');
          close(true);
          onDone?.();
        },
      },
    ]);
  }
  actions();
  return box.closed;
}
