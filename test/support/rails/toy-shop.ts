import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Fastify from 'fastify';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { loadConfig } from '../../../src/config.ts';
import { installErrorHandlers } from '../../../src/http/errors.ts';
import { serverOptions } from '../../../src/http/server-options.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createFailures } from '../../../src/payment/failures.ts';
import { createGate } from '../../../src/payment/gate.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { createLookup } from '../../../src/payment/lookup.ts';
import { createMaintenance } from '../../../src/payment/maintenance.ts';
import { httpProtocol } from '../../../src/payment/open-protocols.ts';
import { createPreparedCounter } from '../../../src/payment/prepared-counter.ts';
import { createPurchase } from '../../../src/payment/purchase.ts';
import { createRecovery } from '../../../src/payment/recovery.ts';
import { createServe } from '../../../src/payment/serve.ts';
import { createSettlement } from '../../../src/payment/settlement.ts';
import { createLocalSettling } from '../../../src/payment/settling-local.ts';
import { createUnknownPayments } from '../../../src/payment/unknown-payments.ts';
import { mountLookup } from '../../../src/routes/payments.ts';
import { mountPriced } from '../../../src/routes/priced.ts';
import { openPostgresStores } from '../../../src/store/postgres/open-stores.ts';
import { openSqliteStores } from '../../../src/store/sqlite/open-stores.ts';
import { sourcedEndpoints } from './source.ts';
import { createToyRail, TOY_NETWORK, toyRequirement } from './toy-rail.ts';

// A program that sells over the toy rail alone, out of the real core, gate and ledger: it has the same routes as the service, and the same ends.

const config = loadConfig(process.env);
const log = createLogger(config.logLevel);
const { url } = config.ledger;
const stores =
  url === null
    ? openSqliteStores(join(config.dataDir, 'ledger.db'))
    : await openPostgresStores({ ...config.ledger, url, clock });
const bootId = randomUUID();
const { payments: store, transfers, lightning: claims } = stores;
const ledger = createLedger({ store, clock, bootId, ...config.replies, maxOpen: config.maxOpenPayments });
const rail = createToyRail(String(process.env.TOY_BANK_URL), () => ledger);
const waitMs = config.settleWaitMs;
const settlement = createSettlement({ ledger, railOf: () => rail.settling, clock, waitMs, log });
const nothing = async () => {};
const settling = createLocalSettling({
  ...{ ledger, settlement, settlers: {}, probes: () => ({}), detail: () => null, isShared: false },
  takeOver: createRecovery({ ledger, living: undefined, patienceMs: 0, clock, log }),
  ...{ load: nothing, refresh: nothing, stopSettlers: nothing },
});
const { purchase, isServed } = createPurchase<null>({
  ...{ ledger, settlement, sources: null, clock, network: TOY_NETWORK, log },
  failures: createFailures(config.failureLimits, clock),
  unknown: createUnknownPayments({ ledger, limits: config.unknownLimits, clock }),
  railFor: () => rail.purchase,
  serve: createServe({ ledger, sources: null, handlerTimeoutMs: config.handlerTimeoutMs }),
});
const maintenance = createMaintenance({
  ...{ settling, intervalMs: config.reconcileIntervalMs, log },
  isInUse: ({ id, bootId: holder }) => holder !== bootId || isServed(id),
});

function counterOf(endpoint: Endpoint<null>) {
  const price = endpoint.price?.units ?? 0n;
  const requirement = toyRequirement(String(price));
  const accepts = [requirement];
  const demand = httpProtocol.prepare(endpoint, accepts, config.publicOrigin);
  return createPreparedCounter(endpoint, { requirement, accepts, price, demand }, purchase);
}

const app = Fastify(serverOptions(config, log));
installErrorHandlers(app, log, () => {});
const catalogue = sourcedEndpoints<null>(String(process.env.SOURCE_URL));
const gate = createGate<null>({ counterOf, protocol: httpProtocol, log });
mountPriced(app, { surface: 'paid', gate, catalogue, chainSegment: config.network.segment });
mountLookup(app, createLookup({ payments: store, transfers, claims, lightningNetworks: [], explorerUrl: null }));
app.get('/readyz', async () => ({ ready: true }));
await maintenance.start();
await app.listen({ host: config.host, port: config.port });
log.warn({ bank: process.env.TOY_BANK_URL }, 'sells over the toy rail');
process.on('SIGTERM', async () => {
  await app.close();
  await maintenance.stop();
  await stores.close();
  process.exit(0);
});
