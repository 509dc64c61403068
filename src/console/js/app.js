// The console's beginning: who is there, which page, and the frame around it.

import { api, say, ApiError } from './api.js';
import { loadLang, t } from './i18n.js';
import { closePanel } from './job_panel.js';
import { begin, redraw, route, setQuery } from './router.js';
import { drawGate } from './pages/login.js';
import { makeShell } from './shell.js';
import { store } from './store.js';
import { closeDialogs, failed, h, loading, put, regions } from './ui.js';

const page = (name) => Object.assign(() => import(`./pages/${name}.js`), { page: name });

route('/', page('dashboard'), { nav: '/' });
route('/batches', page('batches'), { nav: '/batches' });
route('/batches/:group/:no/:tab?', page('batch'), { nav: '/batches' });
route('/runs', page('runs'), { nav: '/runs' });
route('/groups', page('groups'), { nav: '/groups' });
route('/groups/:group/:tab?', page('group'), { nav: '/groups' });
route('/jobs', page('jobs'), { nav: '/jobs' });
route('/jobs/:code', page('job'), { nav: '/jobs' });
route('/schedules', page('schedules'), { nav: '/schedules' });
route('/schedules/:code', page('schedule'), { nav: '/schedules' });
route('/calendar', page('calendar'), { nav: '/calendar' });
route('/calendars', page('calendars'), { nav: '/calendars' });
route('/calendars/:code', page('calendars'), { nav: '/calendars' });
route('/approvals', page('approvals'), { nav: '/approvals' });
route('/backfills', page('backfills'), { nav: '/backfills' });
route('/backfills/:id', page('backfill'), { nav: '/backfills' });
route('/definition', page('definition'), { nav: '/definition' });
route('/editor', page('editor'), { nav: '/definition' });
route('/inbox', page('inbox'), { nav: '/inbox' });
route('/insights', page('insights'), { nav: '/insights' });
route('/wall', page('wall'), { nav: '/insights' });
route('/nodes', page('nodes'), { nav: '/nodes' });
route('/executors', page('executors'), { nav: '/executors' });
route('/executors/:app', page('executor'), { nav: '/executors' });
route('/secrets', page('secrets'), { nav: '/secrets' });
route('/outbox', page('outbox'), { nav: '/outbox' });
route('/audit', page('audit'), { nav: '/audit' });
route('/users', page('users'), { nav: '/users' });
route('/users/:name', page('user'), { nav: '/users' });
route('/profile', page('profile'), { nav: '/profile' });
route('/settings', page('settings'), { nav: '/settings' });

const host = h('div');
document.body.prepend(host);

let shell = null;
let turn = 0;

/** The page that is shown: which it is, and what ends it. */
let current = null;
function leave() {
  current?.end?.();
  current = null;
}

/** Draws a page into the frame; one that can goes on by itself when only a part of its address changed. */
async function draw(found, params, query, path) {
  if (current && found && current.found === found && current.change?.(params, query)) return;
  leave();
  const mine = ++turn;
  const el = h('div.page');
  shell.enter(el, found?.nav ?? path, found?.load.page ?? 'none');
  if (!found) {
    shell.title(t('problem.gone_title'));
    shell.arrived(el);
    put(el, failed(new ApiError(404, 'no-page', t('problem.no_page'))));
    return;
  }
  put(el, loading());
  const ended = [];
  const ctx = { params, query, title: (words) => mine === turn && shell.title(words), onLeave: (fn) => ended.push(fn) };
  ctx.setQuery = setQuery;
  let mounted;
  try {
    const module = await found.load();
    if (mine !== turn) return;
    put(el);
    mounted = await module.mount(el, ctx);
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error);
    if (mine === turn) put(el, failed(error, redraw));
  }
  const end = () => {
    ended.forEach((fn) => fn());
    mounted?.destroy?.();
  };
  if (mine !== turn) {
    end();
    return;
  }
  current = { found, end, change: mounted?.change };
  shell.arrived(el);
}

let began = false;
function showShell() {
  leave();
  shell?.destroy?.();
  shell = makeShell();
  put(host, shell.el);
  if (began) redraw();
  else begin((...all) => (store.session && shell ? draw(...all) : undefined), closeDialogs);
  began = true;
}

function showGate(why) {
  leave();
  closePanel();
  shell?.destroy?.();
  shell = null;
  turn += 1;
  drawGate(host, { why, enter });
}

async function enter(session) {
  api.forget();
  store.enter(session);
  // Without the words of the account's language it is the one before.
  await loadLang(store.lang()).catch(() => {});
  store.dress();
  // Where the set-up began is no page any more.
  if (/^#\/(setup|login)/.test(location.hash)) history.replaceState(null, '', '#/');
  document.title = 'Procession';
  if (session.must_change_password) drawGate(host, { mustChange: true, enter });
  else if (session.must_enrol_second_factor) drawGate(host, { mustEnrol: true, enter });
  else showShell();
}

store.on('expired', () => {
  store.session = null;
  showGate(t('login.expired'));
});
store.on('must-change', () => {
  if (!shell) return;
  leave();
  closePanel();
  shell.destroy();
  shell = null;
  drawGate(host, { mustChange: true, enter });
});
store.on('left', () => {
  store.session = null;
  api.forget();
  location.hash = '#/';
  showGate();
});
// Another language or zone: every word is drawn anew.
let before = JSON.stringify([store.prefs.lang, store.prefs.zone]);
store.on('prefs', () => {
  const now = JSON.stringify([store.prefs.lang, store.prefs.zone]);
  if (now === before) return;
  before = now;
  if (store.session && shell) showShell();
  else if (!store.session) showGate();
});

/** The words, and what is made of them; false where they cannot be fetched. */
async function dress() {
  try {
    await loadLang(store.lang());
  } catch {
    put(
      host,
      h('main.gate', h('p', 'The console cannot be loaded. Load the page again. 控制台无法加载，请刷新页面。')),
    );
    return false;
  }
  store.dress();
  document.body.append(...regions());
  return true;
}

const askOptions = () => api.get('/session/options', {}, { public: true }).catch(() => null);

async function start(options = askOptions()) {
  put(host, h('div.gate', loading()));
  store.options = await options;
  // Who is known not to be logged in is not asked who it is: the refusal would stand in the browser's log.
  if (store.options?.is_known === false) {
    showGate();
    return;
  }
  try {
    await enter(await api.get('/session', {}, { public: true }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) showGate();
    else
      put(
        host,
        h(
          'main.gate',
          h(
            'div.gate-card',
            failed(error, () => start()),
            h('p.muted', say(error)),
          ),
        ),
      );
  }
}
// Words and options are fetched side by side.
const asked = askOptions();
dress().then((isDressed) => isDressed && start(asked));
