import type { FastifyInstance } from 'fastify';
import { tagsWith } from '../http/openapi/openapi-text.ts';
import type { NamedChain } from '../lib/named-chain.ts';
import { assetPath } from './assets.ts';
import { html } from './html.ts';
import { mountPage } from './mount-page.ts';
import { encodePage } from './send.ts';
import { renderPage } from './shell.ts';

/**
 * Mounts `/docs`: the reference, which a library among our assets draws in the browser from `/openapi.json`.
 * The page has the same content security policy as all others, so its requests go to its own origin only.
 */
export function mountReference(app: FastifyInstance, chain: NamedChain, mpp: boolean): void {
  const page = encodePage(renderReference(chain, mpp));
  mountPage(app, '/docs', () => page);
}

/** The scripts run in this order, after the page was parsed. */
function renderReference(chain: NamedChain, mpp: boolean): string {
  const body = html`<section>
<h1>API reference</h1>
<p class="lead">Every route with its parameters, answers and errors, drawn from <a href="/openapi.json">/openapi.json</a>.
Try them here: free routes answer at once, a priced one says what it costs, and its terms are shown decoded.</p>
<nav aria-label="Groups of routes"><ul class="routes">${tagsWith(mpp).map(
    ({ name }) => html`<li><a href="#operations-tag-${name}">${name}</a></li>`,
  )}</ul></nav>
<noscript><p>A script draws this reference, and scripts are off. The same is in <a href="/openapi.json">/openapi.json</a> for programs
and in <a href="/llms.txt">/llms.txt</a> as text.</p></noscript>
<p id="reference-answer" class="unseen" role="status"></p>
<div id="reference"><p>Drawing the reference …</p></div>
</section>
<script src="${assetPath('swagger-ui.js')}" defer></script>
<script src="${assetPath('reference.js')}" type="module"></script>`;
  return renderPage({
    chain,
    title: 'API reference',
    path: '/docs',
    description: 'Every route of the service with parameters, answers, errors and prices, to be tried in the page.',
    styles: ['reference.css'],
    body,
  });
}
