import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createChainClient } from '../../../src/chain/rpc/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createSettleRows } from '../../../src/payment/settle-rows.ts';
import type { Intent, Outcome, Settler } from '../../../src/payment/settler.ts';
import { createLocalSettling } from '../../../src/payment/settling.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

/** Whom all rows here are of. */
const PAYER = `0x${'09'.repeat(20)}`;
const silent = { info: () => {}, warn: () => {}, error: () => {} };
const settled = (): Outcome => ({ kind: 'settled', transaction: randomBytes(32), block: 7, paid: 500n });

let folder: string;
let stores: LedgerStore[];
let serving: Ledger;
let ban: string | null;
let refusesNobody: boolean;
let isShared: boolean;
let done: string[];
let codeBan: string | null;
let unavailable: string | null;
let batched: string | null;
let hasBudget: boolean;
let spent: string | null;
let probes: Record<string, { ok: boolean }>;
let outcome: () => Outcome;
let given: Intent[];
beforeEach(() => {
  [refusesNobody, isShared, done] = [false, true, []];
  folder = mkdtempSync(join(tmpdir(), 'percall-settling-'));
  stores = [];
  serving = open('serving');
  [hasBudget, spent] = [false, null];
  [ban, codeBan, unavailable, batched, probes, outcome, given] = [null, null, null, null, {}, settled, []];
});
afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(bootId: string): Ledger {
  const store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  stores.push(store);
  const limits = { storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return createLedger({ store, clock: systemClock, bootId, ...limits });
}

/** The settling process, over a settler that the test controls, and a chain that does not answer. */
function settling(hasGateway = true) {
  const ledger = open('settling');
  const chain = createChainClient({ rpcUrls: ['http://127.0.0.1:9'], chainId: 5042, timeoutMs: 100 });
  const settler: Settler = {
    settle: (intents) => {
      given.push(...intents);
      return intents.map(async () => outcome());
    },
    unavailable: () => unavailable ?? spent,
    ...(hasBudget && { cannotSend: () => unavailable }),
    ...(!refusesNobody && {
      refuses: () => ban,
      refused: () => (ban === null ? [] : [[PAYER, ban] as const]),
      refusesCode: () => codeBan,
    }),
    stop: async () => {},
  };
  const evidence = createEvidence(chain, `0x36${'0'.repeat(38)}`);
  const rail = { settler, evidence, ownOnly: false };
  const rows = createSettleRows({ ledger, railOf: () => rail, clock: systemClock, waitMs: 1000, log: silent });
  return createLocalSettling({
    ledger,
    rows,
    probes: () => probes,
    detail: () => null,
    settlers: { 'usdc-exact': settler, ...(hasGateway && { 'usdc-gateway': { unavailable: () => batched } }) },
    takeOver: async () => void done.push('takeover'),
    isShared,
    load: async () => void done.push('load'),
    refresh: async () => void done.push('refresh'),
    stopSettlers: async () => void done.push('stop'),
  });
}

const WELL = { unavailable: null, cannotSend: null, codeRefused: null, payers: [] };
const reportedPayers = (local: ReturnType<typeof settling>) => local.report().status['usdc-exact']?.payers;

async function intent(): Promise<string> {
  const id = String(await serving.reserve(sale(String(Math.random())), false));
  await serving.storeIntent(id, storedIntent('{}', { checkedBlock: 4 }));
  return id;
}

test('a fresh intent of another process is settled once, however often the process asks', async () => {
  const local = settling();
  const id = await intent();
  await Promise.all([local.carry(id), local.carry(id)]);
  expect(await serving.get(id)).toMatchObject({ state: 'settled', block: 7, charged: 500n, signature: null });
  // This process settles: it answers each request for a row, also when there was nothing to do.
  expect(await local.carry(id)).toBe(true);
  expect(given).toMatchObject([{ id, fromBlock: 4, broadcast: false }]);
});

test('a row that is reserved or deleted is not settled', async () => {
  const local = settling();
  await local.carry(String(await serving.reserve(sale('reserved'), false)));
  await local.carry('no such payment');
  expect(given).toEqual([]);
});

test('a payment that may be on the chain is not sent while the chain cannot be read', async () => {
  const local = settling();
  const id = await intent();
  await serving.noteBroadcast([{ id, transaction: randomBytes(32) }]);
  await local.carry(id);
  expect(given).toEqual([]);
  expect((await serving.get(id))?.state).toBe('settling');
});

test('all intents that await their first settlement are settled, and nothing else', async () => {
  const local = settling();
  const ids = [await intent(), await intent(), await intent()];
  const noted = await intent();
  await serving.noteBroadcast([{ id: noted, transaction: randomBytes(32) }]);
  await serving.reserve(sale('reserved'), false);
  await local.carryWaiting();
  await vi.waitFor(() => expect(given).toHaveLength(3), { timeout: 60_000, interval: 2 });
  // Each is carried by itself; asked for again, it waits for the same.
  await Promise.all(ids.map((id) => local.carry(id)));
  expect(given.map(({ id }) => id).sort()).toEqual([...ids].sort());
  expect((await serving.get(noted))?.state).toBe('settling');
});

describe('a payer that a settler refuses', () => {
  const got = [[PAYER, 'its payments exhaust their gas']];

  test('is reported until the refusal ends, also when it began after the payer’s settlement had ended', async () => {
    const local = settling();
    outcome = () => ({ kind: 'failed', reason: 'gas exhausted' });
    await local.carry(await intent());
    expect(local.report()).toEqual({ status: { 'usdc-exact': WELL, 'usdc-gateway': WELL }, probes: {} });
    // The chain was asked about it meanwhile.
    ban = 'its payments exhaust their gas';
    expect(reportedPayers(local)).toEqual(got);
    expect(reportedPayers(local)).toEqual(got);
    ban = null;
    expect(reportedPayers(local)).toEqual([]);
  });

  test('is reported also when this process itself sold to the payer', async () => {
    const local = settling();
    outcome = () => ({ kind: 'failed', reason: 'gas exhausted' });
    const id = await intent();
    const {
      payer: from,
      payTo: to,
      amount: value,
      validAfter,
      validBefore,
      nonce,
    } = (await serving.get(id)) as Payment;
    const authorization = { from, to, value, validAfter, validBefore, nonce, signature: Buffer.alloc(65) };
    await local.settle(
      { id, authorization, call: null, fromBlock: 4, broadcast: false, hasCode: false },
      Buffer.alloc(20),
    );
    ban = 'its payments exhaust their gas';
    expect(reportedPayers(local)).toEqual(got);
  });
});

test('a settler that never refuses a payer reports none, and settles for other processes', async () => {
  refusesNobody = true;
  const local = settling();
  const id = await intent();
  await local.carry(id);
  expect((await serving.get(id))?.state).toBe('settled');
  expect(local.report().status['usdc-exact']).toEqual(WELL);
});

test('each rail reports why it cannot settle now', () => {
  const local = settling();
  unavailable = 'earlier settlements are late';
  expect(local.report()).toEqual({
    status: { 'usdc-exact': { ...WELL, unavailable, cannotSend: unavailable }, 'usdc-gateway': WELL },
    probes: {},
  });
  unavailable = null;
  codeBan = 'the day’s budget for settlements that fail is used up';
  expect(local.report().status['usdc-exact']).toEqual({ ...WELL, codeRefused: codeBan });
  codeBan = null;
  expect(local.report().status['usdc-exact']).toEqual(WELL);
  batched = 'a transfer waits';
  probes = { gateway: { ok: false } };
  expect(local.report()).toEqual({
    status: { 'usdc-exact': WELL, 'usdc-gateway': { ...WELL, unavailable: batched, cannotSend: batched } },
    probes,
  });
});

test('a budget that is used up ends the sales, and not what is owed already', () => {
  [hasBudget, spent] = [true, 'the day’s gas budget is used up'];
  const local = settling();
  expect(local.report().status['usdc-exact']).toEqual({ ...WELL, unavailable: spent });
  const { unavailable: sells, cannotSend } = local.status('usdc-exact');
  expect([sells(), cannotSend()]).toEqual([spent, null]);
  unavailable = 'earlier settlements are late';
  expect([sells(), cannotSend()]).toEqual([unavailable, unavailable]);
});

test('this process sees each rail’s status by name, and a rail that is off refuses nothing', () => {
  const local = settling();
  const payer = Buffer.alloc(20, 9);
  [ban, codeBan, unavailable, batched] = ['its payments exhaust their gas', 'no budget', 'late', 'a transfer waits'];
  const [exact, gateway] = [local.status('usdc-exact'), local.status('usdc-gateway')];
  expect([exact.cannotSend(), gateway.cannotSend()]).toEqual([unavailable, batched]);
  expect([exact.unavailable(), exact.refuses(payer), exact.refusesCode()]).toEqual([unavailable, ban, codeBan]);
  expect([gateway.unavailable(), gateway.refuses(payer), gateway.refusesCode()]).toEqual([batched, null, null]);
  const off = settling(false).status('usdc-gateway');
  expect([off.unavailable(), off.cannotSend(), off.refuses(payer), off.refusesCode()]).toEqual([
    null,
    null,
    null,
    null,
  ]);
});

test('a start takes over what dead processes left before it loads, and a round does so only beside other processes', async () => {
  await settling().start(() => {});
  expect(done).toEqual(['takeover', 'load']);
  const id = await intent();
  for (isShared of [true, false]) await settling().reconcile(() => true);
  expect(done).toEqual(['takeover', 'load', 'takeover']);
  expect((await serving.get(id))?.state).toBe('settling');
});

test('a round leaves alone what a call works on, until it is unknown or a transaction is noted for it', async () => {
  const local = settling();
  const [inUse, noted, unknown] = [await intent(), await intent(), await intent()];
  await serving.noteBroadcast([{ id: noted, transaction: randomBytes(32) }]);
  await serving.unknown(unknown);
  const asked: string[] = [];
  await local.reconcile(({ id }) => asked.push(id) > 0);
  expect(asked).toEqual([inUse]);
  const states = await Promise.all([inUse, noted, unknown].map(async (id) => (await serving.get(id))?.state));
  expect(states).toEqual(['settling', 'unknown', 'unknown']);
  await local.stop();
  expect(done).toEqual(['takeover', 'stop']);
});
