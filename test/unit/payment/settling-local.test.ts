import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createChainClient } from '../../../src/chain/rpc/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createEvidence } from '../../../src/payment/evm/evidence.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { createSettlement } from '../../../src/payment/settlement.ts';
import type { Intent, Outcome, Settler } from '../../../src/payment/settler.ts';
import { createCarrier } from '../../../src/payment/settling-local.ts';
import type { LedgerStore } from '../../../src/store/ports/sales.ts';
import { openLedgerDatabase } from '../../../src/store/sqlite/database.ts';
import { createLedgerStore } from '../../../src/store/sqlite/ledger-store.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const settled = (): Outcome => ({ kind: 'settled', transaction: randomBytes(32), block: 7, paid: 500n });

let folder: string;
let stores: LedgerStore[];
let serving: Ledger;
let ban: string | null;
let refusesNobody: boolean;
let codeBan: string | null;
let unavailable: string | null;
let batched: string | null;
let probes: Record<string, { ok: boolean }>;
let outcome: () => Outcome;
let given: Intent[];
beforeEach(() => {
  refusesNobody = false;
  folder = mkdtempSync(join(tmpdir(), 'percall-carrier-'));
  stores = [];
  serving = open('serving');
  [ban, codeBan, unavailable, batched, probes, outcome, given] = [null, null, null, null, {}, settled, []];
});
afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(bootId: string): Ledger {
  const store = createLedgerStore(openLedgerDatabase(join(folder, 'ledger.db')));
  stores.push(store);
  const limits = { storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  return createLedger({ store, clock: systemClock, bootId, ...limits });
}

/** The settling process, over a settler that does as it is told, and a chain that nobody answers for. */
function settling() {
  const ledger = open('settling');
  const chain = createChainClient({ rpcUrls: ['http://127.0.0.1:9'], chainId: 5042, timeoutMs: 100 });
  const settler: Settler = {
    settle: (intents) => {
      given.push(...intents);
      return intents.map(async () => outcome());
    },
    unavailable: () => unavailable,
    ...(!refusesNobody && { refuses: () => ban, refusesCode: () => codeBan }),
    stop: async () => {},
  };
  const evidence = createEvidence(chain, `0x36${'0'.repeat(38)}`);
  const rail = { settler, evidence, ownOnly: false };
  const settlement = createSettlement({ ledger, railOf: () => rail, clock: systemClock, waitMs: 1000, log: silent });
  return createCarrier({ ledger, settlement, settler, gatewayUnavailable: () => batched, probes: () => probes });
}

async function intent(): Promise<string> {
  const id = String(await serving.reserve(sale(String(Math.random())), false));
  await serving.storeIntent(id, storedIntent('{}', { checkedBlock: 4 }));
  return id;
}

test('a fresh intent of another process is settled, once however often it is asked for', async () => {
  const carrier = settling();
  const id = await intent();
  await Promise.all([carrier.carry(id), carrier.carry(id)]);
  expect(await serving.get(id)).toMatchObject({ state: 'settled', block: 7, charged: 500n, signature: null });
  await carrier.carry(id);
  expect(given).toMatchObject([{ id, fromBlock: 4, broadcast: false }]);
});

test('what is reserved, or gone, is not settled', async () => {
  const carrier = settling();
  await carrier.carry(String(await serving.reserve(sale('reserved'), false)));
  await carrier.carry('no such payment');
  expect(given).toEqual([]);
});

test('what may be on the chain already is not sent while the chain cannot be asked', async () => {
  const carrier = settling();
  const id = await intent();
  await serving.noteBroadcast([{ id, transaction: randomBytes(32) }]);
  await carrier.carry(id);
  expect(given).toEqual([]);
  expect((await serving.get(id))?.state).toBe('settling');
});

test('all that waits for its first settlement is carried, and nothing else', async () => {
  const carrier = settling();
  const ids = [await intent(), await intent(), await intent()];
  const noted = await intent();
  await serving.noteBroadcast([{ id: noted, transaction: randomBytes(32) }]);
  await serving.reserve(sale('reserved'), false);
  await carrier.carryWaiting();
  await vi.waitFor(() => expect(given).toHaveLength(3), { timeout: 10_000, interval: 2 });
  // Each is carried by itself; asked for again, it waits for the same.
  await Promise.all(ids.map((id) => carrier.carry(id)));
  expect(given.map(({ id }) => id).sort()).toEqual([...ids].sort());
  expect((await serving.get(noted))?.state).toBe('settling');
});

test('a payer whom a settlement has made unwelcome is told of, until he is welcome again', async () => {
  const carrier = settling();
  await carrier.carry(await intent());
  expect(carrier.refusals()).toEqual({
    ...{ unavailable: null, codeRefused: null, payers: [], gatewayUnavailable: null, rails: {} },
  });
  outcome = () => ({ kind: 'failed', reason: 'burnt gas' });
  ban = 'its payments burn gas';
  await carrier.carry(await intent());
  expect(carrier.refusals().payers).toEqual([[`0x${'09'.repeat(20)}`, ban]]);
  expect(carrier.refusals().payers).toHaveLength(1);
  ban = null;
  expect(carrier.refusals().payers).toEqual([]);
  // From then on it is as any other: no settlement of its own was the reason.
  ban = 'something else';
  expect(carrier.refusals().payers).toEqual([]);
});

test('where no payer is ever refused, none is told of, and settlements are carried all the same', async () => {
  refusesNobody = true;
  const carrier = settling();
  const id = await intent();
  await carrier.carry(id);
  expect((await serving.get(id))?.state).toBe('settled');
  expect(carrier.refusals()).toMatchObject({ codeRefused: null, payers: [] });
});

test('why nothing can be settled is passed on as it stands', () => {
  const carrier = settling();
  unavailable = 'earlier settlements are late';
  expect(carrier.refusals()).toMatchObject({ unavailable, gatewayUnavailable: null, rails: {} });
  unavailable = null;
  codeBan = 'the day’s budget for settlements that fail is used up';
  expect(carrier.refusals()).toMatchObject({ unavailable: null, codeRefused: codeBan });
  codeBan = null;
  expect(carrier.refusals().codeRefused).toBeNull();
  batched = 'a transfer waits';
  probes = { gateway: { ok: false } };
  expect(carrier.refusals()).toMatchObject({ unavailable: null, gatewayUnavailable: batched, rails: probes });
});
