// Who may do what where: the editor of grants, and a grant in words.

import { api } from './api.js';
import { t } from './i18n.js';
import { button, h, put, select, check } from './ui.js';

const ROLES = ['viewer', 'operator', 'author', 'admin'];
const RIGHTS = ['force', 'script'];

/** Grants as tags: `operator + force @ month_end`. */
export const grantWords = (grants) =>
  grants?.length
    ? h(
        'span.tags',
        grants.map((g) =>
          h(
            'span.tag',
            `${t(`role.${g.role}`)}${(g.rights ?? []).map((r) => ` + ${t(`permission.${r}`)}`).join('')} @ ${place(g) === '*' ? t('group.everywhere') : place(g)}`,
          ),
        ),
      )
    : h('span.none', t('user.no_grants'));
const place = (g) => (typeof g.place === 'object' ? (g.place.group ?? '*') : (g.group ?? g.place ?? '*'));

/** Names of the nodes on which scripts of a group can do what the service can. */
const nodesWithServiceRights = (nodes, group) =>
  nodes.filter((n) => n.scripts?.equals_service && !n.scripts.run_as?.[group]).map((n) => n.name);

/** Rows of where, role and further rights. `value()` answers what is chosen. */
export function grantsEditor({ groups, grants, readonly }) {
  let rows = (grants ?? []).map((g) => ({ group: place(g), role: g.role, rights: [...(g.rights ?? [])] }));
  const el = h('div.grants', { 'data-test': 'grants' });
  const places = [['*', t('group.everywhere')], ...groups.map((g) => [g.group ?? g.code, g.group ?? g.code])];
  let nodes = [];
  const warning = (row) => {
    const names = row.rights.includes('script') ? nodesWithServiceRights(nodes, row.group) : [];
    if (names.length === 0) return null;
    const group = row.group === '*' ? t('group.everywhere') : row.group;
    return h(
      'p.note.note-warning',
      { 'data-test': 'script-equals-service' },
      t('user.script_equals_service', { nodes: [...new Set(names)].join(', '), group }),
    );
  };
  const draw = () =>
    put(
      el,
      rows.length === 0 && h('p.muted', t('user.no_grants')),
      rows.map((row, i) =>
        h(
          'div.grant',
          select({
            label: t('group.one'),
            options: places.some(([v]) => v === row.group) ? places : [...places, [row.group, row.group]],
            value: row.group,
            onchange: (v) => (row.group = v),
            test: `grant-${i}-group`,
          }),
          select({
            label: t('user.role'),
            options: ROLES.map((r) => [r, `${t(`role.${r}`)} – ${t(`role.${r}_what`)}`]),
            value: row.role,
            test: `grant-${i}-role`,
            onchange: (v) => {
              row.role = v;
              draw();
            },
          }),
          h(
            'span.row',
            RIGHTS.map((r) => {
              const has = r === 'force' && row.role === 'admin';
              return check({
                label: t(`permission.${r}`),
                checked: has || row.rights.includes(r),
                disabled: has || readonly,
                test: `grant-${i}-${r}`,
                onchange: (v) => {
                  row.rights = v ? [...new Set([...row.rights, r])] : row.rights.filter((x) => x !== r);
                  if (r === 'script') draw();
                },
              });
            }),
          ),
          button(t('user.grant_remove'), {
            icon: 'trash',
            iconOnly: true,
            kind: 'quiet',
            small: true,
            disabled: readonly,
            onclick: () => {
              rows = rows.filter((x) => x !== row);
              draw();
            },
          }),
          warning(row),
        ),
      ),
      button(t('user.grant_add'), {
        icon: 'plus',
        small: true,
        disabled: readonly,
        test: 'grant-add',
        onclick: () => {
          rows.push({
            group: groups.length && rows.some((r) => r.group === '*') ? (groups[0].group ?? groups[0].code) : '*',
            role: 'viewer',
            rights: [],
          });
          draw();
        },
      }),
    );
  draw();
  // Without the right to see nodes there is no warning; the server refuses nothing for want of it.
  api.get('/nodes').then(
    (answer) => {
      nodes = answer.items ?? [];
      if (nodes.some((n) => n.scripts?.equals_service)) draw();
    },
    () => {},
  );
  return {
    el,
    value: () =>
      rows.map((r) => ({
        group: r.group,
        role: r.role,
        rights: r.rights.filter((x) => !(x === 'force' && r.role === 'admin')),
      })),
  };
}
