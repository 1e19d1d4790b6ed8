import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createHeads } from '../../../src/chain/rpc/heads.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import type { MinedCost } from '../../../src/payment/relayer/gas.ts';
import { createRelayer } from '../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import type { Authorization, Intent, Outcome } from '../../../src/payment/settler.ts';
import { createChainCheck, createTokenWatch } from '../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { openClient } from '../../support/chain/client.ts';
import { type FaultProxy, startFaultProxy } from '../../support/chain/fault-proxy.ts';
import { createStillClock } from '../../support/still-clock.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';
import { newOutsider } from '../../support/usdc/outsider.ts';
import { newKey, type Requirement, signAuthorization } from '../../support/usdc/payments.ts';
import { randomIntent } from '../../support/usdc/token-node.ts';

// The relayer on a real node with Arc's block gas, contracts and fees: how many transactions it makes of waiting payments, and their cost.

const PRICE = 1000n;
/** Burns all the gas that it is given. */
const ENDLESS = '0x5b600056';
const VALID_SECONDS = 600;
let network: EmbeddedNetwork;
let proxy: FaultProxy;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startFaultProxy(network.rpcUrl);
});
afterEach(async () => {
  proxy.play({});
  for (const close of closing.splice(0)) await close();
});
afterAll(async () => {
  await proxy.stop();
  await network.stop();
});

interface Setting {
  blockSharePercent?: number;
  isCareful?: boolean;
  clock?: Clock;
}

async function open({ blockSharePercent = 60, isCareful = false, clock = systemClock }: Setting = {}) {
  const { usdc, chainId } = network;
  const [account, seller] = [createAccount(), createAccount().address];
  await network.fundNative(account.address, 10n ** 20n);
  const chain = openClient({ rpcUrls: [proxy.url], chainId, timeoutMs: 60_000 });
  const wallet = createWallet(account.privateKey, chainId);
  const heads = createHeads([network.wsUrl], { warn: () => {} });
  const token = createTokenWatch({
    chain,
    usdc,
    payTo: seller,
    sender: () => wallet.address,
    clock,
    log: { error: () => {}, info: () => {} },
  });
  const mined: MinedCost[] = [];
  const noted: string[][] = [];
  const relayer = createRelayer({
    chain,
    usdc,
    wallet,
    clock,
    pollMs: 200,
    gatherMs: 100,
    blockSharePercent,
    stallMs: 20_000,
    check: createChainCheck(chain, usdc, () => wallet.address),
    evidence: createEvidence(chain, usdc),
    token,
    isCareful: () => isCareful,
    onHead: heads.listen,
    noteBroadcast: async (entries) => {
      noted.push(entries.map(({ id }) => id));
      return new Set(entries.map(({ id }) => id));
    },
    onMined: (cost) => mined.push(cost),
    log: { warn: () => {} },
  });
  closing.push(async () => {
    await relayer.stop();
    heads.close();
    await chain.close();
  });
  const terms = { amount: String(PRICE), payTo: seller, asset: usdc, network: `eip155:${chainId}` };
  const requirement = { ...terms, scheme: 'exact', maxTimeoutSeconds: 604_900, extra: {} } satisfies Requirement;

  async function newIntent(
    units = 5n * PRICE,
    overrides: Parameters<typeof signAuthorization>[2] = {},
  ): Promise<Intent & { privateKey: Uint8Array; address: `0x${string}` }> {
    const { privateKey, address } = newKey();
    await network.fundUsdc(address, units);
    const authorization: Authorization = signAuthorization(privateKey, requirement, overrides);
    return { ...randomIntent({ authorization }), privateKey, address };
  }
  const someIntents = async (count: number) => {
    const intents = [];
    for (let made = 0; made < count; made++) intents.push(await newIntent());
    return intents;
  };
  const settle = (intents: readonly Intent[]): Promise<Outcome[]> => Promise.all(relayer.settle(intents));
  const earned = () => balanceOf(network, seller);
  return { relayer, token, wallet, mined, noted, newIntent, someIntents, settle, earned };
}

