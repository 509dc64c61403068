// Executors of XXL-JOB that jobs call: groups with where they are and who is there. One is added here.

import { api } from '../api.js';
import { accessFields, groupTags } from '../group_access.js';
import { t } from '../i18n.js';
import { go, to } from '../router.js';
import { store } from '../store.js';
import { button, check, dialog, empty, field, glyph, h, input, pageHead, poll, put, shown, table } from '../ui.js';
import { showSecret } from './users.js';

/** How many executors of a group are there; with a mark that says whether that is enough. */
export const thereWords = (group) => {
  const n = group.addresses ? group.addresses.length : group.alive;
  const mark = group.addresses ? 'PENDING' : n > 0 ? 'SUCCESS' : 'FAILED';
  return h(
    'span.row.nowrap',
    glyph(mark),
    group.addresses ? t('executors.fixed_n', { n }) : n > 0 ? t('executors.there_n', { n }) : t('executors.nobody'),
  );
};

export async function mount(el, ctx) {
  ctx.title(t('nav.executors'));
  const host = h('div');
  const no = store.whyEverywhere('admin');
  put(
    el,
    pageHead({
      title: t('nav.executors'),
      sub: t('executors.lead'),
      actions: [
        button(t('executors.add'), { kind: 'primary', icon: 'plus', disabled: no, test: 'executor-add', onclick: add }),
      ],
    }),
    host,
  );
  const draw = (groups) =>
    table({
      caption: t('nav.executors'),
      rows: groups,
      rowKey: (g) => g.app_name,
      test: 'executors',
      onOpen: (g) => go(to`/executors/${g.app_name}`),
      empty: empty({ title: t('executors.none'), lead: t('executors.none_lead') }),
      columns: [
        {
          key: 'app_name',
          label: t('executors.app_name'),
          cell: (g) => h('a', { href: to`/executors/${g.app_name}` }, g.app_name),
        },
        { key: 'title', label: t('executors.title') },
        {
          key: 'alive',
          label: t('executors.there'),
          value: (g) => (g.addresses ? g.addresses.length : g.alive),
          cell: thereWords,
        },
        {
          key: 'where',
          label: t('executors.addresses'),
          sort: false,
          hide: 'narrow',
          cell: (g) =>
            h(
              'span.tags',
              (g.addresses ?? g.registrations.filter((r) => r.is_alive).map((r) => r.address))
                .slice(0, 3)
                .map((a) => h('code.tag', a)),
            ),
        },
        { key: 'open_runs', label: t('executors.open_runs'), num: true },
        {
          key: 'allows_glue',
          label: t('executors.glue'),
          hide: 'middle',
          value: (g) => (g.allows_glue ? 0 : 1),
          cell: (g) => t(g.allows_glue ? 'executors.glue_yes' : 'executors.glue_no'),
        },
        { key: 'groups', label: t('access.for'), sort: false, cell: groupTags },
      ],
    }).el;
  await shown(host, () => api.all('/executor-groups'), draw);
  let before = '';
  const refresh = async () => {
    const groups = await api.all('/executor-groups');
    const now = JSON.stringify(
      groups.map((g) => [
        g.app_name,
        g.title,
        g.addresses,
        g.alive,
        g.open_runs,
        g.allows_glue,
        g.owner_group,
        g.groups,
      ]),
    );
    if (now !== before && el.isConnected && !host.contains(document.activeElement)) put(host, draw(groups));
    before = now;
  };
  return { destroy: poll(refresh, 10000) };
}

/** Addresses of a text, one a line. */
export const addressesOf = (text) => text.split(/\s+/).filter(Boolean);

/** The fields of a group that can be changed. */
export function groupFields(group) {
  const title = field({
    label: t('executors.title'),
    hint: t('executors.title_hint'),
    input: input({ value: group?.title ?? '', test: 'executor-title' }),
  });
  const addresses = field({
    label: t('executors.fixed'),
    hint: t('executors.fixed_hint'),
    wide: true,
    input: input({ rows: 3, value: (group?.addresses ?? []).join('\n'), mono: true, test: 'executor-addresses' }),
  });
  const glue = check({
    label: t('executors.allow_glue'),
    hint: t('executors.allow_glue_hint'),
    checked: group?.allows_glue ?? false,
    test: 'executor-glue',
  });
  const access = accessFields(group);
  return { title, addresses, glue, access };
}

function add() {
  const name = field({
    label: t('executors.app_name'),
    hint: t('executors.app_name_hint'),
    input: input({ mono: true, test: 'executor-name' }),
  });
  const { title, addresses, glue, access } = groupFields(null);
  const token = field({
    label: t('executors.token'),
    hint: t('executors.token_hint'),
    wide: true,
    input: input({ type: 'password', autocomplete: 'new-password', test: 'executor-token' }),
  });
  dialog({
    title: t('executors.add'),
    lead: t('executors.add_lead'),
    size: 'm',
    test: 'executor-dialog',
    body: h('div.form', name, title, addresses, h('div.wide', glue), access.els, token),
    actions: [
      { label: t('common.cancel'), run: (close) => close() },
      {
        label: t('executors.add'),
        kind: 'primary',
        icon: 'plus',
        test: 'executor-save',
        run: async (close) => {
          const app = name.input.value.trim();
          if (!app) return name.fail(t('executors.name_missing'));
          const fixed = addressesOf(addresses.input.value);
          const made = await api.post('/executor-groups', {
            app_name: app,
            title: title.input.value.trim() || undefined,
            addresses: fixed.length ? fixed : undefined,
            allows_glue: glue.box.checked,
            token: token.input.value || undefined,
            ...access.value(),
          });
          close();
          if (made.token)
            showSecret(t('executors.secret_title', { name: app }), t('executors.secret_lead'), made.token);
          return go(to`/executors/${app}`);
        },
      },
    ],
  });
}
