import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import type { OpenChainClient } from '../../src/chain/rpc/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { bytesToHex } from '../../src/lib/hex.ts';
import { ALREADY_USED, type Authorization, REVERTED } from '../../src/payment/settler.ts';
import { createEvidence } from '../../src/payment/usdc/evidence.ts';
import { createHttpFacilitator } from '../../src/payment/usdc/facilitator.ts';
import { createRemoteSettler } from '../../src/payment/usdc/facilitator-settler.ts';
import { gatewayExtra } from '../../src/payment/usdc/gateway.ts';
import { createGatewayClient, createGatewayEvidence } from '../../src/payment/usdc/gateway-client.ts';
import { createUpstreams } from '../../src/upstream/client/client.ts';
import { openClient } from '../support/chain/client.ts';
import { quiet } from '../support/quiet.ts';
import { seed, seededRandom } from '../support/random.ts';
import { countRunningTime } from '../support/running-time.ts';
import { balanceOf, newBuyer } from '../support/usdc/buyer.ts';
import { signForGateway } from '../support/usdc/gateway-payment.ts';
import { GATEWAY_FAULTS, type GatewayStandIn, startGatewayStandIn } from '../support/usdc/gateway-stand-in.ts';
import { FACILITATOR_FAULTS, type LocalFacilitator, startLocalFacilitator } from '../support/usdc/local-facilitator.ts';
import { cancelCalldata, newOutsider } from '../support/usdc/outsider.ts';
import { newKey, type Requirement, signAuthorization } from '../support/usdc/payments.ts';
import { openSales, type Sales, TIMEOUT_MS, WAIT_MS } from '../support/usdc/remote-sales.ts';
import { randomIntent } from '../support/usdc/token-node.ts';

/** The first seed sells to every kind of payer, so that no kind is left to chance, and the quick lane needs no other. */
const SEEDS = process.env.SLOW ? 100 : 1;
/** How often the seeds of one fault run until it has come. Then the quick lane does not miss it by chance. */
const TRIES = 20;
/** Seeds that run at the same time. Each has some payments under way. */
const AT_ONCE = process.env.SLOW ? 20 : 5;
const TEST_MS = process.env.SLOW ? 900_000 : 300_000;
const WALLET = `0x${'77'.repeat(20)}` as const;
const clock = systemClock;

let network: EmbeddedNetwork;
let chain: OpenChainClient;
countRunningTime();
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  chain = openClient({ rpcUrls: [network.rpcUrl], chainId: network.chainId, timeoutMs: 30_000 });
});
afterAll(async () => {
  await chain.close();
  await network.stop();
});

const caip2 = () => `eip155:${network.chainId}` as const;
const requirement = (amount: bigint): Requirement => ({
  scheme: 'exact',
  network: caip2(),
  amount: amount.toString(),
  asset: network.usdc,
  payTo: network.seller,
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2' },
});

const termsWith = (extra: Record<string, unknown>) => ({
  network: caip2(),
  usdc: network.usdc,
  extra,
  publicOrigin: 'http://a.test',
});

type Parts = Parameters<typeof createRemoteSettler>[1];
/** A settler that asks no contract, and whose unsettled payments nobody counts. */
const openSettler = (parts: Omit<Parts, 'isUsed' | 'hasCode' | 'onUnsettled'>) =>
  createRemoteSettler({ clock, log: quiet }, { isUsed: null, hasCode: null, onUnsettled: () => {}, ...parts });

/** How often the chain moved an authorization's value from its payer to the seller. Every payer here pays once. */
async function transfersOf({ from, value }: Authorization): Promise<number> {
  const topic = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
  const transfer = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const filter = { address: network.usdc, topics: [transfer, topic(bytesToHex(from)), topic(network.seller)] };
  const logs = await network.rpc<{ data: string }[]>('eth_getLogs', [{ ...filter, fromBlock: '0x0' }]);
  return logs.filter(({ data }) => BigInt(data) === value).length;
}

/** Runs every seed of a fault, some at the same time. */
async function forEverySeed(name: string, run: (random: () => number, number: number) => Promise<void>): Promise<void> {
  for (let first = 0; first < SEEDS; first += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, SEEDS - first) }, (_, index) => first + index);
    await Promise.all(
      numbers.map((number) =>
        run(seededRandom(`${name}/${number}`), number).catch((cause) => {
          throw new Error(`SEED=${seed}, run ${number} of "${name}"`, { cause });
        }),
      ),
    );
  }
}