const kinds = (outcomes: readonly Outcome[]) => outcomes.map(({ kind }) => kind);
const SETTLED = 'settled';
const FAILED = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' };
const count = (all: readonly MinedCost[], of: (cost: MinedCost) => number) =>
  all.reduce((sum, cost) => sum + of(cost), 0);

describe('waiting payments', () => {
  test('a hundred payments are settled in one transaction, at less than 0.8 of the gas of a lone one each', async () => {
    const { settle, someIntents, mined, earned } = await open();
    const [lone, ...hundred] = await someIntents(101);
    expect(kinds(await settle(lone ? [lone] : []))).toEqual([SETTLED]);
    const alone = Number(mined[0]?.gasUsed);
    mined.length = 0;
    expect(kinds(await settle(hundred))).toEqual(Array(100).fill(SETTLED));
    expect(mined.map(({ payments, settled }) => [payments, settled])).toEqual([[100, 100]]);
    const each = count(mined, ({ gasUsed }) => Number(gasUsed)) / 100;
    process.stderr.write(`gas: ${alone} alone, ${each} each of a hundred: ${(each / alone).toFixed(3)}\n`);
    expect(each / alone).toBeLessThanOrEqual(0.8);
    expect(await earned()).toBe(101n * PRICE);
  });

  test('more payments than fit one transaction go in several, each within its share of the block', async () => {
    const { settle, someIntents, mined, earned } = await open({ blockSharePercent: 10 });
    expect(kinds(await settle(await someIntents(60)))).toEqual(Array(60).fill(SETTLED));
    expect(mined.length).toBeGreaterThan(2);
    expect(mined.length).toBeLessThan(6);
    expect(mined.every(({ gasUsed }) => gasUsed <= 3_000_000n)).toBe(true);
    expect(await earned()).toBe(60n * PRICE);
  });
});

describe('a payment that comes alone', () => {
  test('goes out at once: noted, then sent, with no other request before', async () => {
    const clock = createStillClock();
    const { settle, someIntents, mined, noted } = await open({ clock });
    const [first, second] = await someIntents(2);
    await settle(first ? [first] : []);
    // A transaction that is late is looked up and sent again.
    clock.stop();
    const calls: string[] = [];
    proxy.play({
      fate: ({ method }) => {
        calls.push(method);
        return 'pass';
      },
    });
    expect(kinds(await settle(second ? [second] : []))).toEqual([SETTLED]);
    // The newest block may be read meanwhile, when the last reading is not fresh.
    const asked = calls.filter((method) => method !== 'eth_getBlockByNumber');
    expect(asked[0]).toBe('eth_sendRawTransaction');
    expect(new Set(asked.slice(1))).toEqual(new Set(['eth_getTransactionReceipt']));
    expect(noted).toEqual([[first?.id], [second?.id]]);
    expect(mined.every(({ payments }) => payments === 1)).toBe(true);
  });
});

describe('a payment that would fail', () => {
  test('is left out of the batch, and costs no gas', async () => {
    const { settle, someIntents, newIntent, mined, earned } = await open();
    const [good, poor] = [await someIntents(9), await newIntent(PRICE - 1n)];
    const outcomes = await settle([...good.slice(0, 4), poor, ...good.slice(4)]);
    expect(outcomes[4]).toEqual(FAILED);
    expect(kinds(outcomes).filter((kind) => kind === SETTLED)).toHaveLength(9);
    expect(mined.map(({ payments, settled }) => [payments, settled])).toEqual([[9, 9]]);
    expect(await earned()).toBe(9n * PRICE);
  });

  test('as one of five hundred over balances that moved away costs no gas either', async () => {
    const { settle, newIntent, mined } = await open();
    const { privateKey, authorization } = await newIntent(0n);
    const requirement = {
      amount: '1000',
      payTo: bytesToHex(authorization.to),
      asset: network.usdc,
      network: `eip155:${network.chainId}`,
    };
    const terms = { ...requirement, scheme: 'exact', maxTimeoutSeconds: 600, extra: {} };
    const all = Array.from({ length: 500 }, () =>
      randomIntent({ authorization: signAuthorization(privateKey, terms) }),
    );
    expect(await settle(all)).toEqual(Array(500).fill(FAILED));
    expect(mined).toEqual([]);
  });
});

