// Secrets: where each is kept, which groups may use it, what uses it. Set, granted and removed here; no value is shown.

import { api } from '../api.js';
import { accessFields, groupTags } from '../group_access.js';
import { has, t } from '../i18n.js';
import { store } from '../store.js';
import {
  ago,
  button,
  confirmReason,
  dialog,
  empty,
  field,
  glyph,
  h,
  input,
  pageHead,
  put,
  shown,
  table,
  toast,
} from '../ui.js';

const MARKS = { ready: 'SUCCESS', previous_key: 'HELD', not_asked: 'PENDING', overridden: 'SKIPPED' };
const stateWord = (s) => (has(`secrets.state_${s}`) ? t(`secrets.state_${s}`) : s);

function setSecret(secret, done) {
  const name = field({
    label: t('secrets.name'),
    hint: t('secrets.name_hint'),
    input: input({ value: secret?.name ?? '', mono: true, test: 'secret-name' }),
  });
  if (secret) name.input.disabled = true;
  const value = field({
    label: t('secrets.value'),
    hint: t('secrets.value_hint'),
    wide: true,
    input: input({ type: 'password', autocomplete: 'new-password', test: 'secret-value' }),
  });
  const reason = field({ label: t('act.reason'), wide: true, input: input({ test: 'secret-reason' }) });
  const access = secret ? null : accessFields(null);
  dialog({
    title: t(secret ? 'secrets.replace' : 'secrets.add', { name: secret?.name }),
    lead: t(secret ? 'secrets.replace_lead' : 'secrets.add_lead'),
    size: 'm',
    test: 'secret-dialog',
    body: h('div.form', name, value, access?.els, reason),
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('secrets.save'),
        kind: 'primary',
        icon: 'key',
        test: 'secret-save',
        run: async (close) => {
          const called = name.input.value.trim();
          if (!called) return name.fail(t('secrets.name_missing'));
          if (!value.input.value) return value.fail(t('secrets.value_missing'));
          await api.put(api.path`/secrets/${called}`, {
            value: value.input.value,
            reason: reason.input.value.trim() || undefined,
            ...(access?.value() ?? {}),
          });
          value.input.value = '';
          toast(t('common.done'), 'good');
          close();
          done();
        },
      },
    ],
  });
}

function grantSecret(secret, done) {
  const access = accessFields(secret);
  const reason = field({ label: t('act.reason'), wide: true, input: input({ test: 'secret-reason' }) });
  dialog({
    title: t('secrets.grant_title', { name: secret.name }),
    lead: t('secrets.grant_lead'),
    size: 'm',
    test: 'secret-grant-dialog',
    body: h('div.form', access.els, reason),
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('secrets.grant_save'),
        kind: 'primary',
        test: 'secret-grant-save',
        run: async (close) => {
          await api.patch(api.path`/secrets/${secret.name}`, {
            reason: reason.input.value.trim() || undefined,
            ...access.value(),
          });
          toast(t('common.done'), 'good');
          close();
          done();
        },
      },
    ],
  });
}

/** All secrets; the API gives them on one page. */
const list = async () => (await api.get('/secrets')).items;

export async function mount(el, ctx) {
  ctx.title(t('nav.secrets'));
  const host = h('div');
  const no = store.whyEverywhere('admin');
  const refresh = async () => put(host, draw(await list()));
  put(
    el,
    pageHead({
      title: t('nav.secrets'),
      sub: t('secrets.lead'),
      actions: [
        button(t('secrets.add'), {
          kind: 'primary',
          icon: 'plus',
          disabled: no,
          test: 'secret-add',
          onclick: () => setSecret(null, refresh),
        }),
      ],
    }),
    host,
  );
  const acts = (s) => {
    if (s.origin !== 'stored') return null;
    const small = (label, test, icon, onclick) =>
      button(t(label), { small: true, kind: 'quiet', icon, test, disabled: no, onclick });
    return h(
      'span.row.nowrap',
      small('secrets.set_anew', 'secret-replace', 'key', () => setSecret(s, refresh)),
      small('secrets.grant', 'secret-grant', 'groups', () => grantSecret(s, refresh)),
      small('secrets.remove', 'secret-remove', 'trash', () =>
        confirmReason({
          title: t('secrets.remove_title', { name: s.name }),
          lead: s.used_by.length ? t('secrets.remove_used', { users: s.used_by.join(', ') }) : t('secrets.remove_lead'),
          verb: t('secrets.remove'),
          kind: 'danger',
          run: async (reason) => {
            await api.del(api.path`/secrets/${s.name}`, { reason });
            toast(t('common.done'), 'good');
            refresh();
          },
        }),
      ),
    );
  };
  const draw = (secrets) =>
    table({
      caption: t('nav.secrets'),
      rows: secrets,
      rowKey: (s) => `${s.name}/${s.origin}`,
      test: 'secrets',
      empty: empty({ title: t('secrets.none'), lead: t('secrets.none_lead') }),
      columns: [
        { key: 'name', label: t('secrets.name'), cell: (s) => h('code', s.name) },
        { key: 'place', label: t('secrets.place') },
        {
          key: 'state',
          label: t('common.status'),
          cell: (s) =>
            h(
              'span',
              { title: s.fault ?? s.warning ?? '' },
              h('span.row.nowrap', glyph(MARKS[s.state] ?? 'FAILED'), stateWord(s.state)),
              (s.fault ?? s.warning) && h('p.muted', s.fault ?? s.warning),
            ),
        },
        { key: 'groups', label: t('access.for'), sort: false, cell: groupTags },
        {
          key: 'used_by',
          label: t('secrets.used_by'),
          sort: false,
          hide: 'narrow',
          cell: (s) =>
            s.used_by.length
              ? h(
                  'span.tags',
                  s.used_by.slice(0, 5).map((u) => h('span.tag', u)),
                  s.used_by.length > 5 && `+${s.used_by.length - 5}`,
                )
              : h('span.muted', t('secrets.unused')),
        },
        {
          key: 'update_time',
          label: t('secrets.changed'),
          hide: 'middle',
          cell: (s) => (s.update_time ? h('span', ago(s.update_time), ` · ${s.sealed_by ?? ''}`) : ''),
        },
        { key: 'do', label: '', sort: false, cell: acts },
      ],
    }).el;
  await shown(host, list, draw);
}
