import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../../../src/config.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { createRelayerMetrics } from '../../../../../src/payment/relayer/gas.ts';
import { openRelayer } from '../../../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../../../src/payment/relayer/transactions.ts';
import { createChainCheck, createTokenWatch } from '../../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../../src/payment/usdc/evidence.ts';
import { NOTHING_SPENT, type Spending } from '../../../../../src/store/ports/stores.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { openTestLedger, storesOf } from '../../../../support/ledger/fresh-ledger.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';
import { addMempool } from '../../../../support/usdc/mempool.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomIntent, startTokenNode } from '../../../../support/usdc/token-node.ts';

// The relayer with its budget, its gas watch and its metrics, over a node whose blocks the test makes.

const NOON = Date.UTC(2026, 10, 21, 12);
const TODAY = '2026-11-21';
const WEI_PER_USDC = 10n ** 18n;
/** The gas of `paidReceipt` at 20 gwei. */
const COST_WEI = 100_000n * 20_000_000_000n;
const PRIVATE_KEY = bytesToHex(randomBytes(32));
const ENV = {
  NETWORK: 'custom',
  CHAIN_ID: '5042',
  RPC_URLS: 'http://127.0.0.1:1',
  USDC_ADDRESS: USDC,
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: PRIVATE_KEY,
  WS_URLS: '',
  RELAYER_DAILY_GAS_USDC: '1',
  RELAYER_DAILY_FAILURES_USDC: '0.5',
};

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** `spent`: what was spent today before the start. */
async function bench({
  spent = NOTHING_SPENT,
  hasMetrics = true,
  income = 0n,
  env = {},
}: {
  spent?: Spending;
  hasMetrics?: boolean;
  income?: bigint;
  env?: Record<string, string>;
} = {}) {
  const node = await startTokenNode();
  const pool = addMempool(node);
  const folder = mkdtempSync(join(tmpdir(), 'open-relayer-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  const spending = storesOf(db).spending;
  await spending.add(TODAY, spent);
  const clock = createManualClock(NOON);
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 60_000 });
  const wallet = createWallet(PRIVATE_KEY, 5042);
  const registry = new Registry();
  const relayer = openRelayer({
    config: loadConfig({ ...ENV, ...env }),
    chain,
    wallet,
    spending,
    clock,
    log: quiet,
    incomeToday: async () => income,
    token: createTokenWatch({ chain, usdc: USDC, payTo: USDC, sender: () => USDC, clock, log: quiet }),
    check: createChainCheck(chain, USDC, () => wallet.address),
    evidence: createEvidence(chain, USDC),
    noteBroadcast: async (entries) => new Set(entries.map(({ id }) => id)),
    metrics: hasMetrics ? createRelayerMetrics(registry) : undefined,
  });
  closing.push(
    () => relayer.stop(),
    () => chain.close(),
    () => node.server.stop(),
    () => db.close(),
    () => rmSync(folder, { recursive: true, force: true }),
  );
  await relayer.load?.();
  /** Settles one payment of a plain account, and mines it. */
  async function settleOne() {
    const intent = randomIntent();
    const [outcome] = relayer.settle([intent]);
    const sent = await pool.arrived(pool.sent.length + 1);
    pool.mine(sent, [intent.authorization]);
    let isOver = false;
    void outcome?.then(() => {
      isOver = true;
    });
    await expect
      .poll(async () => {
        await clock.advance(1000);
        return isOver;
      })
      .toBe(true);
    return outcome;
  }
  const simulations = () =>
    node.server.bodies.flat().filter((body) => {
      const { method, params } = body as { method: string; params: [{ from?: string }] };
      return method === 'eth_call' && params[0].from === wallet.address;
    }).length;
  return { relayer, spending, registry, settleOne, simulations };
}

describe('our relayer', () => {
  test.each([true, false])(
    'counts what a settlement cost for the day, with metrics or without (%s)',
    async (hasMetrics) => {
      const { spending, registry, settleOne } = await bench({ hasMetrics });
      expect(await settleOne()).toMatchObject({ kind: 'settled', paid: 1000n });
      const counted = { wei: COST_WEI, failedWei: 0n, transactions: 1, payments: 1 };
      await expect.poll(() => spending.spentOn(TODAY)).toMatchObject(counted);
      const text = await registry.metrics();
      if (hasMetrics) expect(text).toMatch(/relayer_cost_usdc_total\S* 0\.002\b/);
    },
  );

  test('sells nothing more once the gas of the day is used up, although its balance was never read', async () => {
    expect((await bench()).relayer.unavailable()).toBeNull();
    const { relayer, settleOne } = await bench({ spent: { ...NOTHING_SPENT, wei: WEI_PER_USDC } });
    expect(relayer.unavailable()).toBe('the day’s gas budget is used up');
    // What is owed already is sent all the same.
    expect(relayer.cannotSend?.()).toBeNull();
    await expect(settleOne()).resolves.toMatchObject({ kind: 'settled', paid: 1000n });
  });

  test('may spend 5 USDC and the income of the day where nothing is set, any amount where it is off', async () => {
    const spent = { ...NOTHING_SPENT, wei: 7n * WEI_PER_USDC };
    const answers: (string | null)[] = [];
    for (const [limit, income] of [
      ['', 1_999_999n],
      ['', 2_000_001n],
      ['off', 0n],
    ] as const) {
      const { relayer } = await bench({ spent, income, env: { RELAYER_DAILY_GAS_USDC: limit } });
      answers.push(relayer.unavailable());
    }
    expect(answers).toEqual(['the day’s gas budget is used up', null, null]);
  });

  test('sends a lone payment of a plain account without a simulation, until failures have cost enough today', async () => {
    const usual = await bench();
    await usual.settleOne();
    expect([usual.simulations(), usual.relayer.refusesCode?.()]).toEqual([0, null]);
    const careful = await bench({ spent: { ...NOTHING_SPENT, wei: WEI_PER_USDC / 2n, failedWei: WEI_PER_USDC / 2n } });
    await careful.settleOne();
    expect(careful.simulations()).toBe(1);
    expect(careful.relayer.refusesCode?.()).toBe('the day’s budget for settlements that fail is used up');
  });
});
