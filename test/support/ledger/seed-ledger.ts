import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';

const NETWORK = 'lnbtc:000000000019d6689c085ae165831e93';

/** Inserts rows into every table of a ledger's file that a short run of a service leaves empty, with the values that are hardest to copy. */
export function seedLedger(file: string): void {
  const db = new Database(file);
  const put = (table: string, row: Record<string, unknown>) => {
    const names = Object.keys(row);
    db.prepare(`INSERT INTO ${table} (${names}) VALUES (${names.map((name) => `@${name}`)})`).run(row);
  };
  db.pragma('foreign_keys = ON');
  const payment = {
    network: 'eip155:5042',
    contract: randomBytes(20),
    payer: randomBytes(20),
    boot_id: 'long gone',
    amount: 2n ** 62n,
    pay_to: randomBytes(20),
    valid_after: '0',
    valid_before: String(2n ** 256n - 1n),
    request_hash: randomBytes(32),
    client_hash: randomBytes(32),
    reserved_at: 1,
    settling_at: 2,
    ended_at: 3,
    deliveries: 7,
    delivered_at: 4,
  };
  const ended = (id: string, more: object) => put('usdc_payments', { ...payment, id, nonce: randomBytes(32), ...more });
  ended('a', {
    state: 'settled',
    transaction_hash: randomBytes(16),
    block: 9,
    identifier_hash: randomBytes(32),
    authorization_hash: randomBytes(32),
    price: 2n ** 62n,
    charged: 2n ** 62n,
    payer_has_code: 1,
    route: '/v1/paid/a',
    protocol: 'x402',
  });
  ended('b', { state: 'failed', reason: 'cancelled, “said” the {chain}, \\ and "so" did we', checked_block: 5 });
  seedChannels(put, ended);
  put('gateway_transfers', {
    payment_id: 'a',
    transfer_id: randomBytes(16),
    status: 'batched',
    checks: 3,
    next_check_at: 4,
  });
  const invoice = () => ({
    network: NETWORK,
    payment_hash: randomBytes(32),
    amount_msat: String(2n ** 70n),
    pay_to: randomBytes(33),
  });
  const kept = { ...invoice(), request_hash: randomBytes(32), issued_at: 1, forget_at: 2 };
  put('lightning_invoices', kept);
  const { network, payment_hash } = kept;
  put('lightning_kept_replies', { network, payment_hash, body: Buffer.alloc(0) });
  const grant = { claimed_at: 1, keep_until: 2, request_hash: randomBytes(32), redeem_until: 3 };
  put('lightning_claims', {
    ...invoice(),
    ...grant,
    state: 'claimed',
    answer: 'none',
    route: '/v1/lightning/b',
    protocol: 'x402',
    lease_holder: 'x',
    lease_until: 5,
  });
  const delivered = { ...invoice(), ...grant, state: 'delivered', delivered_at: 4, answer: 'kept' };
  put('lightning_claims', delivered);
  put('lightning_answers', { network, payment_hash: delivered.payment_hash, body: randomBytes(5000) });
  // More rows than one step of the copy takes.
  const many = db.prepare('INSERT INTO lightning_facilitator_clients (day, client_hash, claims) VALUES (?, ?, ?)');
  db.transaction(() => {
    for (let at = 0; at < 2500; at++) many.run('2020-01-01', randomBytes(32), at);
  })();
  const test = { ok: 1, latency_ms: 5, transaction_hash: randomBytes(32), not_charged: 1 };
  put('self_tests', { at: 1, ...test });
  put('self_tests', { at: 2, ok: 0, not_charged: 0, reason: 'not_served' });
  put('relayer_spending', {
    day: '2020-01-01',
    wei: String(2n ** 90n),
    failed_wei: String(2n ** 89n),
    gas: 1,
    transactions: 2,
    payments: 3,
  });
  put('catalogue_copy', { id: 1, read_at: 1, digest: randomBytes(32), entries: JSON.stringify(['é \u0000 €', null]) });
  put('provider_notes', {
    host: 'rpc.a.example',
    kind: 'apart',
    question: 'receipt of 0xab',
    said: '“mined”',
    others: 'null',
    noted_at: 1,
    expires_at: 2 ** 43,
  });
  const entry = { network: 'eip155:5042', rail: 'usdc-exact', detail: 'no transfer', noted_at: 1, accepted_at: 2 };
  put('book_entries', { kind: 'missing', item: 'a', amount: 2n ** 63n - 1n, block: 9, ...entry });
  put('refused_calls', { hour: 3_600_000, code: 'No matching payment requirements', count: 2 ** 40 });
  const listing = {
    domain: 'a.example',
    listing: '{}',
    method: 'GET',
    listed_at: 1,
    priced_at: 2,
    checked_at: 3,
    due_at: 4,
  };
  const figures = { failures: 0, calls: 1, answered: 1, revision: 6 };
  put('market_listings', { place: 'a.example/ü', ...listing, ...figures });
  put('market_calls', { place: 'a.example/ü', at: 5, latency_ms: null });
  db.prepare('UPDATE market_state SET revision = 6').run();
  db.close();
}

type Put = (table: string, row: Record<string, unknown>) => void;

/** A channel with a voucher's sale, and operations that are open and done. The largest amounts are 2^63 - 1. */
function seedChannels(put: Put, ended: (id: string, more: object) => void): void {
  const most = 2n ** 63n - 1n;
  const addresses = { payer: randomBytes(20), payer_authorizer: Buffer.alloc(20), receiver: randomBytes(20) };
  const id = randomBytes(32);
  put('channels', {
    id,
    network: 'eip155:5042',
    ...addresses,
    receiver_authorizer: randomBytes(20),
    token: randomBytes(20),
    withdraw_delay: 86_400,
    salt: randomBytes(32),
    charged: most,
    written_off: 1n,
    signature: randomBytes(65),
    balance: most,
    total_claimed: most - 3n,
    withdraw_amount: 1n,
    withdraw_at: 9,
    refund_nonce: 2n,
    state_block: 5,
    deposit_block: 6,
    confirmed_block: 5,
    refused_at: 10,
    read_at: 7,
    used_at: 8,
    unclaimed_since: 9,
  });
  const after = { balance: String(most), totalClaimed: '0', withdrawAmount: '0', withdrawAt: 0, refundNonce: '0' };
  const snapshot = { channel_id: id, voucher_max: most, channel_after: JSON.stringify(after) };
  ended('c', { state: 'settled', price: 5n, charged: 5n, amount: 1_000_000n, ...snapshot });
  const open = {
    voucher_signature: randomBytes(65),
    calldata: randomBytes(500),
    signature: randomBytes(65),
    ended_at: null,
  };
  ended('d', { state: 'settling', price: 5n, ...open, channel_id: id, voucher_max: 7n });
  const operation = { network: 'eip155:5042', amount: most, created_at: 1 };
  put('channel_operations', {
    ...operation,
    id: 'x',
    kind: 'refund',
    channel_id: id,
    state: 'open',
    calldata: randomBytes(9),
  });
  put('channel_operations', {
    ...operation,
    id: 'y',
    kind: 'claim',
    state: 'done',
    amount: 0n,
    transaction_hash: randomBytes(32),
    ended_at: 2,
    reason: null,
  });
}
