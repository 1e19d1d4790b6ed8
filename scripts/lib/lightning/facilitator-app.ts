import Fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { loadConfig } from '../../../src/config.ts';
import type { Facilitator } from '../../../src/facilitator/facilitator.ts';
import { createMethodRefusals, guardRequests } from '../../../src/http/guard-requests.ts';
import { createMetrics, observeRequests } from '../../../src/http/metrics.ts';
import { installErrorHandlers } from '../../../src/http/problems.ts';
import { serverOptions } from '../../../src/http/server-options.ts';
import { facilitatorRoutes } from '../../../src/routes/facilitator.ts';

/** Values that the configuration needs and the facilitator does not use. */
const UNUSED = {
  NETWORK: 'custom',
  CHAIN_ID: '5042',
  RPC_URLS: 'http://127.0.0.1:1',
  USDC_ADDRESS: `0x36${'0'.repeat(38)}`,
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
};

/** The configuration of a service that runs only the facilitator. */
export const facilitatorConfig = (env: Record<string, string | undefined>) => loadConfig({ ...UNUSED, ...env });

/** Only the facilitator's routes, behind the plugins that the whole service puts before its routes. */
export function buildFacilitatorApp(
  facilitator: Facilitator,
  config: ReturnType<typeof facilitatorConfig>,
  log: Logger,
): FastifyInstance {
  const app = Fastify(serverOptions(config, log));
  const observer = observeRequests(app, log, createMetrics());
  guardRequests(app, log, createMethodRefusals(app, observer.unmatched));
  installErrorHandlers(app, log, observer.unmatched, () => 'There is no such route.');
  app.register(facilitatorRoutes, { facilitator });
  return app;
}
