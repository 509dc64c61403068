// The page about the API: Swagger UI on the description of this server. "Try it out" sends requests with the
// session of the console, or with a token that is entered under "Authorize".

/* global SwaggerUIBundle */

import { resolvePart } from './api_description.js';

const DESCRIPTION = '/api/v1/openapi.json';

const dark = window.matchMedia('(prefers-color-scheme: dark)');
const followTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);

// A change with a session needs this header, which a page of another origin cannot read.
async function addCsrf(request) {
  const isOurs = new URL(request.url, window.location.href).origin === window.location.origin;
  const isChange = (request.method ?? 'GET').toUpperCase() !== 'GET';
  if (isOurs && isChange && !request.headers.Authorization) {
    const response = await fetch('/api/v1/session', { headers: { Accept: 'application/json' } });
    if (response.ok) request.headers['X-CSRF-Token'] = (await response.json()).csrf ?? '';
  }
  return request;
}

// The name of an operation stands in the button that opens it. Swagger UI makes it a link as well, and a link inside
// a button is nothing that a screen reader can announce.
const plainNames = () => ({ components: { DeepLink: ({ text }) => text } });

// The parts of the description with their references in place, quicker than Swagger UI does it for any description.
const quickParts = () => ({
  fn: {
    async resolveSubtree(spec, path, { baseDoc }) {
      return { spec: resolvePart(spec, path, baseDoc), errors: [] };
    },
  },
});

// Swagger UI gives the lists of values of its forms no name.
function nameSelects() {
  for (const select of document.querySelectorAll('#api select:not([aria-label])')) {
    select.setAttribute('aria-label', select.closest('tr')?.dataset.paramName ?? 'Media type');
  }
}

new MutationObserver(nameSelects).observe(document.querySelector('#api'), { childList: true, subtree: true });
dark.addEventListener('change', followTheme);
followTheme();
SwaggerUIBundle({
  url: DESCRIPTION,
  dom_id: '#api',
  deepLinking: true,
  filter: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  displayRequestDuration: true,
  plugins: [plainNames, quickParts],
  requestInterceptor: addCsrf,
  onComplete: () => {
    document.querySelector('main').dataset.ready = 'true';
  },
});
