// Users: who there is and what each may do where.

import { api } from '../api.js';
import { LANGUAGES, lang, t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import { ago, button, copyButton, dialog, field, h, input, pageHead, put, select, shown, table } from '../ui.js';
import { grantsEditor, grantWords } from '../grants.js';

/** Where a user's password is kept. */
function originName(issuer) {
  if (!issuer) return t('user.local');
  return issuer === 'ldap' ? t('user.ldap') : 'OIDC';
}

export async function mount(el, ctx) {
  ctx.title(t('nav.users'));
  const host = h('div');
  const no = store.whyEverywhere('admin');
  put(
    el,
    pageHead({
      title: t('nav.users'),
      sub: t('users.lead'),
      actions: [
        button(t('users.add'), {
          kind: 'primary',
          icon: 'plus',
          disabled: no,
          test: 'user-add',
          onclick: () => add(read),
        }),
      ],
    }),
    host,
  );
  const read = () =>
    shown(
      host,
      () => api.all('/users'),
      (users) =>
        table({
          caption: t('nav.users'),
          rows: users,
          rowKey: (u) => u.name,
          test: 'users',
          onOpen: (u) => go(to`/users/${u.name}`),
          empty: t('users.none'),
          columns: [
            { key: 'name', label: t('user.name'), cell: (u) => h('a', { href: to`/users/${u.name}` }, u.name) },
            { key: 'display_name', label: t('user.display_name'), hide: 'narrow' },
            {
              key: 'is_active',
              label: t('common.status'),
              value: (u) => (!u.is_active ? 2 : u.account?.directory_closed ? 1 : 0),
              cell: (u) =>
                h(
                  'span.badge',
                  {
                    class: u.is_active && !u.account?.directory_closed ? 'st-success' : 'st-pending',
                    title: u.account?.directory_closed ?? undefined,
                  },
                  t(
                    !u.is_active
                      ? 'user.inactive'
                      : u.account?.directory_closed
                        ? 'user.directory_closed'
                        : 'user.active',
                  ),
                ),
            },
            { key: 'grants', label: t('user.grants'), sort: false, cell: (u) => grantWords(u.grants) },
            {
              key: 'origin',
              label: t('user.origin'),
              hide: 'middle',
              sort: false,
              cell: (u) => originName(u.account?.oidc_issuer),
            },
            {
              key: 'last_login',
              label: t('user.last_login'),
              hide: 'narrow',
              value: (u) => u.account?.last_login,
              cell: (u) => ago(u.account?.last_login),
            },
          ],
        }).el,
    );
  await read();
}

async function add(done) {
  const groups = await api.all('/groups').catch(() => []);
  const name = field({
    label: t('user.name'),
    hint: t('user.name_hint'),
    input: input({ test: 'user-name', autocomplete: 'off', mono: true }),
  });
  const shownAs = field({ label: t('user.display_name'), input: input({ test: 'user-display' }) });
  const language = field({
    label: t('prefs.language'),
    input: select({
      options: LANGUAGES,
      test: 'user-lang',
      // Most teams read one language: that of who adds the user.
      value: lang(),
    }),
  });
  const grants = grantsEditor({ groups, grants: [{ group: '*', role: 'viewer', rights: [] }] });
  const box = dialog({
    title: t('users.add'),
    lead: t('users.add_lead'),
    size: 'm',
    test: 'user-dialog',
    body: [h('div.form', name, shownAs, language), h('h3', t('user.grants')), grants.el],
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('users.add'),
        kind: 'primary',
        icon: 'plus',
        test: 'user-save',
        run: async (close) => {
          const code = name.input.value.trim();
          if (!code) return name.fail(t('user.name_missing'));
          const made = await api.post('/users', {
            name: code,
            display_name: shownAs.input.value.trim() || undefined,
            lang: language.input.value,
            grants: grants.value(),
          });
          close();
          const secret = made.one_time_password;
          if (secret) showSecret(t('user.secret_title', { name: code }), t('user.secret_lead'), secret);
          return done();
        },
      },
    ],
  });
  return box;
}

/** Something that is shown once. */
export function showSecret(title, lead, secret) {
  dialog({
    title,
    lead,
    size: 's',
    test: 'secret',
    body: h('div.command', h('code', { 'data-test': 'secret-text' }, secret), copyButton(secret)),
    actions: [{ label: t('user.secret_kept'), kind: 'primary', test: 'secret-kept', run: (close) => close() }],
  });
}
