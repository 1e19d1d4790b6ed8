import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { channelBuyer, findChannelEntry } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { payFor, presentProof } from '../../support/lightning/lightning-buyer.ts';
import { connectClient, demandOf } from '../../support/service/mcp.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, newBuyer, present } from '../../support/usdc/buyer.ts';
import { challengeIn, newMppBuyer, presentMpp } from '../../support/usdc/mpp-buyer.ts';

// EXACT_FROM_USD and ROUTES_OFF change what is offered after a restart. A payment from before is judged by its row.

const cheap = moodyEndpoint('/test/cheap', '0.0005');
const dear = moodyEndpoint('/test/dear', '0.002');
const catalogue = [cheap.endpoint, dear.endpoint];
const CHEAP = '/v1/paid/test/cheap';
const MPP_CHEAP = '/v1/mpp/test/cheap';
const SATS_CHEAP = '/v1/lightning/test/cheap';

let network: EmbeddedNetwork;
let folder: string;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true, blockTimeMs: 100 });
  folder = mkdtempSync(join(tmpdir(), 'percall-offered-'));
});
afterEach(() => service?.stop());
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await network.stop();
});

/** Starts the service over the same ledger, at the same public address, with other offers. */
async function restart(env: Record<string, string> = {}): Promise<void> {
  const same = {
    ...embeddedEnvironment(network, { channels: true }),
    PUBLIC_ORIGIN: 'http://percall.example',
    MPP: 'on',
    COLLECTOR: 'off',
    RECONCILE_INTERVAL_MS: '200',
  };
  service = await startService(network, { env: { ...same, ...env }, catalogue, dataDir: folder });
  await untilChannelsAreOffered(`${service.origin}/v1/paid/test/dear`);
}

const schemesAt = async (path: string) => {
  const { accepts } = decoded(await service.get(path), 'payment-required') as { accepts: { scheme: string }[] };
  return accepts.map(({ scheme }) => scheme);
};
const json = async (path: string) => JSON.parse((await service.get(path)).body);

/** One payment that has bought an answer and one that has bought nothing yet, for each way to pay. */
async function buyBefore() {
  await restart();
  const { origin } = service;
  const [buyer, mppBuyer, payer] = [await newBuyer(network), await newMppBuyer(network), await newBuyer(network)];
  const [plain, unused] = [await buyer.sign(origin, CHEAP), await buyer.sign(origin, CHEAP)];
  const [mpp, mppUnused] = [await mppBuyer.sign(origin, MPP_CHEAP), await mppBuyer.sign(origin, MPP_CHEAP)];
  const entry = findChannelEntry(String((await service.get(CHEAP)).headers['payment-required']));
  if (!entry) throw new Error('no entry for channels');
  const channel = channelBuyer(payer.privateKey, entry);
  const deposit = { header: channel.deposit(1_000_000n, 500n) };
  const invoice = await payFor(network.lightning?.pay ?? fail, origin, SATS_CHEAP);
  const bought = {
    plain: await present(origin, CHEAP, plain),
    mpp: await presentMpp(origin, MPP_CHEAP, mpp),
    channel: await present(origin, CHEAP, deposit),
  };
  for (const { status } of Object.values(bought)) expect(status).toBe(200);
  await service.stop();
  return { buyer, mppBuyer, plain, unused, mpp, mppUnused, channel, deposit, invoice, bought };
}

function fail(): never {
  throw new Error('the network has no Lightning nodes');
}

