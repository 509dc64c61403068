// A new job: empty, or from the catalogue of a data source with its parameters filled in.

import { api, say } from '../../api.js';
import { t } from '../../i18n.js';
import { dialog, field, h, input, put, select } from '../../ui.js';

const BATCH_NO = /^(?:p_|in_|i_|v_|pi_|par_|_)?(?:batch_no|batchno|batch_number|batch_num|batch)$/i;

/** A code for a job that calls a routine: `ledger.sp_fx_load` → `FX_LOAD`. */
export function codeOf(routine, taken) {
  const base = routine
    .split('.')
    .at(-1)
    .replace(/^(?:sp|usp|proc|p|fn)_/i, '')
    .replace(/[^\w-]+/g, '_')
    .toUpperCase();
  let code = base || 'JOB';
  for (let n = 2; taken.includes(code); n++) code = `${base}_${n}`;
  return code;
}

/** The parameters of a routine as a job declares them; the batch number is known. */
export const paramsOf = (routine) =>
  routine.params
    .filter((param) => !(param.mode === 'in' && param.has_default))
    .map(({ name, mode, type }) => {
      const declared = { name };
      if (mode !== 'in') declared.mode = mode;
      if (type !== 'text') declared.type = type;
      if (mode !== 'out') declared.value = BATCH_NO.test(name) ? '${batch_no}' : '';
      return declared;
    });

/** Asks what to add; answers `{code, fields}`, or null. */
export async function askForJob({ taken, sources, routinesOf, defaults, parent }) {
  let routines = [];
  let chosen = null;
  const usual = sources.includes(String(defaults.source)) ? String(defaults.source) : (sources[0] ?? '');
  const list = h('div.ed-catalogue', { role: 'group', 'aria-label': t('ed.catalogue') });
  const said = h('p.hint', { role: 'status' });
  const code = field({ label: t('ed.code'), input: input({ test: 'ed-new-code', required: true }) });
  const name = field({ label: t('job.name'), input: input({ test: 'ed-new-name' }) });
  const words = input({
    type: 'search',
    label: t('ed.find_routine'),
    placeholder: t('ed.find_routine'),
    test: 'ed-find',
    oninput: draw,
  });
  const source = select({
    label: t('job.source'),
    value: usual,
    test: 'ed-new-source',
    options: [['', t('ed.no_source')], ...sources.map((one) => [one, one])],
    onchange: fetchThem,
  });
  function draw() {
    const wanted = words.value.trim().toLowerCase();
    const found = routines.filter((one) => one.name.toLowerCase().includes(wanted));
    put(
      list,
      found.slice(0, 200).map((one) =>
        h(
          'button.ed-routine',
          {
            type: 'button',
            'aria-pressed': String(one === chosen),
            'data-test': `ed-routine-${one.name}`,
            onclick: () => {
              chosen = one === chosen ? null : one;
              if (chosen) code.input.value = codeOf(one.name, taken);
              draw();
              list.querySelector('[aria-pressed="true"]')?.focus();
            },
          },
          h('strong', one.name),
          h('span.muted', one.params.map((p) => `${p.mode === 'in' ? '' : `${p.mode} `}${p.name}`).join(', ')),
        ),
      ),
    );
  }
  async function fetchThem() {
    routines = [];
    chosen = null;
    draw();
    if (!source.value) return;
    said.textContent = t('common.loading');
    try {
      routines = await routinesOf(source.value);
      said.textContent = t('ed.routines', { n: routines.length });
    } catch (error) {
      said.textContent = say(error);
    }
    draw();
  }
  const box = dialog({
    title: t('ed.add'),
    size: 'l',
    test: 'ed-add',
    body: h(
      'div.ed-add',
      h('div.sf-pair', code, name),
      field({ label: t('job.source'), input: source }),
      words,
      said,
      list,
      parent ? h('p.hint', t('ed.will_wait', { parent })) : null,
    ),
    actions: [
      { label: t('common.cancel'), run: (close) => close(null) },
      {
        label: t('ed.add'),
        kind: 'primary',
        test: 'ed-add-ok',
        run: answer,
      },
    ],
  });
  function answer() {
    const made = code.input.value.trim();
    code.fail('');
    if (!/^[\w.-]+$/.test(made)) code.fail(t('ed.bad_code'));
    else if (taken.includes(made)) code.fail(t('ed.twice', { job: made }));
    else {
      const from = chosen ? source.value : '';
      box.close({ code: made, source: from, fields: fieldsOf(name.input.value.trim(), source.value) });
      return;
    }
    code.input.focus();
  }
  for (const one of [code.input, name.input])
    one.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' || e.isComposing) return;
      e.preventDefault();
      answer();
    });
  /** What `defaults` says already is not written again. */
  function fieldsOf(called, from) {
    const fields = { name: called || undefined, depends_on: parent ? [parent] : undefined };
    const put_ = (key, value) => {
      if (defaults[key] !== value) fields[key] = value;
    };
    if (!chosen) {
      put_('type', 'NOOP');
      return fields;
    }
    put_('type', 'PROC');
    put_('source', from);
    fields.proc_name = chosen.name;
    const params = paramsOf(chosen);
    if (params.length) fields.params = params;
    return fields;
  }
  fetchThem();
  code.input.focus();
  return (await box.closed) ?? null;
}

/** The routines of a source, asked for once. */
export function routineCache() {
  const known = new Map();
  return {
    names: () => [...known.values()].flatMap((list) => (Array.isArray(list) ? list.map((one) => one.name) : [])),
    async of(source) {
      if (!known.has(source)) known.set(source, (await api.get(api.path`/sources/${source}/routines`)).items);
      return known.get(source);
    },
  };
}
