import type { Answer } from '../../../support/service/service.ts';
import { call } from '../../../support/service/service.ts';
import { newBuyer, type Payment, present } from '../../../support/usdc/buyer.ts';
import { headerOf, payloadOf, type Requirement, requirementOf } from '../../../support/usdc/payments.ts';
import { asking, type Bench, type Mistake, presenting } from './mistake.ts';

const PATH = '/v1/paid/fees/estimate';
const OTHER = '/v1/paid/rpc/health';
const REFUSED = { status: 402 } as const;
const nowSeconds = () => BigInt(Math.floor(Date.now() / 1000));

type Signed = Parameters<Awaited<ReturnType<typeof newBuyer>>['sign']>[2];

/** Presents a payment that is signed otherwise than the offer says. */
const signing = (overrides: () => Signed) => async (bench: Bench) => {
  const buyer = await newBuyer(bench.network);
  return present(bench.origin, PATH, await buyer.sign(bench.origin, PATH, overrides()));
};

/** Presents a payment that accepts other terms than the offer's. */
const accepting = (change: (requirement: Requirement) => object) =>
  changed(({ authorization, requirement }) =>
    payloadOf(authorization, { ...requirement, ...change(requirement) } as Requirement),
  );

/** Presents a payment whose content was changed after it was signed. */
function changed(change: (payment: Payment) => object) {
  return async (bench: Bench): Promise<Answer> => {
    const payment = await (await newBuyer(bench.network, 0n)).sign(bench.origin, PATH);
    return present(bench.origin, PATH, { header: headerOf(change(payment)) });
  };
}

/** Presents a payment by the offer of a Lightning route at a route that is paid in USDC, or the reverse. */
const crossing = (offeredAt: string, presentedAt: string) => async (bench: Bench) => {
  const { headers } = await call(bench.origin, offeredAt);
  const payload = { preimage: '00'.repeat(32) };
  return presenting(presentedAt, { x402Version: 2, accepted: requirementOf(headers), payload })(bench);
};

/** Payments that nothing can be read from. */
export const unreadable: readonly Mistake[] = [
  {
    title: 'sends no payment',
    ...REFUSED,
    ask: asking(PATH),
    wrong: /costs 0\.0005 USDC on Arc \(demo, play money\)/,
    next: /PAYMENT-SIGNATURE.*\/docs/s,
  },
  {
    title: 'pays in the header of x402 version 1',
    ...REFUSED,
    ask: asking(PATH, { headers: { 'x-payment': 'e30=' } }),
    wrong: /X-PAYMENT is x402 version 1/,
    next: /PAYMENT-SIGNATURE/,
  },
  {
    title: 'pays in a header that no version of x402 has',
    ...REFUSED,
    ask: asking(PATH, { headers: { 'x-payment-signature': 'e30=' } }),
    wrong: /X-PAYMENT-SIGNATURE/,
    next: /send.* PAYMENT-SIGNATURE/,
  },
  {
    title: 'pays with text that is not base64',
    ...REFUSED,
    ask: asking(PATH, { headers: { 'payment-signature': '{"x402Version":2}' } }),
    wrong: /not base64/,
    next: /base64 of/,
  },
  {
    title: 'pays with base64 of no JSON',
    ...REFUSED,
    ask: asking(PATH, { headers: { 'payment-signature': 'bm8ganNvbg==' } }),
    wrong: /not JSON/,
    next: /base64 of/,
  },
  {
    title: 'pays with JSON that is no payment',
    ...REFUSED,
    ask: presenting(PATH, { x402Version: 2, amount: '500' }),
    wrong: /accepted/,
    next: /accepted.*payload/s,
  },
  {
    title: 'pays by x402 version 1',
    ...REFUSED,
    ask: presenting(PATH, { x402Version: 1, scheme: 'exact', network: 'base', payload: {} }),
    wrong: /version/,
    next: /x402Version 2/,
  },
  {
    title: 'pays with a permit instead of an authorization',
    ...REFUSED,
    ask: changed(({ authorization, requirement }) => ({
      ...payloadOf(authorization, requirement),
      payload: { signature: '0x00', permit2Authorization: {} },
    })),
    wrong: /no authorization/,
    next: /EIP-3009/,
  },
  {
    title: 'presents two payments at once',
    status: 400,
    charged: 'unknown',
    ask: asking(PATH, { headers: { 'payment-signature': 'e30=', authorization: 'Payment abc' } }),
    wrong: /two payments/,
    next: /present one/,
  },
];

