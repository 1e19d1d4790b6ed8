import { expect } from 'vitest';
import * as rows from '../../../scripts/lib/schemas/rows.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { createManualClock } from '../manual-clock.ts';

// What today's stores must say of the rows that an earlier version wrote (scripts/lib/schemas/write-ledger.ts). A column that came later is null.

/** Every payment of then, in its state and with its amounts. */
export async function expectPayments({ payments }: LedgerStores, version: number): Promise<void> {
  const since = <T>(first: number, value: T): T | null => (version >= first ? value : null);
  for (const [id, state] of Object.entries(rows.PAYMENTS)) {
    const { route: _, identifierHash, ...signed } = rows.reservationOf(id);
    const [isOpen, isEnded] = [state === 'settling' || state === 'unknown', state === 'settled' || state === 'failed'];
    const payment = await payments.get(id);
    expect(payment, id).toEqual({
      ...signed,
      state,
      identifierHash,
      authorizationHash: since(14, signed.authorizationHash),
      price: since(14, 2500n),
      signature: isOpen ? rows.signatureOf(id) : null,
      checkedBlock: state === 'reserved' ? null : 70,
      payerHasCode: state === 'reserved' ? null : since(14, false),
      transaction: state === 'reserved' || state === 'settling' ? null : rows.hashOf(`transaction ${id}`),
      block: isEnded ? 77 : null,
      endedAt: isEnded ? rows.AT + 2000 : null,
      reason: state === 'failed' ? rows.REVERTED : null,
      charged: state === 'settled' ? since(14, 2500n) : null,
      deliveries: state === 'settled' ? 1 : 0,
      deliveredAt: state === 'settled' ? since(17, rows.AT + 2500) : null,
      protocol: since(18, 'x402'),
      channel: null,
      calldata: null,
    });
    expect(await payments.find(signed), id).toEqual(payment);
    expect((await payments.findByHash(signed.nonce, 5)).map((one) => one.id)).toEqual([id]);
  }
  expect(await payments.findByIdentifier(rows.hashOf('identifier'))).toMatchObject({ id: 'p4-settled' });
}

/**
 * A start of today's service over the ledger of then: what was not sent is released, what was sent stays unknown until the chain shows it and is then
 * answered, what was paid is answered again, and no payment buys twice.
 */
export async function expectPromises({ payments }: LedgerStores, version: number): Promise<void> {
  const clock = createManualClock(rows.AT + 5000);
  const limits = { storeBytes: 1e6, keepSeconds: 900, maxDeliveries: 10, maxOpen: 0 };
  const ledger = createLedger({ store: payments, clock, bootId: 'boot-of-today', ...limits });
  expect(await ledger.redeliver('p4-settled')).toEqual(rows.replyOf('p4-settled'));
  const again = presented('p4-settled');
  expect(await ledger.reserve({ ...again, identifierHash: null }, true)).toBeNull();

  expect(await ledger.recover()).toEqual({ released: 2, unknown: 1 });
  expect([await ledger.get('p1-reserved'), await ledger.get('p2-settling')]).toEqual([null, null]);
  expect(await ledger.reserve(presented('p2-settling'), false)).not.toBeNull();

  expect(await ledger.get('p3-unknown')).toMatchObject({ state: 'unknown', bootId: 'boot-of-today' });
  expect(await ledger.settled('p3-unknown', rows.hashOf('transaction p3-unknown'), 90, 2500n)).toBe(true);
  expect(await ledger.get('p3-unknown')).toMatchObject({
    state: 'settled',
    charged: 2500n,
    block: 90,
    signature: null,
  });
  expect(await ledger.redeliver('p3-unknown')).toEqual(rows.replyOf('p3-unknown'));

  // Only the very authorization that reverted may be used again, and before version 14 nobody noted which one it was.
  const reverted = presented('p5-failed');
  expect(await ledger.reserve({ ...reverted, authorizationHash: rows.hashOf('another') }, true)).toBeNull();
  expect((await ledger.reserve(reverted, true)) !== null).toBe(version >= 14);
}

/** A payment of then as a buyer presents it again today. */
function presented(name: string) {
  const { id: _, bootId: __, reservedAt: ___, ...payment } = rows.reservationOf(name);
  return payment;
}