describe('a facilitator', () => {
  let facilitator: LocalFacilitator;
  let sales: Sales;
  beforeAll(async () => {
    facilitator = await startLocalFacilitator(network, 'secret-token');
    const evidence = createEvidence(chain, network.usdc);
    sales = openSales(caip2(), network.usdc, (noteBroadcast) =>
      openSettler({
        usedBefore: null,
        client: createHttpFacilitator({
          url: facilitator.url,
          token: 'secret-token',
          timeoutMs: TIMEOUT_MS,
          network: caip2(),
          userAgent: 'percall/test',
        }),
        evidence,
        terms: termsWith({ name: 'USDC', version: '2' }),
        noteBroadcast,
        pollMs: 50,
        watchMs: WAIT_MS,
        stallMs: WAIT_MS,
      }),
    );
  });
  afterAll(async () => {
    await sales.close();
    await facilitator.stop();
  });

  /** Disturbances that are not the facilitator's fault: the payer or a third party used the authorization first. */
  const TWISTS = ['none', 'sent by another', 'cancelled'] as const;
  type Twist = (typeof TWISTS)[number];

  /** Most payments are not disturbed. */
  const draw = (random: () => number): Twist =>
    random() < 0.6 ? 'none' : random() < 0.5 ? 'sent by another' : 'cancelled';

  async function sellOne(random: () => number, twist: Twist) {
    const value = 500n + BigInt(Math.floor(random() * 5000));
    const buyer = await newBuyer(network, 2n * value);
    const authorization = signAuthorization(buyer.privateKey, requirement(value));
    const fromBlock = Number(await network.rpc<string>('eth_blockNumber', []));
    if (twist !== 'none') {
      const outsider = await newOutsider(network);
      if (twist === 'cancelled') await outsider.send(cancelCalldata(network, buyer.privateKey, authorization));
      else await outsider.submit(authorization);
    }
    const sold = await sales.sell(authorization, fromBlock);
    expect(['settled', 'failed', 'unknown']).toContain(sold?.state);
    // A reported failure is final: the buyer signs a new payment after it.
    if (sold?.state === 'failed') expect(await transfersOf(authorization)).toBe(0);
    return { authorization, twist, value, fromBlock };
  }

  test.each(FACILITATOR_FAULTS)(
    'that %s charges no payment twice, and every payment ends as the chain shows',
    async (fault) => {
      facilitator.fault(fault);
      const before = await balanceOf(network, network.seller);
      let settled = 0n;
      const sellAndCheck = async (random: () => number, number: number): Promise<void> => {
        const count = 1 + Math.floor(random() * 3);
        const twists = number === 0 ? TWISTS : Array.from({ length: count }, () => draw(random));
        const sold = await Promise.all(twists.map((twist) => sellOne(random, twist)));
        await sales.resolveAll();
        for (const { authorization, twist, value, fromBlock } of sold) {
          let row = await sales.row(authorization);
          if (twist === 'none' && fault === 'refuses') {
            expect([row?.state, row?.reason]).toEqual(['failed', REVERTED]);
            // The authorization is still valid.
            row = await sales.sell(authorization, fromBlock);
            if (row?.state === 'unknown') {
              await sales.resolveAll();
              row = await sales.row(authorization);
            }
          }
          expect(row?.state).toBe(twist === 'cancelled' ? 'failed' : 'settled');
          expect(await transfersOf(authorization)).toBe(twist === 'cancelled' ? 0 : 1);
          expect(row?.signature).toBeNull();
          if (row?.state === 'settled') settled += value;
        }
      };
      const isReplaced = () => fault !== 'has its transaction replaced' || facilitator.replaced() > 0;
      await forEverySeed(fault, sellAndCheck);
      // A block between a transaction and the one in its place leaves nothing to replace.
      for (let tries = 1; tries < TRIES && !isReplaced(); tries++) await forEverySeed(fault, sellAndCheck);
      expect(await balanceOf(network, network.seller)).toBe(before + settled);
      expect(isReplaced()).toBe(true);
    },
    TEST_MS,
  );

  test('that refuses a payment which it may have sent before does not end the payment', async () => {
    facilitator.fault('hangs after');
    const buyer = await newBuyer(network, 10_000n);
    const authorization = signAuthorization(buyer.privateKey, requirement(1000n));
    await network.pauseMining();
    expect((await sales.sell(authorization))?.state).toBe('unknown');
    facilitator.fault('refuses');
    const client = { settle: async () => ({ kind: 'refused', reason: 'insufficient_funds' }) as const };
    const evidence = createEvidence(chain, network.usdc);
    const settler = openSettler({
      client,
      evidence,
      terms: termsWith({}),
      pollMs: 20,
      watchMs: 100,
      stallMs: 100,
      usedBefore: null,
      noteBroadcast: async (entries) => new Set(entries.map(({ id }) => id)),
    });
    const resumed = randomIntent({ authorization, fromBlock: 0, broadcast: true });
    expect(await Promise.all(settler.settle([resumed]))).toEqual([{ kind: 'unknown' }]);
    const fresh = randomIntent({ authorization, fromBlock: 0 });
    expect(await Promise.all(settler.settle([fresh]))).toEqual([{ kind: 'failed', reason: REVERTED }]);
    await network.resumeMining();
    facilitator.fault(null);
    await sales.resolveAll();
    expect((await sales.row(authorization))?.state).toBe('settled');
    expect(await transfersOf(authorization)).toBe(1);
  });
});