describe('a lone payment of an account with code', () => {
  test('is simulated first, and costs nothing when it would fail', async () => {
    const { settle, newIntent, mined, noted } = await open();
    const wallet = { ...(await newIntent()), hasCode: true };
    await network.rpc('anvil_setCode', [wallet.address, ENDLESS]);
    expect(await settle([wallet])).toEqual([FAILED]);
    expect([mined, noted]).toEqual([[], []]);
  });

  test('is settled when the simulation succeeds', async () => {
    const { settle, newIntent, mined, earned } = await open();
    expect(kinds(await settle([{ ...(await newIntent()), hasCode: true }]))).toEqual([SETTLED]);
    expect([mined.length, await earned()]).toEqual([1, PRICE]);
  });

  test('goes in a transaction of its own, beside others that share one', async () => {
    const { settle, newIntent, someIntents, mined } = await open();
    const wallet = { ...(await newIntent()), hasCode: true };
    expect(kinds(await settle([...(await someIntents(3)), wallet, ...(await someIntents(3))]))).toEqual(
      Array(7).fill(SETTLED),
    );
    expect(mined.map(({ payments }) => payments).sort()).toEqual([1, 6]);
  });
});

describe('after failures have cost enough today', () => {
  test('a plain account’s lone payment is simulated too, and costs nothing when it would fail', async () => {
    const { settle, newIntent, mined, relayer } = await open({ isCareful: true });
    const [poor, grown, good] = [await newIntent(PRICE - 1n), await newIntent(), await newIntent()];
    await network.rpc('anvil_setCode', [grown.address, ENDLESS]);
    expect(await settle([poor])).toEqual([FAILED]);
    expect(await settle([grown])).toEqual([FAILED]);
    expect(mined).toEqual([]);
    expect(kinds(await settle([good]))).toEqual([SETTLED]);
    expect(relayer.refuses?.(poor.authorization.from)).toBeNull();
  });
});

