import type { Plant } from './plant.ts';

/** In the checkout of the USDC routes, and in our own relayer. */
export const RELAYER_PLANTS: readonly Plant[] = [
  {
    name: 'recipient not compared',
    file: 'src/payment/usdc/authorization.ts',
    find: 'if (bytesToHex(authorization.to) !== requirement.payTo.toLowerCase()) {',
    replace: 'if (authorization.to.length !== 20) {',
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'balance not compared',
    file: 'src/payment/usdc/checks.ts',
    find: 'if (seen.balance < authorization.value) throw',
    replace: 'if (seen.balance < 0n) throw',
    and: [
      {
        file: 'src/payment/usdc/checks.ts',
        find: 'if (balance < authorization.value + promised) throw',
        replace: 'if (balance < 0n) throw',
      },
    ],
    breaks: ['nothing is done for who cannot pay'],
  },
  {
    name: 'used authorization not refused',
    file: 'src/payment/usdc/checks.ts',
    find: 'if (seen.used) throw new PaymentRefused(reasons.used);',
    replace: '',
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: 'payee of a transfer not compared',
    file: 'src/payment/usdc/evidence.ts',
    find: 'return topics[1] === topicOf(from) && topics[2] === topicOf(to);',
    replace: 'return topics[1] === topicOf(from) || topics[2] === topicOf(to);',
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'a use is a payment',
    file: 'src/payment/usdc/evidence.ts',
    find: 'const paid = paymentsIn(receipt, usdc)(authorization);',
    replace:
      "const paid = paymentsIn(receipt, usdc)(authorization) ?? (receipt.status === '0x1' ? authorization.value : null);",
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'answer leaves before its end is known',
    file: 'src/payment/sale.ts',
    find: "if (row?.state === 'settled') return soldOf(context, sale.scheme.receipt, row, sale.body, price);",
    replace:
      "if (row?.state === 'settled' || row?.state === 'unknown') return soldOf(context, sale.scheme.receipt, { ...row, state: 'settled' }, sale.body, price);",
    breaks: ['no answer without its full price'],
  },
  {
    name: 'unknown is reported as failed',
    file: 'src/payment/sale.ts',
    find: "if (row?.state !== 'failed') throw settlementUnknown();",
    replace: "if (row?.state !== 'failed' && row?.state !== 'unknown') throw settlementUnknown();",
    breaks: ['charged said the truth'],
  },
  {
    name: 'redelivered to anybody',
    file: 'src/payment/sale.ts',
    find: 'isSameRequest(row, sale) && isSameBuyer(row, sale)',
    replace: 'isSameRequest(row, sale)',
    breaks: ['no payment is sold twice'],
  },
  {
    name: 'redelivered for another request',
    file: 'src/payment/sale.ts',
    find: 'isSameRequest(row, sale) && isSameBuyer(row, sale)',
    replace: 'isSameBuyer(row, sale)',
    breaks: ['no payment is sold twice', 'no answer without its full price'],
  },
  {
    name: 'sent before it is noted',
    file: 'src/payment/relayer/requests.ts',
    find: 'return { kind, effect, answer: await note(options, effect.flights) };',
    replace:
      'setTimeout(() => void note(options, effect.flights).catch(() => {}), 300);\n          return { kind, effect, answer: new Set(entriesOf(effect.flights).map(({ id }) => id)) };',
    breaks: ['the ledger equals the chain', 'charged said the truth', 'who paid is served', 'what failed cost nothing'],
  },
  {
    name: 'the day’s gas is no bound',
    file: 'src/payment/relayer/gas.ts',
    find: 'return dailyWei !== null && today().wei + expectedWei >= dailyWei',
    replace: 'return dailyWei !== null && today().wei + expectedWei < 0n',
    breaks: ['the relayer keeps its bounds'],
  },
  {
    name: 'a signature is not checked',
    file: 'src/payment/usdc/checks.ts',
    find: 'if (signer && Buffer.compare(signer, authorization.from) === 0) return null;',
    replace: 'if (signer) return null;',
    breaks: ['the relayer keeps its bounds', 'nothing is done for who cannot pay', 'honest buyers are served'],
  },
];