/** The proofs of then: kept replies, granted and delivered claims, and what the facilitator counted. */
export async function expectProofs({ lightning }: LedgerStores, version: number): Promise<void> {
  if (version < 3) return expect(await lightning.findInvoice(rows.proofKey('offered'))).toBeNull();
  expect(await lightning.findInvoice(rows.proofKey('offered'))).toMatchObject({
    amountMsat: 25_000n,
    issuedAt: rows.AT,
  });
  expect(await lightning.keptReply(rows.proofKey('offered'))).toEqual(rows.replyOf('offered'));
  const protocol = version >= 18 ? 'x402' : null;
  expect((await lightning.findClaim(rows.proofKey('claimed')))?.grant).toMatchObject({
    state: 'claimed',
    answered: false,
    protocol,
  });
  const delivered = await lightning.findClaim(rows.proofKey('delivered'));
  expect(delivered).toMatchObject({ amountMsat: 25_000n, claimedAt: rows.AT + 1000 });
  expect(delivered?.grant).toMatchObject({ state: 'delivered', deliveredAt: rows.AT + 2000, answered: true, protocol });
  expect(await lightning.answer(rows.proofKey('delivered'))).toEqual(rows.replyOf('answer delivered'));
  expect((await lightning.findClaim(rows.proofKey('foreign')))?.grant).toBeNull();
  expect(await lightning.facilitatorCounts(rows.DAY, rows.theirNode)).toEqual({ total: 1, today: 1, nodes: 1, own: 1 });

  const claim = { amountMsat: 25_000n, claimedAt: rows.AT, keepUntil: rows.AT, payTo: rows.ourNode, account: null };
  const grant = { requestHash: rows.hashOf('x'), redeemUntil: rows.AT, route: '/v1/lightning/x', protocol: 'x402' };
  expect(await lightning.claim({ ...claim, ...rows.proofKey('claimed'), grant })).toBe('duplicate');
  const lease = () =>
    lightning.takeLease(rows.proofKey('claimed'), 'boot-of-today:1', rows.AT + 5000, rows.AT + 65_000);
  expect(await lease()).toBe(false);
  expect(await lightning.releaseLeasesExcept('boot-of-today')).toBe(1);
  expect(await lease()).toBe(true);
}

/** Channels, and the rows of everything beside payments. `first` is the version from which each kind of row was kept. */
export async function expectOthers(stores: LedgerStores, version: number): Promise<void> {
  const since = <T, Missing>(first: number, value: T, missing: Missing): T | Missing =>
    version >= first ? value : missing;
  const batch = since(9, rows.hashOf('batch'), null);
  expect(await stores.transfers.batchOf(rows.GATEWAY_PAYMENT)).toEqual(batch);
  expect(await stores.selfTests.recent(5)).toEqual(since(5, [rows.selfTest], []));
  const spent = { ...rows.spent, failedWei: since(14, rows.spent.failedWei, 0n) };
  const nothing = { wei: 0n, failedWei: 0n, gas: 0n, transactions: 0, payments: 0 };
  expect(await stores.spending.spentOn(rows.DAY)).toEqual(since(10, spent, nothing));
  expect(await stores.providers.list(rows.AT)).toEqual(since(20, [rows.providerNote], []));
  expect(await stores.catalogue.load()).toEqual(since(10, rows.catalogueCopy, null));
  const listing = { ...rows.listing, listedAt: rows.listing.checkedAt, calls: 1, answered: 1, medianLatencyMs: 120 };
  expect(await stores.market.find(rows.listing.place)).toEqual(since(10, listing, null));
  const fresh = rows.hashOf('a fresh key');
  expect(await stores.keys.keep('mpp', fresh)).toEqual(since(18, rows.hashOf('service key'), fresh));
  const sold = await stores.settled.settledBetween(rows.AT, rows.AT + rows.HOUR_MS);
  const usdc = sold.filter(({ rail }) => rail === 'usdc').map(({ count, amount }) => [count, amount]);
  expect(usdc).toEqual(since(16, [[3, 5700n]], since(9, [[2, 5000n]], [[1, 2500n]])));
  expect(sold.filter(({ rail }) => rail === 'lightning').map(({ count }) => count)).toEqual([since(3, 2, 0)]);
  await expectChannel(stores, version);
}

async function expectChannel({ channels, payments }: LedgerStores, version: number): Promise<void> {
  const { id } = rows.channelTerms;
  if (version < 16) return expect(await channels.get(id)).toBeNull();
  const { signature } = rows.voucher;
  expect(await channels.get(id)).toMatchObject({
    ...rows.channelTerms,
    charged: 700n,
    writtenOff: 0n,
    signature,
    isConfirmed: version >= 21,
  });
  expect(await channels.findSale(id, 700n)).toMatchObject({ id: rows.VOUCHER_SALE, state: 'settled', price: 700n });
  expect(await payments.takeReply(rows.VOUCHER_SALE, 10, rows.AT)).toEqual(rows.replyOf(rows.VOUCHER_SALE));
  expect(await channels.listUnclaimed(rows.USDC, 5)).toHaveLength(1);
  expect(await channels.openOperations(5)).toMatchObject([
    { id: 'o2-claim', amount: 700n, calldata: Buffer.from('claim') },
  ]);
  expect(await channels.lastRefund(id)).toMatchObject({ id: 'o1-refund', transaction: rows.hashOf('refund') });
  expect(await channels.getRefunded(id)).toBe(10n);
}
