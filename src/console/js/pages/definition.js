// Definitions as files: taken from what is stored or from a disk, checked, compared, stored.

import { api } from '../api.js';
import { lang, t } from '../i18n.js';
import { askBeforeLeaving, go } from '../router.js';
import { store } from '../store.js';
import { button, empty, h, input, field, loading, pageHead, put, select, toast } from '../ui.js';
import { codeEditor } from '../edit/code.js';
import { changesView, checkedWords, faultsView, textDiff } from '../edit/diff.js';
import { showVersions } from '../edit/versions.js';
import { saveText } from '../dag/save.js';

export async function mount(el, ctx) {
  ctx.title?.(t('def.title'));
  let group = ctx.query?.get('group') ?? '';
  let stored = '';
  let name = '';
  let versions = {};
  let looked = null;
  const result = h('div.je-result', { 'aria-live': 'polite' });
  const past = h('div');
  const picker = h('span');
  const editor = codeEditor({
    value: '',
    language: 'yaml',
    label: t('def.text'),
    test: 'definition-text',
    rows: 28,
    onchange: () => {
      looked = null;
      askBeforeLeaving(editor.value() !== stored ? t('def.unsaved') : null);
      state();
    },
  });
  const file = h('input', {
    type: 'file',
    accept: '.yaml,.yml,.json',
    class: 'visually-hidden',
    'aria-label': t('def.from_disk'),
    tabindex: '-1',
    onchange: async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      name = chosen.name;
      editor.set(await chosen.text(), /\.json$/i.test(name) ? 'json' : 'yaml');
      editor.area.dispatchEvent(new Event('input'));
      file.value = '';
      look();
    },
  });
  const remark = field({
    label: t('def.remark'),
    hint: t('def.remark_hint'),
    input: input({ name: 'reason', test: 'remark' }),
  });
  const apply = button(t('def.apply'), { kind: 'primary', icon: 'check', test: 'definition-apply', onclick: store_ });
  const why = store.why('edit');
  el.append(
    pageHead({ title: t('def.title'), sub: t('def.sub') }),
    h(
      'div.dg-tools',
      picker,
      button(t('ed.open'), {
        icon: 'dag',
        test: 'definition-editor',
        onclick: () => go(`/editor${group ? `?group=${encodeURIComponent(group)}` : ''}`),
      }),
      button(t('def.from_disk'), { icon: 'file', onclick: () => file.click(), test: 'definition-file' }),
      file,
      button(t('def.download'), {
        icon: 'download',
        kind: 'quiet',
        test: 'definition-save',
        onclick: () => saveText(editor.value(), name || `${group || 'definition'}.yaml`, 'application/yaml'),
      }),
    ),
    editor.el,
    h(
      'div.def-foot',
      remark,
      h(
        'div.def-buttons',
        button(t('def.check'), { icon: 'check', test: 'definition-check', onclick: check_ }),
        button(t('def.connect'), {
          icon: 'check',
          kind: 'quiet',
          test: 'definition-connect',
          disabled: store.why('edit'),
          onclick: connect,
        }),
        button(t('def.text_diff'), {
          icon: 'compare',
          kind: 'quiet',
          test: 'definition-textdiff',
          onclick: () => {
            put(result, textDiff(stored, editor.value()));
            reveal();
          },
        }),
        button(t('def.look'), { icon: 'compare', test: 'definition-diff', onclick: look }),
        apply,
      ),
    ),
    result,
    h('section', h('h2', t('ver.title')), past),
  );
  state();

  try {
    const groups = (await api.all('/groups')).map((g) => g.code ?? g.group);
    put(
      picker,
      select({
        label: t('sf.group'),
        value: group,
        test: 'definition-group',
        options: [['', t('def.choose')], ...groups.map((g) => [g, g])],
        onchange: (v) => {
          group = v;
          ctx.setQuery?.({ group });
          fetchStored();
        },
      }),
    );
    if (!group && groups.length === 1) [group] = groups;
  } catch (error) {
    toast(error.detail ?? error.message, 'bad');
  }
  if (group) await fetchStored();
  else {
    editor.set(t(ctx.query?.get('with') === 'source' ? 'def.sample_source' : 'def.sample'));
    put(past, empty({ title: t('def.no_group') }));
  }

  function state() {
    const no = why ?? (looked ? null : t('def.look_first'));
    if (no) {
      apply.setAttribute('aria-disabled', 'true');
      apply.title = no;
    } else {
      apply.removeAttribute('aria-disabled');
      apply.title = '';
    }
  }

  async function fetchStored() {
    put(result, loading());
    try {
      stored = await api.text('/definition/export', { group }, 'application/yaml, text/plain;q=0.9, */*;q=0.1');
      const head = await api.get(api.path`/groups/${group}`).catch(() => null);
      versions = head?.version ? { [group]: head.version } : {};
      name = `${group}.yaml`;
      looked = null;
      editor.set(stored, 'yaml');
      editor.faults([]);
      put(result);
      askBeforeLeaving(null);
      showVersions(past, group, { onDone: fetchStored });
    } catch (error) {
      put(result);
      toast(error.detail ?? error.message, 'bad');
    }
    state();
  }

  const body = () => ({
    text: editor.value(),
    format: /\.json$/i.test(name) || /^\s*\{/.test(editor.value()) ? 'json' : 'yaml',
  });
  const faulty = (error) => {
    const faults = error.more?.faults;
    if (!Array.isArray(faults)) throw error;
    editor.faults(faults);
    put(result, h('h2', t('jbd.faults')), faultsView(faults, { goto: (n) => editor.goto(n) }));
    reveal();
  };

  /** What was found stands below the editor, out of sight in most windows. */
  const reveal = () => result.scrollIntoView({ block: 'start', behavior: 'smooth' });

  async function check_() {
    editor.faults([]);
    const got = await api.post('/definition/check', body());
    editor.faults([...(got.faults ?? []), ...(got.warnings ?? [])]);
    put(
      result,
      got.ok
        ? [
            h('p.def-ok', { role: 'status', 'data-test': 'definition-ok' }, checkedWords(got)),
            faultsView([], { warnings: got.warnings ?? [] }),
          ]
        : [
            h('h2', t('jbd.faults')),
            faultsView(got.faults ?? [], { warnings: got.warnings ?? [], goto: (n) => editor.goto(n) }),
          ],
    );
    reveal();
  }

  // What the data sources say: routines, parameters, rights. Nothing is run.
  async function connect() {
    editor.faults([]);
    try {
      const got = await api.post('/definition/preflight', body());
      const faultOf = (f) => ({ line: 0, what: f.message[lang()], fix: f.hint?.[lang()] ?? '' });
      const of = (...severities) => got.findings.filter((f) => severities.includes(f.severity)).map(faultOf);
      put(
        result,
        h(
          got.ok ? 'p.def-ok' : 'p',
          { role: 'status', 'data-test': 'definition-preflight' },
          t('def.connected', { sources: got.sources.length, calls: got.calls.length, errors: got.errors }),
        ),
        faultsView(of('error'), { warnings: of('unreachable', 'warning') }),
      );
      reveal();
    } catch (error) {
      faulty(error);
    }
  }

  async function look() {
    editor.faults([]);
    try {
      const got = await api.post('/definition/diff', body());
      looked = editor.value();
      const needs = [
        ...(got.needs?.everywhere ?? []).map((p) => t('def.needs_everywhere', { permission: t(`permission.${p}`) })),
        ...Object.entries(got.needs?.groups ?? {}).map(([g, ps]) =>
          t('def.needs', { group: g, permissions: ps.map((p) => t(`permission.${p}`)).join(', ') }),
        ),
      ];
      put(
        result,
        h('h2', t('jbd.would')),
        changesView(got.changes),
        needs.length && got.changes?.length ? h('p.hint', needs.join(' · ')) : null,
        got.warnings?.length ? faultsView([], { warnings: got.warnings }) : null,
      );
      reveal();
    } catch (error) {
      faulty(error);
    }
    state();
  }

  async function store_() {
    if (!looked || looked !== editor.value()) return;
    const words = remark.input.value.trim();
    if (words.length < 4) {
      remark.fail(t('def.remark_missing'));
      remark.input.focus();
      return;
    }
    remark.fail('');
    try {
      const got = await api.post('/definition/apply', { ...body(), remark: words, if_versions: versions });
      toast(t('def.applied', { n: got.changes?.length ?? 0 }), 'good');
      remark.input.value = '';
      askBeforeLeaving(null);
      if (group) await fetchStored();
      else {
        stored = editor.value();
        looked = null;
        state();
        put(result);
      }
    } catch (error) {
      if (error.status === 412) {
        toast(t('def.moved'), 'bad');
        return;
      }
      faulty(error);
    }
  }
  return {
    destroy() {
      askBeforeLeaving(null);
    },
  };
}
