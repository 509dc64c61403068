// The page about the API: Swagger UI on the description of this server. "Try it out" sends requests with the
// session of the console, or with a token that is entered under "Authorize".

/* global SwaggerUIBundle */

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
  requestInterceptor: addCsrf,
  onComplete: () => {
    document.querySelector('main').dataset.ready = 'true';
  },
});
