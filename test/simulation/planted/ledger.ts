import type { Plant } from './plant.ts';

/** In the ledger and its rules, on one machine and on several. */
export const LEDGER_PLANTS: readonly Plant[] = [
  {
    name: 'redelivered without end',
    file: 'src/store/payments.ts',
    find: 'AND deliveries < @max',
    replace: 'AND deliveries < 1000 + @max',
    breaks: ['no payment is sold twice'],
  },
  {
    name: 'replies go too early',
    file: 'src/store/payments.ts',
    find: 'WHERE keep_until <= @now ORDER BY',
    replace: 'WHERE keep_until - 890000 <= @now ORDER BY',
    breaks: ['who paid is served'],
  },
  {
    name: 'a signature outlives its payment',
    file: 'src/payment/ledger.ts',
    find: 'const change = { transaction, block, charged: paid, signature: null, calldata: null, reason: null, endedAt: now };',
    replace: 'const change = { transaction, block, charged: paid, calldata: null, reason: null, endedAt: now };',
    breaks: ['no secret leaves'],
  },
  {
    name: 'a reply is kept for no time',
    file: 'src/payment/ledger.ts',
    find: 'const reply = { keepUntil: now + Math.max(UNDELIVERED_MS, keepMs) };',
    replace: 'const reply = { keepUntil: now + keepSeconds };',
    breaks: ['who paid is served'],
  },
  {
    name: 'what was noted is forgotten at a start',
    file: 'src/store/payments.ts',
    find: "'id = @id AND state IN @from AND transaction_hash IS NULL'",
    replace: "'id = @id AND state IN @from'",
    breaks: ['the ledger equals the chain', 'what failed cost nothing', 'charged said the truth', 'who paid is served'],
  },
  {
    name: 'a follower does not look at the row',
    file: 'src/payment/settling-remote.ts',
    find: 'if (!isOpen || nap.signal.aborted || clock.nowMs() >= until) return row;',
    replace: "if (!isOpen || nap.signal.aborted || clock.nowMs() >= until) return row && { ...row, state: 'settled' };",
    breaks: ['no answer without its full price'],
  },
  {
    name: 'a late look takes a payment that was made for one that failed',
    file: 'src/payment/settle-rows.ts',
    find: "    if (verdict.kind !== 'open') return verdict;",
    replace:
      "    if (verdict.kind === 'settled') return { kind: 'failed', reason: 'not seen' };\n    if (verdict.kind !== 'open') return verdict;",
    breaks: ['what failed cost nothing'],
  },
  {
    name: 'an error of a sale is answered by nobody',
    file: 'src/payment/gate.ts',
    find: 'answer(request, reply)?.catch(done);',
    replace: 'answer(request, reply)?.catch(() => {});',
    breaks: ['every call is answered'],
  },
  {
    name: 'nobody hears that a delivery was not noted',
    file: 'src/payment/gate.ts',
    find: "onSent().catch((err) => log.error({ err }, 'a delivery was not noted'));",
    replace: 'void onSent();',
    breaks: ['the process lives on'],
  },
];