/** Payments that are readable and cannot be taken. */
export const refused: readonly Mistake[] = [
  {
    title: 'pays on another network',
    ...REFUSED,
    ask: accepting(() => ({ network: 'eip155:8453' })),
    wrong: /another network/,
    next: /eip155:5042/,
  },
  {
    title: 'pays in another token',
    ...REFUSED,
    ask: accepting(() => ({ asset: `0x${'22'.repeat(20)}` })),
    wrong: /asset/,
    next: /entr(y|ies) .*unchanged/,
  },
  {
    title: 'accepts a lower price',
    ...REFUSED,
    ask: accepting(() => ({ amount: '1' })),
    wrong: /amount/,
    next: /entr(y|ies) .*unchanged/,
  },
  {
    title: 'accepts a higher price',
    ...REFUSED,
    ask: accepting(() => ({ amount: '1000000' })),
    wrong: /amount/,
    next: /entr(y|ies) .*unchanged/,
  },
  {
    title: 'accepts to pay another recipient',
    ...REFUSED,
    ask: accepting(() => ({ payTo: `0x${'11'.repeat(20)}` })),
    wrong: /payTo/,
    next: /entr(y|ies) .*unchanged/,
  },
  {
    title: 'accepts a way to pay that is off',
    ...REFUSED,
    ask: accepting(() => ({ extra: { name: 'GatewayWalletBatched', version: '1' } })),
    wrong: /extra/,
    next: /entr(y|ies) .*unchanged/,
  },
  {
    title: 'signs for too little',
    ...REFUSED,
    ask: signing(() => ({ value: 1n })),
    wrong: /another amount/,
    next: /exactly/,
  },
  {
    title: 'signs for too much',
    ...REFUSED,
    ask: signing(() => ({ value: 1_000_000n })),
    wrong: /another amount/,
    next: /exactly/,
  },
  {
    title: 'signs for another recipient',
    ...REFUSED,
    ask: signing(() => ({ to: `0x${'11'.repeat(20)}` })),
    wrong: /another recipient/,
    next: /payTo/,
  },
  {
    title: 'signs a payment that has expired',
    ...REFUSED,
    ask: signing(() => ({ validBefore: nowSeconds() - 10n })),
    wrong: /expired/,
    next: /sign a new/i,
  },
  {
    title: 'signs a payment that expires before it can be settled',
    ...REFUSED,
    ask: signing(() => ({ validBefore: nowSeconds() + 10n })),
    wrong: /expires too soon/,
    next: /sign a new/i,
  },
  {
    title: 'signs a payment that is not valid yet',
    ...REFUSED,
    ask: signing(() => ({ validAfter: nowSeconds() + 600n })),
    wrong: /not valid yet/,
    next: /validAfter/,
  },
  {
    title: 'signs for the same token of another chain',
    ...REFUSED,
    ask: signing(() => ({ chainId: 1 })),
    wrong: /signature/,
    next: /chain.*domain|domain.*chain/s,
  },
  {
    title: 'sends a signature that nobody made',
    ...REFUSED,
    ask: changed(({ authorization, requirement }) =>
      payloadOf({ ...authorization, signature: new Uint8Array(65).fill(17) }, requirement),
    ),
    wrong: /signature/,
    next: /sign/i,
  },
  {
    title: 'signs by a wallet that is not deployed yet',
    ...REFUSED,
    ask: changed(({ authorization, requirement }) =>
      payloadOf({ ...authorization, signature: Buffer.from('6492'.repeat(16), 'hex') }, requirement),
    ),
    wrong: /not deployed/,
    next: /deploy/i,
  },
  {
    title: 'pays from an empty wallet',
    ...REFUSED,
    ask: async ({ origin, network }) => present(origin, PATH, await (await newBuyer(network, 0n)).sign(origin, PATH)),
    wrong: /too little USDC/,
    next: /fund|another wallet/i,
  },
  {
    title: 'pays for a second call with the payment of the first',
    ...REFUSED,
    ask: async ({ origin, network }) => {
      const payment = await (await newBuyer(network)).sign(origin, PATH);
      const bought = await present(origin, PATH, payment);
      if (bought.status !== 200) throw new Error(bought.body);
      return present(origin, OTHER, payment);
    },
    wrong: /already used/,
    next: /sign a new/i,
  },
  {
    title: 'pays for a request that is wrong itself',
    status: 400,
    charged: false,
    ask: async ({ origin, network }) =>
      present(origin, `${PATH}?gas=lots`, await (await newBuyer(network)).sign(origin, PATH)),
    wrong: /gas/,
    next: /whole number/,
  },
  {
    title: 'shows an invoice’s proof at a route that is paid in USDC',
    ...REFUSED,
    ask: crossing('/v1/lightning/fees/estimate', PATH),
    wrong: /no authorization/,
    next: /EIP-3009.*entry of accepts/,
  },
];

/** Payments in bitcoin. */
export const overLightning: readonly Mistake[] = [
  {
    title: 'pays in USDC at a route that is paid in bitcoin',
    ...REFUSED,
    ask: crossing(PATH, '/v1/lightning/fees/estimate'),
    wrong: /invoice/,
    next: /accepts/,
  },
  {
    title: 'shows a preimage of another payment',
    ...REFUSED,
    ask: crossing('/v1/lightning/fees/estimate', '/v1/lightning/fees/estimate'),
    wrong: /preimage/,
    next: /pay the invoice/i,
  },
  {
    title: 'shows the proof of another route',
    ...REFUSED,
    ask: crossing('/v1/lightning/rpc/health', '/v1/lightning/fees/estimate'),
    wrong: /another request/,
    next: /request .*paid for|pay the invoice/i,
  },
  {
    title: 'shows a proof that is not base64',
    ...REFUSED,
    ask: asking('/v1/lightning/fees/estimate', { headers: { 'payment-signature': 'preimage' + '!' } }),
    wrong: /not base64/,
    next: /base64 of/,
  },
  {
    title: 'shows an L402 token that is none',
    ...REFUSED,
    ask: asking('/v1/lightning/fees/estimate', { headers: { authorization: 'L402 token' } }),
    wrong: /cannot be read/,
    next: /macaroon|WWW-Authenticate/,
  },
];
