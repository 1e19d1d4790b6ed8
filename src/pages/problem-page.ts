import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../errors.ts';
import { acceptsHtml } from '../http/accepts-html.ts';
import { presentsPayment } from '../payment/http-auth.ts';
import { html } from './html.ts';
import { sendOnce } from './send.ts';
import { renderPage } from './shell.ts';
import { type SiteSettings, siteOf } from './site.ts';

const NOT_FOUND = 404;

/**
 * Answers a browser's 404 with a page. The page says that the request cost nothing. So it is made only for a request that presents no payment and
 * whose error says `charged: false`. False otherwise, and when the request does not ask for a page or the error is another one: the caller then
 * answers with a problem document, which says `charged` as it is.
 */
export function createProblemPage(config: SiteSettings) {
  const site = siteOf(config);
  return (request: FastifyRequest, reply: FastifyReply, error: AppError): boolean => {
    if (error.status !== NOT_FOUND || error.charged !== false) return false;
    if (!acceptsHtml(request) || presentsPayment(request.raw)) return false;
    const page = renderPage({
      site,
      title: 'Not found',
      path: '/404',
      body: html`<h1>Not found</h1>
<p class="lead">${error.message}</p>
<p>Nothing was charged for this request. <a href="/">Overview</a>, <a href="/market">Market</a>, <a href="/docs">Reference</a>, <a href="/status">Status</a>.</p>
<p><small>Request ${request.id}</small></p>`,
    });
    sendOnce(reply.code(NOT_FOUND), page);
    return true;
  };
}
