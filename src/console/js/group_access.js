// Which groups of jobs may use a secret or a group of executors: shown as tags, asked for with fields.

import { t } from './i18n.js';
import { check, field, h, input } from './ui.js';

/** Which groups may use it, as tags. */
export const groupTags = (resource) => {
  if (!resource.owner_group && !resource.groups) return h('span.late', t('access.every_group'));
  const others = resource.groups ?? [];
  if (!resource.owner_group && others.length === 0) return h('span.muted', t('access.no_group'));
  return h(
    'span.tags',
    resource.owner_group && h('span.tag', t('access.owner_tag', { group: resource.owner_group })),
    others.map((g) => h('span.tag', g)),
  );
};

const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** The fields that say who may use it, and what to send of them. */
export function accessFields(resource) {
  const owner = field({
    label: t('access.owner'),
    hint: t('access.owner_hint'),
    input: input({ value: resource?.owner_group ?? '', mono: true, test: 'access-owner' }),
  });
  const groups = field({
    label: t('access.groups'),
    hint: t('access.groups_hint'),
    input: input({ value: (resource?.groups ?? []).join(' '), mono: true, test: 'access-groups' }),
  });
  let every = !!resource && !resource.owner_group && !resource.groups;
  const all = check({
    label: t('access.every_group_say'),
    checked: every,
    test: 'access-every',
    onchange: (v) => (every = v),
  });
  const value = () => {
    if (every) return { every_group: true };
    const own = owner.input.value.trim();
    const others = words(groups.input.value);
    return {
      owner_group: own || undefined,
      groups: others.length || !own ? others : undefined,
    };
  };
  return { els: [owner, groups, h('div.wide', all)], value };
}
