import type { Plant } from './plant.ts';

const CHARGES = 'src/store/channels.ts';
const JUDGEMENT = 'src/payment/channels/voucher-sale.ts';
const RULES = 'src/payment/channels/voucher-sale.ts';
const LIMITS = 'src/payment/channels/refund.ts';

const PLANTS: readonly Plant[] = [
  {
    name: 'a charge is not compared with the charges before it',
    file: CHARGES,
    find: 'WHERE channels.id = @channelId::bytea AND charged = @voucherMax::numeric - @price::numeric\n',
    replace: 'WHERE channels.id = @channelId::bytea\n',
    breaks: ['a charge is never lost', 'a channel adds up'],
  },
  {
    name: 'a ceiling above the charges is charged in full',
    file: RULES,
    find: 'if (max !== charged + price) return',
    replace: 'if (max < charged + price) return',
    and: [
      {
        file: CHARGES,
        find: 'charged = @voucherMax::numeric - @price::numeric',
        replace: 'charged <= @voucherMax::numeric - @price::numeric',
      },
    ],
    breaks: ['a channel adds up'],
  },
  {
    name: 'a pending withdrawal covers vouchers too',
    file: RULES,
    find: 'if (max <= balance - state.withdrawAmount) return null;',
    replace: 'if (max <= balance) return null;',
    and: [
      {
        file: CHARGES,
        find: '@voucherMax::numeric <= balance - withdraw_amount',
        replace: '@voucherMax::numeric <= balance',
      },
    ],
    breaks: ['no answer without its full price', 'the escrow covers what is charged'],
  },
  {
    name: 'the answer of a voucher is not kept',
    file: CHARGES,
    find: 'SELECT done.id, @body::bytea, @keepUntil::bigint FROM done`',
    replace: 'SELECT done.id, @body::bytea, @keepUntil::bigint FROM done WHERE length(@body::bytea) = 0`',
    breaks: ['who paid is served'],
  },
  {
    name: 'nobody watches withdrawals',
    file: 'src/payment/channels/settler.ts',
    find: 'const watched = withdrawals.run();',
    replace: 'const watched = Promise.resolve(withdrawals).then(() => {});',
    breaks: ['the escrow covers what is charged'],
  },
  {
    name: 'a deposit counts twice',
    file: 'src/store/payments.ts',
    find: 'CASE WHEN state_block < done.block THEN done.amount ELSE 0 END',
    replace: 'done.amount',
    breaks: ['no deposit is made twice', 'no answer without its full price', 'the escrow covers what is charged'],
  },
  {
    name: 'a call is charged above the ceiling that its payer signed',
    file: CHARGES,
    find: 'SET charged = @voucherMax::numeric, signature',
    replace: 'SET charged = @voucherMax::numeric + 1, signature',
    breaks: ['no charge above its ceiling'],
  },
  {
    name: 'a deposit counts that stays with the collector',
    file: 'src/payment/usdc/evidence.ts',
    find: 'if (passedTo === undefined) return value;',
    replace: 'if (passedTo !== null) return value;',
    breaks: ['no answer without its full price', 'no deposit is made twice', 'the escrow covers what is charged'],
  },
  {
    name: 'a refund gives back what is charged',
    file: LIMITS,
    find: 'const left = state.balance - charged;',
    replace: 'const left = state.balance - state.totalClaimed;',
    and: [
      {
        file: 'src/payment/channels/refund.ts',
        find: 'if (charged === state.totalClaimed || !signature) return refund;',
        replace: 'if (charged === state.totalClaimed || !signature || signature.length > 0) return refund;',
      },
    ],
    breaks: ['the escrow covers what is charged', 'no answer without its full price'],
  },
  {
    name: 'a poisoned row holds up the others',
    file: 'src/payment/channels/claims.ts',
    find: 'if (some.length === 1 && only) return void bad.push({ due: only, reason });',
    replace: 'if (only) return void bad.push(...some.map((one) => ({ due: one, reason })));',
    breaks: ['every payment ends'],
  },
  {
    name: 'a refund is made as often as it is asked for',
    file: 'src/payment/channels/refund.ts',
    find: '    checkPause(channel, askedIn(payload), await store.lastRefund(id), clock.nowMs());\n',
    replace: '',
    and: [
      { file: LIMITS, find: 'limit: most.signer,', replace: 'limit: 1000 * most.signer,' },
      { file: LIMITS, find: 'pausedSince: nowMs - PAUSE_MS', replace: 'pausedSince: null' },
    ],
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: 'a voucher buys any request',
    file: JUDGEMENT,
    find: "if (sale?.state !== 'settled' || !isSameRequest(sale, voucher)) return null;",
    replace:
      "if (sale?.state !== 'settled' || isSameRequest(sale, { ...voucher, requestHash: sale.nonce })) return null;",
    breaks: ['no payment is sold twice', 'no answer without its full price'],
  },
  {
    name: 'a voucher’s answer goes to anybody',
    file: JUDGEMENT,
    find: 'if (!isSaleOf(sale, voucher)) return null;',
    replace: 'if (voucher.call.price < 0n && !isSaleOf(sale, voucher)) return null;',
    breaks: ['no payment is sold twice'],
  },
  {
    name: 'a voucher of any form counts',
    file: 'src/payment/channels/scheme.ts',
    find: '  const signer = recoverAddress(digest, voucher.signature);',
    replace:
      '  const v = voucher.signature[64] ?? 0;\n  const form = Buffer.from([...voucher.signature.subarray(0, 64), v < 27 ? v + 27 : v]);\n  const signer = recoverAddress(digest, form);',
    breaks: ['no answer without its full price', 'a charge is never lost', 'every payment ends'],
  },
];

/** On the rail of payment channels. */
export const CHANNEL_PLANTS: readonly Plant[] = PLANTS.map((plant) => ({ ...plant, inChannels: true }));
