import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { until } from '../support/service/workers.ts';
import { createStillClock } from '../support/still-clock.ts';
import { buyOnce, present } from '../support/usdc/buyer.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../support/usdc/gateway-stand-in.ts';
import type { Transcript } from '../support/wire/transcript.ts';
import { recordDocuments, recordManifest, recordMetrics, recordReadiness } from './wire/documents.ts';
import { recordGateway, recordUnknown } from './wire/gateway.ts';
import {
  recordLightningAway,
  recordLightningRefusals,
  recordLightningSales,
  recordLightningUnpaid,
} from './wire/lightning.ts';
import { recordLightningTools, recordTools, recordUsdcTools } from './wire/mcp.ts';
import { recordMpp } from './wire/mpp.ts';
import { openShop, openTranscript, type Shop, WALLET } from './wire/shop.ts';
import { recordUnreadable, recordUsdcRefusals } from './wire/usdc-refusals.ts';
import { recordUsdcFailures, recordUsdcSales } from './wire/usdc-sales.ts';
import { recordChallenges, recordUsdcUnpaid } from './wire/usdc-unpaid.ts';

// Every answer to buyers, byte for byte except for placeholders. A change that should not change the wire is shown to
// change nothing. An intended change is recorded by `npm run transcripts`, and its diff is reviewed.

let network: EmbeddedNetwork;
let shop: Shop;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
});
afterAll(async () => {
  await network.stop();
});

/** Compares a recording with the file of that name. */
async function unchanged(name: string, record: (transcript: Transcript, shop: Shop) => Promise<void>): Promise<void> {
  const transcript = openTranscript(network);
  await record(transcript, shop);
  await isRecorded(name, transcript);
}

async function isRecorded(name: string, transcript: Transcript): Promise<void> {
  await expect(transcript.text()).toMatchFileSnapshot(`wire/${name}.txt`);
}

/** Sells a call and refuses another before the metrics are read. A metric has labels only after it has counted something. */
async function recordMetricsOfASale(transcript: Transcript, seller: Shop): Promise<void> {
  const { answer } = await buyOnce(network, seller.origin, '/v1/paid/test/usdc');
  expect(answer.status).toBe(200);
  expect((await present(seller.origin, '/v1/paid/test/usdc', { header: 'unreadable' })).status).toBe(402);
  await until('the cost of a sale is counted', async () =>
    /^relayer_cost_per_payment_usdc_count\{/m.test((await seller.service.get('/metrics')).body),
  );
  await recordMetrics(transcript, seller);
}

describe('with the Gateway off', () => {
  let documents: Transcript;
  beforeAll(async () => {
    // One open payment per payer, so that a second one is refused.
    shop = await openShop(network, { PAYER_MAX_OPEN: '1' });
    // The facilitator's descriptor counts the claims of the tests.
    documents = openTranscript(network);
    await recordDocuments(documents, shop);
  });
  afterAll(async () => {
    await shop.service.stop();
  });

  test('the documents for machines are the recorded ones', () => isRecorded('documents', documents));

  test.each([
    ['the manifest lists the recorded routes', 'manifest', recordManifest],
    ['/readyz names the recorded checks', 'readiness', recordReadiness],
    ['an unpaid request of a USDC route gets the recorded challenge', 'usdc-unpaid', recordUsdcUnpaid],
    ['an unreadable payment gets the recorded refusal, parameters or not', 'usdc-unreadable', recordUnreadable],
    ['a payment in USDC that is not taken gets the recorded reason', 'usdc-refusals', recordUsdcRefusals],
    ['a sale in USDC, its redelivery and its lookup get the recorded answers', 'usdc-sales', recordUsdcSales],
    ['a failing handler and a payment under way get the recorded answers', 'usdc-failures', recordUsdcFailures],
    ['an unpaid request of a Lightning route gets the recorded offer', 'lightning-unpaid', recordLightningUnpaid],
    [
      'a sale over Lightning, its redelivery and its lookup get the recorded answers',
      'lightning-sales',
      recordLightningSales,
    ],
    ['a proof that is not taken gets the recorded reason', 'lightning-refusals', recordLightningRefusals],
    ['the tools are listed as recorded', 'mcp-tools', recordTools],
    ['a tool call in USDC gets the recorded results', 'mcp-usdc', recordUsdcTools],
    ['a tool call over Lightning gets the recorded results', 'mcp-lightning', recordLightningTools],
    ['/metrics has the recorded names and labels', 'metrics', recordMetricsOfASale],
  ] as const)('%s', (_title, name, record) => unchanged(name, record));
});

test('an expired proof and a service without a node give the recorded answers', () =>
  unchanged('lightning-away', (transcript) => recordLightningAway(transcript, network)));

test('with MPP on, a sale, its redelivery, its lookup and refusals get the recorded answers', async () => {
  shop = await openShop(network, { MPP: 'on' });
  await unchanged('mpp', recordMpp);
  await shop.service.stop();
});

test('a settlement that is not known in time gets the recorded answers', async () => {
  // It stops for the relayer, so that the relayer never replaces the transaction that is recorded as late.
  const clock = createStillClock();
  shop = await openShop(network, { SETTLE_WAIT_MS: '1000', RECONCILE_INTERVAL_MS: '200' }, clock);
  await unchanged('usdc-unknown', (transcript) => recordUnknown(transcript, shop, clock));
  await shop.service.stop();
});

describe('with the Gateway on', () => {
  let gateway: GatewayStandIn;
  beforeAll(async () => {
    gateway = await startGatewayStandIn(network.chainId, WALLET);
    const env = { GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: WALLET };
    shop = await openShop(network, { ...env, RECONCILE_INTERVAL_MS: '200' });
  });
  afterAll(async () => {
    await shop.service.stop();
    await gateway.stop();
  });

  test.each([
    ['the manifest lists the recorded routes', 'gateway-manifest', recordManifest],
    ['/readyz names the recorded checks', 'gateway-readiness', recordReadiness],
    ['an unpaid request gets the recorded challenge', 'gateway-unpaid', recordChallenges],
    ['the tools are listed as they are without it', 'mcp-tools', recordTools],
  ] as const)('%s', (_title, name, record) => unchanged(name, record));

  test('a sale through the Gateway, its lookup and its refusals get the recorded answers', () =>
    unchanged('gateway-sales', (transcript) => recordGateway(transcript, shop, gateway)));

  test('/metrics has the same names and labels as without it', () => unchanged('metrics', recordMetricsOfASale));
});