describe('the Gateway', () => {
  let gateway: GatewayStandIn;
  let sales: Sales;
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test' });
  beforeAll(async () => {
    // The Gateway settles off the chain, and empty blocks cost as much as its tests.
    await network.pauseMining();
    gateway = await startGatewayStandIn(network.chainId, WALLET);
    const upstream = upstreams.open({
      name: 'gateway',
      timeoutMs: TIMEOUT_MS,
      maxBytes: 65_536,
      concurrency: 32,
      retries: 0,
    });
    const client = createGatewayClient({ upstream, url: gateway.url, token: null, network: caip2() });
    const evidence = createGatewayEvidence(client, caip2(), clock);
    sales = openSales(caip2(), WALLET, (noteBroadcast) =>
      openSettler({
        client,
        evidence,
        terms: termsWith(gatewayExtra(WALLET)),
        noteBroadcast,
        usedBefore: async ({ authorization }) => ((await evidence.isUsed(authorization)) ? ALREADY_USED : null),
        pollMs: 50,
        watchMs: WAIT_MS,
        stallMs: WAIT_MS,
      }),
    );
    // A third party's transfer, which must not count as ours.
    gateway.deposit(thirdParty.address, 1000n);
    await sales.sell(sign(thirdParty.privateKey, 1000n));
  });
  afterAll(async () => {
    await sales.close();
    await upstreams.close();
    await gateway.stop();
    await network.resumeMining();
  });

  const thirdParty = newKey();
  const sign = (key: Uint8Array, value: bigint) => signForGateway(key, requirement(value), WALLET);

  test.each(GATEWAY_FAULTS)(
    "that %s charges no payment twice, and every payment ends as the Gateway's transfers show",
    async (fault) => {
      gateway.fault(fault);
      const before = gateway.creditOf(network.seller);
      let settled = 0n;
      await forEverySeed(`gateway ${fault}`, async (random) => {
        const count = 1 + Math.floor(random() * 3);
        const sold = Array.from({ length: count }, () => {
          const value = 500n + BigInt(Math.floor(random() * 5000));
          const { privateKey, address } = newKey();
          gateway.deposit(address, 2n * value);
          return { value, address, authorization: sign(privateKey, value) };
        });
        await Promise.all(
          sold.map(async ({ authorization, value, address }) => {
            const row = await sales.sell(authorization);
            expect(['settled', 'failed', 'unknown']).toContain(row?.state);
            if (row?.state === 'failed') expect(gateway.depositOf(address)).toBe(2n * value);
          }),
        );
        await sales.resolveAll();
        for (const { authorization, address, value } of sold) {
          let row = await sales.row(authorization);
          if (fault === 'refuses') {
            expect([row?.state, row?.reason]).toEqual(['failed', REVERTED]);
            row = await sales.sell(authorization);
            if (row?.state === 'unknown') {
              await sales.resolveAll();
              row = await sales.row(authorization);
            }
          }
          expect(row?.state).toBe('settled');
          expect(gateway.depositOf(address)).toBe(value);
          const transfer = gateway.transfers().find(({ fromAddress }) => fromAddress === address);
          expect(Buffer.from(row?.transaction ?? []).toString('hex')).toBe(transfer?.id.replaceAll('-', ''));
          settled += value;
        }
      });
      expect(gateway.creditOf(network.seller)).toBe(before + settled);
    },
    TEST_MS,
  );
});
