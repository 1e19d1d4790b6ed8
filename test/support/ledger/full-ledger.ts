// A ledger after a long time in service, in SQL that both databases run.

/** How one database says what the statements below need. */
interface Words {
  /** `length` bytes that hold a number. */
  bytes(expression: string, length: number): string;
}

export const SQLITE_WORDS: Words = {
  bytes: (expression, length) => `CAST(printf('%0${length}d', ${expression}) AS BLOB)`,
};
export const POSTGRES_WORDS: Words = {
  bytes: (expression, length) => `convert_to(lpad((${expression})::text, ${length}, '0'), 'UTF8')`,
};

/** Tables that grow with the calls that are made. A statement that reads one whole is slower each month. */
export const GROWING: readonly string[] = [
  'usdc_payments',
  'usdc_replies',
  'channels',
  'channel_operations',
  'gateway_transfers',
  'lightning_invoices',
  'lightning_claims',
  'lightning_kept_replies',
  'lightning_answers',
  'lightning_facilitator_nodes',
  'lightning_facilitator_clients',
  'lightning_facilitator_payees',
  'market_calls',
];

/**
 * Statements that fill a new ledger: `rows` payments, of which one in 500 is open and one in 300 failed, as many
 * Lightning claims, and half as many rows of what belongs to a part of them.
 */
