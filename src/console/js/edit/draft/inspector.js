// The chosen job: its usual fields, which write single lines of the text.

import { t } from '../../i18n.js';
import { button, field, h, input, put, select } from '../../ui.js';

const TEXTS = [
  ['name', 'job.name'],
  ['source', 'job.source'],
  ['proc_name', 'ed.routine'],
];
const NUMBERS = [
  ['timeout_sec', 'jbd.timeout_sec'],
  ['retry_count', 'jbd.retry_count'],
  ['priority', 'jbd.priority'],
];

/** @param on {types: all kinds of job, set(code, key, value), goto(code), remove(code)} */
export function mountInspector(on) {
  const el = h('section.ed-inspector', { 'aria-label': t('ed.inspector'), 'data-test': 'ed-inspector' });
  let shown = '';
  return {
    el,
    focus: () => el.querySelector('input, select')?.focus(),
    show(job) {
      // What is being typed is not drawn anew; the text beside it has it already.
      const next = JSON.stringify(job ? [job.code, job.own, job.parents] : null);
      if (next === shown) return;
      shown = next;
      const kept = el.contains(document.activeElement) ? document.activeElement.dataset.test : null;
      put(el, job ? fields(job, on) : h('p.muted', t('ed.choose_job')));
      if (kept) el.querySelector(`[data-test="${kept}"]`)?.focus();
    },
  };
}

function fields(job, on) {
  const inherited = (key) => (key in job.own || job.fields[key] === undefined ? undefined : String(job.fields[key]));
  const text = ([key, words], isNumber) =>
    field({
      label: t(words),
      input: input({
        type: isNumber ? 'number' : 'text',
        value: job.own[key] ?? '',
        placeholder: inherited(key),
        test: `ed-field-${key}`,
        onchange: (value) => on.set(job.code, key, value === '' ? undefined : isNumber ? Number(value) : value),
      }),
    });
  const type = job.own.type ?? '';
  const known = [...new Set([...on.types, ...(type ? [type] : [])])];
  const params = Array.isArray(job.own.params) ? job.own.params : [];
  return [
    h('h2', job.code),
    h(
      'div.ed-fields',
      TEXTS.map((one) => text(one)),
      field({
        label: t('job.type'),
        input: select({
          value: type,
          test: 'ed-field-type',
          options: [['', t('ed.usual', { value: job.fields.type ?? 'PROC' })], ...known.map((one) => [one, one])],
          onchange: (value) => on.set(job.code, 'type', value || undefined),
        }),
      }),
      NUMBERS.map((one) => text(one, true)),
    ),
    params.length ? h('h3', t('sf.params')) : null,
    h(
      'div.ed-fields',
      params.map((param, i) =>
        field({
          label: String(param?.name ?? i + 1),
          hint: [param?.mode, param?.type].filter(Boolean).join(' '),
          input: input({
            value: param?.value ?? '',
            test: `ed-param-${param?.name}`,
            onchange: (value) =>
              on.set(
                job.code,
                'params',
                params.map((one, k) => {
                  if (k !== i) return one;
                  const { value: _, ...rest } = one;
                  return value === '' ? rest : { ...rest, value };
                }),
              ),
          }),
        }),
      ),
    ),
    h(
      'div.def-buttons',
      button(t('ed.show_text'), { kind: 'quiet', icon: 'log', test: 'ed-goto', onclick: () => on.goto(job.code) }),
      button(t('ed.delete_job', { job: job.code }), {
        kind: 'quiet',
        icon: 'trash',
        test: 'ed-remove',
        onclick: () => on.remove(job.code),
      }),
    ),
  ];
}
