// One user: what is known of the account, what it may do, its tokens; and how it is shut out.

import { api } from '../api.js';
import { t } from '../i18n.js';
import { grantsEditor } from '../grants.js';
import { go, redraw } from '../router.js';
import { store } from '../store.js';
import {
  button,
  card,
  check,
  confirmReason,
  dialog,
  facts,
  field,
  h,
  input,
  pageHead,
  put,
  select,
  time,
  toast,
  ago,
} from '../ui.js';
import { tokenTable } from './profile.js';
import { showSecret } from './users.js';

export async function mount(el, ctx) {
  const { name } = ctx.params;
  ctx.title(name);
  const at = api.path`/users/${name}`;
  const [user, groups, tokens] = await Promise.all([
    api.get(at),
    api.all('/groups').catch(() => []),
    api
      .get(`${at}/tokens`)
      .then((got) => got.items)
      .catch(() => []),
  ]);
  const no = store.whyEverywhere('admin');
  const mine = store.session.user.name === name;
  const shownAs = field({
    label: t('user.display_name'),
    input: input({ value: user.display_name ?? '', test: 'user-display' }),
  });
  const lang = field({
    label: t('prefs.language'),
    input: select({
      options: [
        ['', t('prefs.as_browser')],
        ['en', 'English'],
        ['zh', '中文'],
      ],
      value: user.account?.lang ?? '',
    }),
  });
  const active = check({
    label: t('user.is_active'),
    hint: t('user.is_active_hint'),
    checked: user.is_active,
    disabled: mine,
    test: 'user-active',
  });
  const grants = grantsEditor({ groups, grants: user.grants, readonly: !!no });
  const account = user.account ?? {};
  put(
    el,
    pageHead({
      title: user.display_name || name,
      sub: user.display_name && user.display_name !== name ? name : null,
      crumbs: [[t('nav.users'), '#/users']],
      actions: [
        button(t('user.reset'), {
          icon: 'key',
          // The directory keeps the password, so it is set there.
          disabled: account.oidc_issuer === 'ldap' ? t('user.reset_ldap') : no,
          test: 'user-reset',
          onclick: () => {
            dialog({
              title: t('user.reset'),
              lead: t('user.reset_lead', { name }),
              size: 's',
              actions: [
                { label: t('common.cancel'), run: (close) => close() },
                {
                  label: t('user.reset'),
                  kind: 'primary',
                  run: async (close) => {
                    const made = await api.post(`${at}/password-reset`, {});
                    close();
                    showSecret(t('user.secret_title', { name }), t('user.secret_lead'), made.one_time_password);
                  },
                },
              ],
            });
          },
        }),
        (account.has_password || account.oidc_issuer === 'ldap') &&
          button(t('factor.reset'), {
            icon: 'key',
            disabled: no,
            test: 'user-factor-reset',
            onclick: () => {
              dialog({
                title: t('factor.reset'),
                lead: t('factor.reset_lead', { name }),
                size: 's',
                actions: [
                  { label: t('common.cancel'), run: (close) => close() },
                  {
                    label: t('factor.reset'),
                    kind: 'danger',
                    run: async (close) => {
                      await api.post(`${at}/second-factor-reset`, {});
                      close();
                      toast(t('common.done'), 'good');
                    },
                  },
                ],
              });
            },
          }),
        button(t('user.end_sessions'), {
          icon: 'logout',
          disabled: no,
          onclick: async () => {
            await api.del(`${at}/sessions`);
            toast(t('user.sessions_ended'), 'good');
          },
        }),
        button(t('common.delete'), {
          icon: 'trash',
          kind: 'danger',
          disabled: no ?? (mine ? t('user.not_yourself') : null),
          onclick: () => {
            confirmReason({
              title: t('user.delete_title', { name }),
              lead: t('user.delete_lead'),
              verb: t('common.delete'),
              kind: 'danger',
              optional: true,
              run: async () => {
                await api.del(at);
                go('/users');
              },
            });
          },
        }),
      ],
    }),
    h(
      'div.columns',
      h(
        'div.stack',
        card(
          t('user.account'),
          h('div.form', shownAs, lang, h('div.wide', active)),
          h('h3.spaced', t('user.grants')),
          h('p.muted', t('user.grants_lead')),
          grants.el,
          h(
            'div.row.spaced',
            button(t('common.save'), {
              kind: 'primary',
              icon: 'check',
              disabled: no,
              test: 'user-save',
              onclick: async () => {
                await api.patch(at, {
                  display_name: shownAs.input.value.trim() || undefined,
                  lang: lang.input.value || undefined,
                  is_active: active.box.checked,
                  grants: grants.value(),
                });
                toast(t('common.saved'), 'good');
                redraw();
              },
            }),
          ),
        ),
        card(
          t('token.title'),
          { cls: 'flush' },
          tokenTable(tokens, async (token) => {
            await api.del(api.path`/tokens/${token.token_id}`);
            toast(t('token.revoked'), 'good');
            redraw();
          }),
        ),
      ),
      card(
        t('user.about'),
        facts(
          [
            [t('user.created'), account.create_time && time(account.create_time, { date: true })],
            [t('user.last_login'), ago(account.last_login)],
            [
              t('user.origin'),
              account.oidc_issuer === 'ldap' ? t('user.ldap') : (account.oidc_issuer ?? t('user.local')),
            ],
            [t('user.must_change'), account.must_change_password ? t('common.yes') : null],
          ],
          { wide: true },
        ),
        h('p', h('a', { href: `#/audit?actor=${encodeURIComponent(name)}` }, t('user.audit'))),
      ),
    ),
  );
}
