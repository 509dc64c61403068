// The versions of a group, as a tab of its page.

import { h } from '../ui.js';
import { showVersions } from '../edit/versions.js';

export function mount(el, ctx) {
  const host = h('div');
  el.append(host);
  showVersions(host, ctx.group ?? ctx.params?.group, {});
  return { update() {}, destroy: () => host.remove() };
}