describe('an expired authorization', () => {
  test('is not sent, and fails by the chain’s own time; the others are settled without it', async () => {
    const { settle, newIntent, someIntents, mined, noted, earned } = await open();
    const now = BigInt(Math.floor(Date.now() / 1000));
    const over = await newIntent(5n * PRICE, { validBefore: now - 10n });
    const [outcome, ...others] = await settle([over, ...(await someIntents(2))]);
    expect(outcome).toEqual({ kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' });
    expect(kinds(others)).toEqual([SETTLED, SETTLED]);
    expect(noted.flat()).not.toContain(over.id);
    expect(mined.every(({ failedWei }) => failedWei === 0n)).toBe(true);
    expect(await earned()).toBe(2n * PRICE);
  });

  test('that a third party sent in time is settled', async () => {
    const clock = createAheadClock();
    const { settle, newIntent, mined, earned } = await open({ clock });
    const intent = await newIntent(5n * PRICE, { validBefore: BigInt(Math.floor(Date.now() / 1000) + VALID_SECONDS) });
    await (await newOutsider(network)).submit(intent.authorization);
    expect(await earned()).toBe(PRICE);
    // For the chain and for us.
    await network.rpc('evm_increaseTime', [VALID_SECONDS]);
    await network.mine();
    clock.aheadMs = VALID_SECONDS * 1000;
    expect(kinds(await settle([intent]))).toEqual([SETTLED]);
    expect(mined).toEqual([]);
  });
});

describe('a payer that gets code after the simulation', () => {
  test('makes one batch fail: the others are settled, the payer is refused for a day, and no more gas is wasted', async () => {
    const { relayer, settle, someIntents, newIntent, mined, earned } = await open();
    const [good, gasGriefer] = [await someIntents(11), await newIntent()];
    let grown = false;
    proxy.play({
      before: async ({ method }) => {
        if (method !== 'eth_sendRawTransaction' || grown) return;
        grown = true;
        await network.rpc('anvil_setCode', [gasGriefer.address, ENDLESS]);
      },
    });
    const outcomes = await settle([...good.slice(0, 6), gasGriefer, ...good.slice(6)]);
    expect(outcomes[6]).toEqual(FAILED);
    expect(kinds(outcomes).filter((kind) => kind === SETTLED)).toHaveLength(11);
    expect(await earned()).toBe(11n * PRICE);
    expect(mined[0]).toMatchObject({ payments: 12, settled: 0, failedWei: mined[0]?.wei });
    expect(mined.slice(1).every(({ payments, settled }) => payments === settled)).toBe(true);
    expect(mined.slice(1).every(({ failedWei }) => failedWei === 0n)).toBe(true);
    expect(relayer.refuses?.(gasGriefer.authorization.from)).toBe('its payments cost gas and move nothing');
    expect(relayer.refuses?.(good[0]?.authorization.from ?? new Uint8Array())).toBeNull();
  });

  test('burns at most one payment’s gas when it is alone, and its other waiting payments are released', async () => {
    const { relayer, settle, newIntent, mined } = await open();
    const gasGriefer = await newIntent();
    await network.rpc('anvil_setCode', [gasGriefer.address, ENDLESS]);
    const { id: _, ...rest } = gasGriefer;
    expect(await settle([gasGriefer])).toEqual([FAILED]);
    expect(mined.map(({ gasUsed, settled }) => [gasUsed > 270_000n && gasUsed <= 300_000n, settled])).toEqual([
      [true, 0],
    ]);
    expect(relayer.refuses?.(gasGriefer.authorization.from)).not.toBeNull();
    const next = { ...rest, id: 'next', authorization: { ...gasGriefer.authorization, nonce: randomBytes(32) } };
    expect(await settle([next])).toEqual([FAILED]);
    expect(mined).toHaveLength(1);
  });
});

test('a transaction with our nonce that this process does not know, such as one from before a crash, is replaced at a higher fee', async () => {
  const { wallet, settle, someIntents, earned } = await open();
  await network.pauseMining();
  const price = { maxFeePerGas: 45n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 8n };
  const forgotten = wallet.sign({ to: wallet.address, data: '0x', gas: 50_000n, nonce: 0, ...price });
  await network.rpc('eth_sendRawTransaction', [forgotten.raw]);
  let sent = 0;
  proxy.play({
    after: async ({ method }) => {
      if (method === 'eth_sendRawTransaction') sent++;
    },
  });
  const ends = settle(await someIntents(2));
  // More than two where a pause made the second one late, so that it was sent again.
  await vi.waitFor(() => expect(sent).toBeGreaterThanOrEqual(2), { timeout: 60_000 });
  await network.resumeMining();
  expect(kinds(await ends)).toEqual([SETTLED, SETTLED]);
  expect(await network.rpc('eth_getTransactionReceipt', [forgotten.hash])).toBeNull();
  expect(await earned()).toBe(2n * PRICE);
});

test('open settlements have an expected cost, ended ones have none', async () => {
  const { relayer, settle, someIntents } = await open();
  await settle(await someIntents(1));
  expect(relayer.expectedWei()).toBe(0n);
  await network.pauseMining();
  const ends = settle(await someIntents(3));
  expect(Number(relayer.expectedWei()) / 1e18).toBeGreaterThan(0.003);
  expect(Number(relayer.expectedWei()) / 1e18).toBeLessThan(0.02);
  await network.resumeMining();
  await ends;
  expect(relayer.expectedWei()).toBe(0n);
});
