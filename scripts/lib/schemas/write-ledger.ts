import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import * as rows from './rows.ts';

/** The stores of an earlier version: those that it had, with methods that take at least these arguments. */
export type EarlierStores = Partial<LedgerStores> & Pick<LedgerStores, 'payments'>;

/** Writes rows of every kind that a schema of this version has, through that version's own stores. */
export async function writeLedger(stores: EarlierStores, version: number): Promise<void> {
  await writePayments(stores, version);
  if (stores.lightning) await writeProofs(stores.lightning);
  if (stores.transfers) await writeTransfer(stores, version);
  if (stores.channels) await writeChannel(stores.channels);
  await stores.selfTests?.record(rows.selfTest, 0);
  await stores.spending?.add(rows.DAY, rows.spent);
  await stores.catalogue?.save(rows.catalogueCopy);
  await stores.market?.put(rows.listing, 120, { total: 100, perDomain: 30 });
  await stores.providers?.put(rows.providerNote);
  await stores.keys?.keep('mpp', rows.hashOf('service key'));
}

async function writePayments({ payments }: EarlierStores, version: number): Promise<void> {
  for (const [id, state] of Object.entries(rows.PAYMENTS)) {
    await must(payments.reserve(rows.reservationOf(id), 0, null));
    if (state === 'reserved') continue;
    await store(payments, id, version);
    if (state === 'settling') continue;
    const transaction = rows.hashOf(`transaction ${id}`);
    await payments.noteBroadcast([{ id, transaction }], ['settling']);
    const ended = { signature: null, block: 77, endedAt: rows.AT + 2000 };
    if (state === 'unknown') await must(payments.move(id, ['settling'], 'unknown', {}));
    else if (state === 'failed')
      await must(payments.move(id, ['settling'], 'failed', { ...ended, reason: rows.REVERTED }, 'drop'));
    else await must(payments.move(id, ['settling'], 'settled', { ...ended, ...paid(version) }, keep));
  }
  await payments.takeReply('p4-settled', 10, rows.AT);
  if (version >= 17) await must(payments.delivered('p4-settled', rows.AT + 2500, rows.AT + rows.HOUR_MS));
}

const keep = { keepUntil: rows.AT + rows.HOUR_MS };
/** Columns of version 14. */
const paid = (version: number) => (version >= 14 ? { charged: 2500n } : {});

async function store(payments: LedgerStores['payments'], id: string, version: number): Promise<void> {
  const known = version >= 14 ? { payerHasCode: false } : {};
  const intent = { signature: rows.signatureOf(id), checkedBlock: 70, settlingAt: rows.AT + 1000, ...known };
  await must(payments.move(id, ['reserved'], 'settling', intent, { store: rows.replyOf(id) }));
}

/** A payment over Circle's Gateway, whose batch is known by now. */
async function writeTransfer({ payments, transfers }: EarlierStores, version: number): Promise<void> {
  const id = rows.GATEWAY_PAYMENT;
  await must(payments.reserve(rows.reservationOf(id), 0, null));
  await store(payments, id, version);
  const end = { transaction: rows.GATEWAY_TRANSFER, signature: null, endedAt: rows.AT + 3000, ...paid(version) };
  await must(payments.move(id, ['settling'], 'settled', end, keep));
  await transfers?.note(id, { status: 'completed', transaction: rows.hashOf('batch'), nextCheckAt: null });
}

async function writeProofs(lightning: LedgerStores['lightning']): Promise<void> {
  for (const [name, state] of Object.entries(rows.PROOFS)) {
    const key = rows.proofKey(name);
    const requestHash = rows.hashOf(`request ${name}`);
    const invoice = { ...key, requestHash, amountMsat: 25_000n, payTo: rows.ourNode };
    if (state !== 'foreign')
      await lightning.recordInvoice({ ...invoice, issuedAt: rows.AT, forgetAt: rows.AT + 420_000 }, rows.replyOf(name));
    if (state === null) continue;
    const grant = { requestHash, redeemUntil: rows.AT + 168 * rows.HOUR_MS, route: '/v1/lightning/chain/wallet' };
    const claim = { ...key, amountMsat: 25_000n, claimedAt: rows.AT + 1000, keepUntil: rows.AT + rows.HOUR_MS };
    // Before version 22 payees that were new on a day had a cap of their own.
    const caps = { dailyCap: 100, clientCap: 100, payeeCap: 100, openCap: 100, newPayeeCap: 100 };
    const client = rows.hashOf('client');
    const account = { day: rows.DAY, clientHash: client, payeeClientHash: client, ...caps };
    const outcome = await lightning.claim(
      state === 'foreign'
        ? { ...claim, payTo: rows.theirNode, grant: null, account }
        : { ...claim, payTo: rows.ourNode, grant: { ...grant, protocol: 'x402' }, account: null },
    );
    if (outcome !== 'claimed') throw new Error(`${name} was not claimed: ${outcome}`);
    if (state === 'foreign') continue;
    const holder = `${rows.BOOT}:1`;
    await must(lightning.takeLease(key, holder, rows.AT + 1000, rows.AT + 61_000));
    if (state !== 'delivered') continue;
    await must(lightning.storeAnswer(key, holder, rows.replyOf(`answer ${name}`)));
    await must(lightning.delivered(key, rows.AT + 2000, rows.AT + rows.HOUR_MS));
    await lightning.releaseLease(key, holder);
  }
}

/** A channel that has paid one call, with a claim under way and a refund that was made. */
async function writeChannel(channels: LedgerStores['channels']): Promise<void> {
  const { id: channelId } = rows.channelTerms;
  await channels.note(rows.channelTerms, rows.channelState, rows.AT);
  const refund = { id: 'o1-refund', network: rows.USDC, kind: 'refund', channelId, amount: 10n } as const;
  await must(channels.begin({ ...refund, calldata: Buffer.from('refund'), createdAt: rows.AT }, { charged: 0n }));
  const end = { state: 'done', amount: 10n, transaction: rows.hashOf('refund'), endedAt: rows.AT + 1 } as const;
  await must(channels.end('o1-refund', end));
  const sale = rows.reservationOf(rows.VOUCHER_SALE, { amount: 700n, price: 700n });
  const after = await channels.charge(
    { ...sale, channel: rows.voucher },
    rows.replyOf(rows.VOUCHER_SALE),
    rows.AT + rows.HOUR_MS,
  );
  if (after === null) throw new Error('the voucher was not charged');
  const claim = { id: 'o2-claim', network: rows.USDC, kind: 'claim', channelId: null, amount: 700n } as const;
  await must(channels.begin({ ...claim, calldata: Buffer.from('claim'), createdAt: rows.AT + 2 }));
}

async function must(made: Promise<boolean>): Promise<void> {
  if (!(await made)) throw new Error('an earlier version refused a row');
}
