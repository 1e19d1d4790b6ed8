import type { FastifyInstance } from 'fastify';
import { API_CATALOG_LINK } from '../catalogue/paths.ts';
import type { Mounted } from '../http/openapi/route.ts';
import type { Limited } from '../http/rate-limit.ts';
import { mountDemoBuyer } from '../pages/demo-buyer.ts';
import { renderLanding } from '../pages/landing.ts';
import { renderMarket } from '../pages/market.ts';
import { createReadAnswer, type PageParts, type PagesDeps } from '../pages/page-parts.ts';
import { mountReference } from '../pages/reference.ts';
import { encodePage, keepPage, mountAssets, mountPage, mountSiteFiles } from '../pages/send.ts';
import { renderTerms } from '../pages/small.ts';
import { renderStatus } from '../pages/status.ts';
import { createSettledDays, createSettledToday } from '../payment/history.ts';
import { createDocument, type MetaDeps } from './meta.ts';

/** The pages for people and their assets. Without `pages` it mounts nothing. */
export async function pageRoutes<S>(
  app: FastifyInstance,
  given: { pages?: PagesDeps<S> } & MetaDeps & Limited & Mounted,
): Promise<void> {
  const { pages: deps } = given;
  if (deps === undefined) return;
  given.limits.free(app);
  const { clock } = deps;
  const parts: PageParts = { ...deps, read: createReadAnswer(deps), startedAtMs: clock.nowMs() };
  const railOf = (contract: Uint8Array | null) => (contract ? deps.settledOn(contract) : 'lightning');
  const settledToday = createSettledToday(deps.settled, railOf, clock, ['usdc', 'lightning']);
  const settledDays = createSettledDays(deps.settled, railOf, clock);
  mountAssets(app);
  mountSiteFiles(app);
  const terms = encodePage(renderTerms(deps.config));
  mountPage(app, '/terms', () => terms);
  mountReference(app, { ...deps, document: () => createDocument(given) });
  const prices = new Set(deps.catalogue.flatMap(({ price }) => (price ? [String(price.units)] : [])));
  mountDemoBuyer(app, { ...deps, prices });
  const landing = keepPage(clock, () => renderLanding(parts));
  mountPage(app, '/', (_request, reply) => {
    reply.header('link', API_CATALOG_LINK);
    return landing();
  });
  const status = keepPage(clock, () => renderStatus(parts, settledToday, settledDays));
  mountPage(app, '/status', status);
  mountPage(app, '/market', async (request, reply) => {
    const { text, isBad } = await renderMarket(parts, request.query as Record<string, unknown>);
    if (isBad) reply.code(400);
    return text;
  });
}
