import { createHash } from 'node:crypto';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { channelState, channelTerms, depositSale, operation, SEEN_AT, voucherSale } from '../ledger/channel-rows.ts';
import { hash32, reservation } from '../ledger/ledger-rows.ts';
import { accountedOf, grantOf, HOUR, invoiceOf, keyOf, NOON } from '../lightning/lightning-rows.ts';

/** One call of the ledger's stores, which is one atomic step. */
interface Step {
  readonly name: string;
  run(stores: LedgerStores): Promise<unknown>;
  /** What the buyer's second presentation asks of the ledger. It must not sell again: the answer is `refusal`, and no row changes. */
  again?(stores: LedgerStores): Promise<unknown>;
  readonly refusal?: unknown;
}

export type ScriptName = 'sale' | 'voucher' | 'claim';

const FIXED = { requestHash: hash32('request'), clientHash: hash32('client') };
const [REPLY, SIGNATURE] = [Buffer.alloc(5000, 'reply'), Buffer.alloc(65, 7)];
const END = { block: 9, charged: 500n, signature: null, reason: null, endedAt: SEEN_AT + 9 };
const GAS = { wei: 5n, failedWei: 0n, gas: 2n, transactions: 1, payments: 1 };

/** A sale over USDC from the reservation to the second delivery, beside one that is released. */
const SALE: readonly Step[] = [
  {
    name: 'reserve two payments in one transaction',
    run: ({ payments }) =>
      Promise.all(['one', 'two'].map((id) => payments.reserve(reservation(id, id, FIXED), 0, null))),
    again: ({ payments }) => payments.reserve(reservation('copy', 'one', FIXED), 0, null),
    refusal: false,
  },
  {
    name: 'store the reply and the intent',
    run: ({ payments }) =>
      payments.move('one', ['reserved'], 'settling', { signature: SIGNATURE, checkedBlock: 7 }, { store: REPLY }),
  },
  {
    name: 'note the transaction',
    run: ({ payments }) => payments.noteBroadcast([{ id: 'one', transaction: hash32('transaction') }], ['settling']),
  },
  {
    name: 'settle',
    run: ({ payments }) => payments.move('one', ['settling'], 'settled', END, { keepUntil: SEEN_AT + HOUR }),
  },
  { name: 'deliver again', run: ({ payments }) => payments.takeReply('one', 10, SEEN_AT) },
  { name: 'release the other payment', run: ({ payments }) => payments.release('two', ['reserved']) },
  { name: 'count the gas', run: ({ spending }) => spending.add('2026-03-03', GAS) },
];

/** A channel's deposit, vouchers and claim. */
const VOUCHER: readonly Step[] = [
  { name: 'note a channel', run: ({ channels }) => channels.note(channelTerms('c'), channelState(), SEEN_AT) },
  {
    name: 'charge a voucher and keep the reply',
    run: ({ channels }) => channels.charge(voucherSale('one', 'c', 100n, FIXED), REPLY, SEEN_AT + HOUR),
    again: ({ channels }) => channels.charge(voucherSale('copy', 'c', 100n, FIXED), REPLY, SEEN_AT + HOUR),
    refusal: null,
  },
  {
    name: 'reserve a deposit',
    run: ({ payments }) => payments.reserve(depositSale('two', 'c', 200n, FIXED), 0, null),
    again: ({ payments }) => payments.reserve(depositSale('two', 'c', 200n, FIXED), 0, null),
    refusal: false,
  },
  {
    name: 'store the deposit’s reply and intent',
    run: ({ payments }) =>
      payments.move('two', ['reserved'], 'settling', { signature: SIGNATURE, calldata: REPLY }, { store: REPLY }),
  },
  {
    name: 'settle the deposit',
    run: ({ payments }) =>
      payments.move('two', ['settling'], 'settled', { ...END, charged: 5000n, transaction: hash32('deposit') }),
  },
  { name: 'begin a claim', run: ({ channels }) => channels.begin(operation('claim')) },
  {
    name: 'end the claim',
    run: ({ channels }) =>
      channels.end('claim', { state: 'done', amount: 700n, transaction: hash32('claim'), endedAt: SEEN_AT + 20 }),
  },
];

/** A sale over Lightning, and a claim for a facilitator's client. */
const CLAIM: readonly Step[] = [
  {
    name: 'record an invoice and the sealed reply',
    run: ({ lightning }) => lightning.recordInvoice(invoiceOf('a'), REPLY),
  },
  {
    name: 'claim the proof',
    run: ({ lightning }) => lightning.claim(grantOf('a')),
    again: ({ lightning }) => lightning.claim(grantOf('a')),
    refusal: 'duplicate',
  },
  { name: 'take the lease', run: ({ lightning }) => lightning.takeLease(keyOf('a'), 'boot/1', NOON, NOON + HOUR) },
  { name: 'store the answer', run: ({ lightning }) => lightning.storeAnswer(keyOf('a'), 'boot/1', REPLY) },
  { name: 'note the delivery', run: ({ lightning }) => lightning.delivered(keyOf('a'), NOON, NOON + HOUR) },
  {
    name: 'claim for a facilitator’s client',
    run: ({ lightning }) => lightning.claim(accountedOf('b')),
    again: ({ lightning }) => lightning.claim(accountedOf('b')),
    refusal: 'duplicate',
  },
];

export const SCRIPTS: Record<ScriptName, readonly Step[]> = { sale: SALE, voucher: VOUCHER, claim: CLAIM };

/** A hash of every row of every table, and of the schema's version. */
export function fingerprint(db: Sqlite): string {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
  const hash = createHash('sha256').update(String(db.pragma('user_version', { simple: true })));
  for (const table of tables) {
    hash.update(`\n${table}`);
    for (const row of db.prepare(`SELECT * FROM "${table}"`).raw().all()) hash.update(`\n${JSON.stringify(row)}`);
  }
  return hash.digest('hex');
}

/** Presents again what was acknowledged, and names what was sold twice or has changed a row. */
export async function soldTwice(script: ScriptName, done: number, stores: LedgerStores, db: Sqlite): Promise<string[]> {
  const faults: string[] = [];
  const before = fingerprint(db);
  for (const { name, again, refusal } of SCRIPTS[script].slice(0, done)) {
    if (again && (await again(stores)) !== refusal) faults.push(`${name}: sold twice`);
  }
  if (fingerprint(db) !== before) faults.push('a second presentation has changed the ledger');
  return faults;
}