describe('below EXACT_FROM_USD', () => {
  test('the plain rail is not offered, a new payment of it is refused, and one from before is judged by its row', async () => {
    const before = await buyBefore();
    await restart({ EXACT_FROM_USD: '0.001' });
    const { origin } = service;
    expect(await schemesAt(CHEAP)).toEqual(['batch-settlement']);
    expect(await schemesAt('/v1/paid/test/dear')).toEqual(['exact', 'batch-settlement']);
    const runs = cheap.runs();

    const again = await present(origin, CHEAP, before.plain);
    expect([again.status, again.body]).toEqual([200, before.bought.plain.body]);
    const mppAgain = await presentMpp(origin, MPP_CHEAP, before.mpp);
    expect([mppAgain.status, mppAgain.body]).toEqual([200, before.bought.mpp.body]);

    const left = await balanceOf(network, before.buyer.address);
    const refused = await present(origin, CHEAP, before.unused);
    expect(refused.status).toBe(402);
    expect(decoded(refused, 'payment-required')).toMatchObject({
      error: 'No matching payment requirements',
      accepts: [{ scheme: 'batch-settlement' }],
    });
    expect(JSON.parse(refused.body).hint).toContain('not sold for a lone transfer');
    expect(await balanceOf(network, before.buyer.address)).toBe(left);
    expect(cheap.runs()).toBe(runs);

    const voucher = await present(origin, CHEAP, { header: before.channel.voucher(1000n) });
    expect([voucher.status, cheap.runs()]).toEqual([200, runs + 1]);
  });

  test('MPP, tools and documents follow', async () => {
    await restart();
    const unused = await (await newMppBuyer(network)).sign(service.origin, MPP_CHEAP);
    await service.stop();
    await restart({ EXACT_FROM_USD: '0.001' });
    const runs = cheap.runs();
    expect((await service.get(MPP_CHEAP)).status).toBe(404);
    const late = await presentMpp(service.origin, MPP_CHEAP, unused);
    expect([late.status, JSON.parse(late.body).charged, cheap.runs()]).toEqual([404, false, runs]);
    expect(challengeIn(await service.get('/v1/mpp/test/dear')).method).toBe('evm');

    const mcp = await connectClient(service.origin);
    const schemes = async (tool: string) => demandOf(await mcp.call(tool)).accepts.map(({ scheme }) => scheme);
    expect(await schemes('paid_test_cheap')).toEqual(['batch-settlement']);
    expect(await schemes('paid_test_dear')).toEqual(['exact', 'batch-settlement']);
    await mcp.close();

    const { paths } = await json('/openapi.json');
    const protocols = paths[CHEAP].get['x-payment-info'].protocols.map((one: { x402: { scheme: string } }) => one.x402);
    expect(protocols).toEqual([expect.objectContaining({ scheme: 'batch-settlement', amount: '500' })]);
    expect(Object.keys(paths).filter((path) => path.startsWith('/v1/mpp/'))).toEqual(['/v1/mpp/test/dear']);
    const list = await json('/v1/paid');
    expect(list.scheme).toBe('exact');
    expect(list.routes[0].accepts).toEqual([expect.objectContaining({ scheme: 'batch-settlement', amount: '500' })]);
    const { results } = await json('/v1/market/search?source=own');
    const rails = Object.fromEntries(results.map(({ url, rail }: { url: string; rail: string }) => [url, rail]));
    expect(rails).toMatchObject({
      [`http://percall.example${CHEAP}`]: 'channel',
      'http://percall.example/v1/paid/test/dear': 'direct',
    });
  });
});

describe('with EXACT=off', () => {
  test('channels alone are offered, and the price list names their scheme', async () => {
    await restart({ EXACT: 'off' });
    expect(await schemesAt('/v1/paid/test/dear')).toEqual(['batch-settlement']);
    expect((await json('/v1/paid')).scheme).toBe('batch-settlement');
    expect((await service.get('/', { headers: { accept: 'text/html' } })).body).not.toContain('id="pay-typescript"');
  });
});

describe('a route in ROUTES_OFF', () => {
  test('sells nothing new on any rail, and answers whoever paid before', async () => {
    const before = await buyBefore();
    await restart({ ROUTES_OFF: 'test/cheap' });
    const { origin } = service;
    for (const path of [CHEAP, MPP_CHEAP, SATS_CHEAP]) {
      expect([path, (await service.get(path)).status]).toEqual([path, 404]);
    }
    expect((await service.get(CHEAP, { method: 'HEAD' })).status).toBe(404);
    const runs = cheap.runs();

    const again = await present(origin, CHEAP, before.plain);
    expect([again.status, again.body]).toEqual([200, before.bought.plain.body]);
    const mppAgain = await presentMpp(origin, MPP_CHEAP, before.mpp);
    expect([mppAgain.status, mppAgain.body]).toEqual([200, before.bought.mpp.body]);
    const channelAgain = await present(origin, CHEAP, before.deposit);
    expect([channelAgain.status, channelAgain.body]).toEqual([200, before.bought.channel.body]);
    expect(cheap.runs()).toBe(runs);

    const left = await balanceOf(network, before.buyer.address);
    for (const [path, answer] of [
      [CHEAP, await present(origin, CHEAP, before.unused)],
      [MPP_CHEAP, await presentMpp(origin, MPP_CHEAP, before.mppUnused)],
      ['a voucher', await present(origin, CHEAP, { header: before.channel.voucher(1000n) })],
    ] as const) {
      const { code, charged } = JSON.parse(answer.body);
      expect([path, answer.status, code, charged]).toEqual([path, 404, 'no_such_route', false]);
    }
    expect([await balanceOf(network, before.buyer.address), cheap.runs()]).toEqual([left, runs]);

    const paid = await presentProof(origin, SATS_CHEAP, before.invoice);
    expect([paid.status, JSON.parse(paid.body).tag]).toEqual([200, 'none']);
  });
});