export function fillStatements({ bytes }: Words, rows: number): string[] {
  const few = Math.ceil(rows / 2);
  const numbers = (count: number) =>
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  const day = "'2026-0' || (1 + i % 9) || '-1' || (i % 10)";
  const id = "'p' || (1000000000 + i)";
  // Ended ones come first: all others are recent.
  const state = `CASE WHEN i % 500 = 0 THEN 'settling' WHEN i % 300 = 0 THEN 'failed' ELSE 'settled' END`;
  return [
    `INSERT INTO channels (id, network, payer, payer_authorizer, receiver, receiver_authorizer, token, withdraw_delay,
       salt, charged, written_off, balance, total_claimed, withdraw_amount, withdraw_at, refund_nonce, state_block,
       confirmed_block, read_at, used_at, unclaimed_since)
     ${numbers(few)}
     SELECT ${bytes('i', 32)}, 'eip155:5042', ${bytes('i', 20)}, ${bytes('i', 20)}, ${bytes('0', 20)},
       ${bytes('0', 20)}, ${bytes('0', 20)}, 900, ${bytes('i', 32)}, 100, 0, 1000,
       CASE WHEN i % 50 = 0 THEN 50 ELSE 100 END, 0, 0, 0, 7, 7, i, i, CASE WHEN i % 50 = 0 THEN i END FROM n`,
    `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
       valid_before, request_hash, client_hash, identifier_hash, transaction_hash, block, reserved_at, ended_at, price,
       charged, channel_id, voucher_max, place)
     ${numbers(rows)}
     SELECT ${id}, 'eip155:5042', ${bytes('0', 20)}, ${bytes(`i % ${few}`, 20)}, ${bytes('i', 32)}, ${state}, 'boot',
       1000, ${bytes('0', 20)}, 0, 2000000000, ${bytes('i', 32)}, ${bytes('i', 32)},
       CASE WHEN i % 2 = 0 THEN ${bytes('i', 32)} END, ${bytes('i / 7', 32)}, i, i,
       CASE WHEN i % 500 = 0 THEN NULL ELSE i END, 1000, 1000,
       CASE WHEN i % 3 = 0 AND i % 500 <> 0 THEN ${bytes(`i % ${few}`, 32)} END,
       CASE WHEN i % 3 = 0 AND i % 500 <> 0 THEN i END, i FROM n`,
    `INSERT INTO usdc_replies (payment_id, body, keep_until)
     ${numbers(few)} SELECT ${id}, ${bytes('i', 400)}, i FROM n`,
    `INSERT INTO channel_operations (id, network, kind, channel_id, amount, calldata, transaction_hash, state,
       created_at, ended_at)
     ${numbers(few)}
     SELECT 'o' || (1000000000 + i), 'eip155:5042', CASE WHEN i % 2 = 0 THEN 'claim' ELSE 'refund' END,
       CASE WHEN i % 2 = 0 THEN NULL ELSE ${bytes('i', 32)} END, 5,
       CASE WHEN i % 500 = 0 THEN ${bytes('0', 68)} END, ${bytes('i', 32)},
       CASE WHEN i % 500 = 0 THEN 'open' ELSE 'done' END, i, CASE WHEN i % 500 = 0 THEN NULL ELSE i END FROM n`,
    `INSERT INTO gateway_transfers (payment_id, transfer_id, status, transaction_hash, next_check_at)
     ${numbers(few)}
     SELECT ${id}, ${bytes('i', 16)}, 'completed', ${bytes('i / 7', 32)}, CASE WHEN i % 100 = 0 THEN i END FROM n
      WHERE NOT EXISTS (SELECT 1 FROM gateway_transfers WHERE payment_id = ${id})`,
    `INSERT INTO lightning_invoices (network, payment_hash, request_hash, amount_msat, pay_to, issued_at, forget_at)
     ${numbers(few)}
     SELECT 'lnbtc:mainnet', ${bytes('i', 32)}, ${bytes('i', 32)}, 1000, ${bytes('0', 33)}, i, i FROM n`,
    `INSERT INTO lightning_kept_replies (network, payment_hash, body)
     ${numbers(few)} SELECT 'lnbtc:mainnet', ${bytes('i', 32)}, ${bytes('i', 400)} FROM n`,
    `INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until, request_hash,
       state, redeem_until, delivered_at, answer, lease_holder, lease_until)
     ${numbers(rows)}
     SELECT 'lnbtc:mainnet', ${bytes('i', 32)}, ${bytes(`i % ${few}`, 33)}, 1000, i, i,
       CASE WHEN i % 2 = 0 THEN ${bytes('i', 32)} END, CASE WHEN i % 2 = 0 THEN 'delivered' END,
       CASE WHEN i % 2 = 0 THEN i END, CASE WHEN i % 2 = 0 THEN i END,
       CASE WHEN i % 2 = 0 THEN CASE WHEN i % 4 = 0 THEN 'kept' ELSE 'gone' END END,
       CASE WHEN i % 1000 = 0 THEN 'h' || i END, CASE WHEN i % 1000 = 0 THEN i END FROM n`,
    `INSERT INTO lightning_answers (network, payment_hash, body)
     ${numbers(rows)} SELECT 'lnbtc:mainnet', ${bytes('i', 32)}, ${bytes('i', 400)} FROM n WHERE i % 4 = 0`,
    `INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day)
     ${numbers(few)} SELECT ${bytes('i', 33)}, 1, ${day} FROM n`,
    `INSERT INTO lightning_facilitator_clients (day, client_hash, claims)
     ${numbers(few)} SELECT ${day}, ${bytes('i', 32)}, 1 FROM n`,
    `INSERT INTO lightning_facilitator_payees (pay_to, day, claims, client, other_clients)
     ${numbers(few)} SELECT ${bytes('i', 33)}, ${day}, 1, ${bytes('i', 32)}, 0 FROM n`,
    `INSERT INTO market_listings (place, domain, listing, method, listed_at, priced_at, checked_at, failures, due_at,
       calls, answered, revision)
     ${numbers(Math.ceil(few / 10))}
     SELECT 'h' || i || '/p', 'h' || i, '{}', 'GET', i, i, i, 0, i, 1, 1, i FROM n`,
    `INSERT INTO market_calls (place, at, latency_ms)
     ${numbers(few)} SELECT 'h' || (1 + i % ${Math.ceil(few / 10)}) || '/p', i, 5 FROM n`,
  ];
}
