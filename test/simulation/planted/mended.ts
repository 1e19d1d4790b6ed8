import type { Plant } from './plant.ts';

/** Faults that the service had, put back one at a time. The number is the one under which each was first reported. */
export const MENDED_PLANTS: readonly Plant[] = [
  {
    name: '1: a dear answer for a cheap payment',
    file: 'src/payment/known-payment.ts',
    find: 'if (row.authorizationHash) return equal(row.authorizationHash, payment.authorizationHash);',
    replace: 'if (row.authorizationHash) return true;',
    and: [
      {
        file: 'src/payment/known-payment.ts',
        find: '    isSameRequest(known, sale) &&\n',
        replace: '',
      },
      {
        file: 'src/store/payments.ts',
        find: '\n     AND usdc_payments.authorization_hash = excluded.authorization_hash`',
        replace: '`',
      },
      {
        file: 'src/payment/receipt.ts',
        find: "if (payment.state !== 'settled' || paid < price) {",
        replace: "if (payment.state !== 'settled') {",
      },
    ],
    breaks: ['no answer without its full price', 'the relayer keeps its bounds', 'no payment is sold twice'],
  },
  {
    name: '2: a facilitator’s rail can be shut',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: "const isHeard = reply.kind !== 'unclear' || !reply.isTransport;",
    replace: "const isHeard = reply.kind !== 'unclear';",
    and: [
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: 'return { outcome, isHeard: isHeard || isContract };',
        replace: 'return { outcome, isHeard };',
      },
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: 'if (!intent.broadcast && !intent.hasCode) judge(ended);',
        replace: 'judge(ended);',
      },
    ],
    breaks: ['honest buyers are served'],
  },
  {
    name: '3: one penniless client exhausts the providers',
    file: 'src/payment/usdc/checks.ts',
    find: 'const seen = await check.admit(authorization, asker, false);',
    replace: 'const seen = { used: false, balance: authorization.value, hasCode: true, block: 0 };',
    and: [
      {
        file: 'src/payment/usdc/checks.ts',
        find: 'if (waitSeconds > 0)\n      throw new TooMany(',
        replace: 'if (waitSeconds < 0)\n      throw new TooMany(',
      },
      {
        file: 'src/payment/usdc/checks.ts',
        find: "const answer = await chain.request<string>('eth_call', [call, 'latest'], { signal, rank: 'admit' });",
        replace:
          "const answer = await chain.request<string>('eth_call', [call, 'latest'], { signal, rank: 'settle' });",
      },
    ],
    breaks: ['honest buyers are served'],
  },
  {
    name: '4: wallets burn gas just under the ban',
    file: 'src/payment/relayer/verdicts.ts',
    find: "return job.hasCode || seen.hasCode ? 'ban' : 'ask';",
    replace: "return job.hasCode || seen.hasCode ? 'no' : 'ask';",
    and: [
      {
        file: 'src/payment/usdc/checks.ts',
        find: 'await tryOut({ ...call, gasPrice: gasPriceNow }).catch(',
        replace: 'await tryOut(call).catch(',
      },
    ],
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: '4: what failures cost has no bound',
    file: 'src/payment/relayer/gas.ts',
    find: 'dailyFailuresWei !== null && today().failedWei >= dailyFailuresWei',
    replace: 'dailyFailuresWei !== null && today().failedWei < 0n',
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: '4: a token that is shut is not noticed',
    file: 'src/payment/usdc/checks.ts',
    find: '    isShut = shut;',
    replace: '    isShut = shut && triedMs < 0;',
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: '5: what has run out is sent',
    file: 'src/payment/usdc/authorization.ts',
    find: 'if (left < BigInt(least) ||',
    replace: 'if (left < 6n ||',
    and: [
      {
        file: 'src/payment/relayer/sending.ts',
        find: 'job.intent.authorization.validBefore <= lastSecond);',
        replace: 'job.intent.authorization.validBefore <= lastSecond - lastSecond);',
      },
    ],
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: '6: one payment at two ledgers',
    file: 'src/payment/usdc/gateway.ts',
    find: 'if (await gateway.evidence.isUsed(authorization)) throw',
    replace: 'if (await gateway.evidence.isUsed({ ...authorization, nonce: authorization.to })) throw',
    and: [
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: 'const used = broadcast || !usedBefore ? null : await usedBefore(intent);',
        replace: 'const used = broadcast || usedBefore ? null : ALREADY_USED.slice(99) || null;',
      },
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: "if (reply.kind === 'used' && usedBefore && broadcast === false)",
        replace: "if (reply.kind === 'used' && !usedBefore)",
      },
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: 'ownOnly: usedBefore !== null,',
        replace: 'ownOnly: false,',
      },
    ],
    breaks: ['no payment is sold twice'],
  },
  {
    name: '7: the Gateway’s rail works for nothing',
    file: 'src/payment/usdc/gateway.ts',
    find: 'if (balance < authorization.value) throw',
    replace: 'if (balance < 0n) throw',
    and: [
      {
        file: 'src/payment/usdc/gateway.ts',
        find: 'if (balance < authorization.value + promised) throw',
        replace: 'if (balance < 0n) throw',
      },
    ],
    breaks: ['nothing is done for who cannot pay'],
  },
  {
    name: '7: nonces spent elsewhere close the Gateway’s rail',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: "const isHeard = reply.kind !== 'unclear' || !reply.isTransport;",
    replace: "const isHeard = reply.kind !== 'unclear' && reply.kind !== 'used';",
    and: [
      {
        file: 'src/payment/usdc/facilitator-settler.ts',
        find: "return { outcome: { kind: 'failed', reason: used }, isHeard: true };",
        replace: "return { outcome: { kind: 'failed', reason: used }, isHeard: false };",
      },
    ],
    breaks: ['honest buyers are served'],
  },
  {
    name: '8: what is in flight is reported as free',
    file: 'src/payment/known-payment.ts',
    find: "detail, { charged: 'unknown', retryAfterSeconds: 1 });",
    replace: 'detail, { charged: false, retryAfterSeconds: 1 });',
    breaks: ['charged said the truth'],
  },
  {
    name: '8: a failing call says that a public payment is untouched',
    file: 'src/payment/sale.ts',
    find: 'return known ? chargedUnknown(() => sellReverted(context, sale, known)) : sellUnused(context, sale);',
    replace: 'return known ? sellReverted(context, sale, known) : chargedUnknown(() => sellUnused(context, sale));',
    breaks: ['charged said the truth'],
  },
  {
    name: 'a conflict of identifiers speaks for a row that it has not seen',
    file: 'src/payment/known-payment.ts',
    find: ': identifierConflict(mayHaveMoved(own));',
    replace: ': identifierConflict(own !== null && mayHaveMoved(null));',
    breaks: ['charged said the truth'],
  },
  {
    name: 'a reverted payment is reported as failed for ever',
    file: 'src/payment/sale.ts',
    find: 'if (isReverted(known)) throw new PaymentRefused(ALREADY_USED);',
    replace: '',
    breaks: ['charged said the truth'],
  },
];
