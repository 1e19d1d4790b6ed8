import type { Plant } from './plant.ts';

/** At the facilitator's rail and the Gateway's. */
export const REMOTE_PLANTS: readonly Plant[] = [
  {
    name: 'a facilitator is believed',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: '    const outcome = await watch(intent, reply, signal);',
    replace:
      "    const outcome: Outcome =\n      reply.kind === 'accepted' ? { kind: 'settled', transaction: new Uint8Array(32), block: 1 } : await watch(intent, reply, signal);",
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'handed over before it is noted',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: 'const waiting = await noteBroadcast([{ id, transaction: HANDED_OVER }]);',
    replace:
      'const waiting = new Set([id]);\n    setTimeout(() => void noteBroadcast([{ id, transaction: HANDED_OVER }]), 2000);',
    breaks: ['the ledger equals the chain', 'charged said the truth', 'what failed cost nothing', 'who paid is served'],
  },
  {
    name: 'an unclear reply is a refusal',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: "if (reply.kind === 'refused' && broadcast === false) {",
    replace: "if ((reply.kind === 'refused' || reply.kind === 'unclear') && broadcast === false) {",
    breaks: ['what failed cost nothing', 'charged said the truth', 'the ledger equals the chain'],
  },
  {
    name: 'what was handed over is logged',
    file: 'src/payment/usdc/facilitator-settler.ts',
    find: "log.warn({ payment: id, answer }, 'no evidence",
    replace:
      "log.warn({ payment: id, answer, sent: JSON.stringify(settleRequest(authorization, terms)) }, 'no evidence",
    breaks: ['no secret leaves'],
  },
  {
    name: 'no transfer yet is none ever',
    file: 'src/payment/usdc/gateway-client.ts',
    find: "if (now < validBefore + EXPIRY_MARGIN_SECONDS) return { kind: 'open' };",
    replace: "if (now < EXPIRY_MARGIN_SECONDS) return { kind: 'open' };",
    breaks: [
      'what failed cost nothing',
      'charged said the truth',
      'the ledger equals the chain',
      'honest buyers are served',
    ],
  },
  {
    name: 'payee at the Gateway not compared',
    file: 'src/payment/usdc/gateway-client.ts',
    find: 'if (paid !== authorization.value || !isHere(transfer, authorization, network))',
    replace: 'if (paid === authorization.value * 9n)',
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'another payer’s transfer counts',
    file: 'src/payment/usdc/gateway-client.ts',
    find: 'const query = new URLSearchParams({ from, nonce });',
    replace: 'const query = new URLSearchParams({ from, ...(nonce === from && { nonce }) });',
    breaks: [
      'every payment ends',
      'no answer without its full price',
      'the ledger equals the chain',
      'honest buyers are served',
    ],
  },
];
