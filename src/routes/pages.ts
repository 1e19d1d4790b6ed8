import type { FastifyInstance } from 'fastify';
import { createReadAnswer } from '../pages/answers.ts';
import { mountDemoBuyer } from '../pages/demo-buyer.ts';
import { keepPage } from '../pages/kept-page.ts';
import { renderLanding } from '../pages/landing.ts';
import { renderMarket } from '../pages/market.ts';
import { mountAssets, mountPage } from '../pages/mount-page.ts';
import type { PageParts, PagesDeps } from '../pages/pages-deps.ts';
import { mountReference } from '../pages/reference/page.ts';
import { encodePage } from '../pages/send.ts';
import { mountSiteFiles } from '../pages/site-files.ts';
import { renderStatus } from '../pages/status.ts';
import { renderTerms } from '../pages/terms.ts';
import { createSettledToday } from '../payment/settled-today.ts';

/** Mounts the pages for people and their assets. It belongs to the rate-limited group of free routes. */
export function mountPages<S>(app: FastifyInstance, deps: PagesDeps<S>): void {
  const { clock } = deps;
  const parts: PageParts = { ...deps, read: createReadAnswer(deps), startedAtMs: clock.nowMs() };
  const settledToday = createSettledToday(
    deps.settled,
    (contract) => (contract ? deps.settledOn(contract) : 'lightning'),
    clock,
    ['usdc', 'lightning'],
  );
  mountAssets(app);
  mountSiteFiles(app);
  const terms = encodePage(renderTerms(deps.config));
  mountPage(app, '/terms', () => terms);
  mountReference(app, deps);
  const prices = new Set(deps.catalogue.flatMap(({ price }) => (price ? [String(price.units)] : [])));
  mountDemoBuyer(app, { ...deps, prices });
  mountPage(
    app,
    '/',
    keepPage(clock, () => renderLanding(parts)),
  );
  mountPage(
    app,
    '/status',
    keepPage(clock, () => renderStatus(parts, settledToday)),
  );
  mountPage(app, '/market', async (request, reply) => {
    const { text, isBad } = await renderMarket(parts, request.query as Record<string, unknown>);
    if (isBad) reply.code(400);
    return text;
  });
}
