import { html } from './html.ts';
import { renderPage } from './shell.ts';
import { type SiteSettings, siteOf } from './site.ts';

/** Renders `/terms`: what a buyer gets and does not get. Every sentence is something that the service does, so that no operator has to write it first. */
export function renderTerms(config: SiteSettings): string {
  const { contactUrl } = config.web;
  return renderPage({
    site: siteOf(config),
    title: 'Terms',
    path: '/terms',
    description: 'What a paid call buys, what is never charged, whose data it is, and what is kept about callers.',
    body: html`<h1>Terms</h1>
<p class="lead">What a call buys, and what it does not.</p>
<section class="part" aria-labelledby="buys"><header class="head"><h2 id="buys">A paid call</h2></header>
<p>One payment buys exactly one answer. A payment is taken only after the answer exists. A bad parameter, a failing source, a limit and a fault of this service cost nothing.
The same payment for the same request brings the same answer again for 15 minutes, uncharged. An answer that never reached its buyer is kept for up to 7 days.</p>
<p>A transfer on a chain and a Lightning payment cannot be taken back. There are no refunds of answers that were delivered.</p></section>
<section class="part" aria-labelledby="data"><header class="head"><h2 id="data">The data</h2></header>
<p>Every answer names its source and says when it was read. It comes as it is, without a warranty that it is right, complete or fit for a purpose; it is no advice.
Where a source has a licence, the answer names it, and its terms hold for what you do with the data. Texts of Wikipedia are under CC BY-SA 4.0.
Routes of other sellers in the market are those sellers’ own: this service checks that they answer, and sells nothing of theirs.</p></section>
<section class="part" aria-labelledby="kept"><header class="head"><h2 id="kept">What is kept</h2></header>
<p>The ledger keeps payments: amount, time, state, payer and route. An answer is kept until it can no longer be asked for again. A caller’s network address counts for limits, and stands beside a payment only as a hash.
There are no accounts, no cookies and no trackers. The pages load nothing from other hosts. The lookup of a payment never says what it bought, or for whom.</p></section>
<section class="part" aria-labelledby="limits"><header class="head"><h2 id="limits">Limits</h2></header>
<p>Calls are limited by client, so that one cannot take all. An answer with status 429 says when to come back.${
      contactUrl && html` Questions go to <a href="${contactUrl}" rel="noopener">the operator</a>.`
    }</p></section>`,
  });
}
