import { type LightningProof, lightningProof } from '../../../../scripts/lib/lightning/lightning-proofs.ts';
import { asking, type Bench, type Mistake, posting } from './mistake.ts';

const SETTLE = '/facilitator/settle';
const BAD = { status: 400 } as const;
const REFUSED = { status: 200 } as const;

type Body = LightningProof['body'];
type Requirement = Body['paymentRequirements'];

/** Settles a proof, with both sides of it changed alike. */
const settling = (change: (requirement: Requirement) => object, payload?: object) => (bench: Bench) => {
  const { body } = lightningProof({ createdAt: Math.floor(Date.now() / 1000) });
  const requirement = { ...body.paymentRequirements, ...change(body.paymentRequirements) };
  const paymentPayload = { ...body.paymentPayload, accepted: requirement, ...(payload && { payload }) };
  return posting(SETTLE, { ...body, paymentPayload, paymentRequirements: requirement })(bench);
};

/** Settles a proof of which only one side is changed. */
const differing = (change: object) => (bench: Bench) => {
  const { body } = lightningProof({ createdAt: Math.floor(Date.now() / 1000) });
  return posting(SETTLE, { ...body, paymentRequirements: { ...body.paymentRequirements, ...change } })(bench);
};

const withExtra = (change: object) => settling(({ extra }) => ({ extra: { ...extra, ...change } }));

/** Calls of the facilitator with each member wrong. */
export const facilitator: readonly Mistake[] = [
  {
    title: 'settles nothing',
    ...BAD,
    ask: posting(SETTLE, ''),
    wrong: /body/,
    next: /x402Version.*paymentPayload.*paymentRequirements/s,
  },
  {
    title: 'settles a list',
    ...BAD,
    ask: posting(SETTLE, []),
    wrong: /body/,
    next: /object/,
  },
  {
    title: 'settles by x402 version 1',
    ...BAD,
    ask: posting(SETTLE, { x402Version: 1, paymentPayload: {}, paymentRequirements: {} }),
    wrong: /x402Version/,
    next: /2/,
  },
  {
    title: 'settles without the payment',
    ...BAD,
    ask: posting(SETTLE, { x402Version: 2, paymentRequirements: {} }),
    wrong: /paymentPayload/,
    next: /object/,
  },
  {
    title: 'settles without the requirements',
    ...BAD,
    ask: posting(SETTLE, { x402Version: 2, paymentPayload: {}, paymentRequirements: 'exact' }),
    wrong: /paymentRequirements/,
    next: /object/,
  },
  {
    title: 'settles a payment that accepts nothing',
    ...REFUSED,
    ask: posting(SETTLE, { x402Version: 2, paymentPayload: {}, paymentRequirements: { scheme: 'exact' } }),
    wrong: /scheme/,
    next: /exact/,
  },
  {
    title: 'settles a payment on a network that is none',
    ...REFUSED,
    ask: settling(() => ({ network: 'lnbtc:regtest' })),
    wrong: /network/,
    next: /\/facilitator\/supported/,
  },
  {
    title: 'settles where the buyer accepted another network',
    ...REFUSED,
    ask: differing({ network: 'lnbtc:000000000933ea01ad0ee984209779ba' }),
    wrong: /network/,
    next: /equal|same/,
  },
  {
    title: 'settles another amount than the buyer accepted',
    ...REFUSED,
    ask: differing({ amount: '26000' }),
    wrong: /amount/,
    next: /equal|same/,
  },
  {
    title: 'settles an amount that is a number',
    ...REFUSED,
    ask: settling(() => ({ amount: 25_000 })),
    wrong: /amount/,
    next: /decimal string of millisatoshis/,
  },
  {
    title: 'settles another asset',
    ...REFUSED,
    ask: settling(() => ({ asset: 'USDC' })),
    wrong: /asset/,
    next: /BTC/,
  },
  {
    title: 'settles a time limit of a day',
    ...REFUSED,
    ask: settling(() => ({ maxTimeoutSeconds: 86_400 })),
    wrong: /maxTimeoutSeconds/,
    next: /3600/,
  },
  {
    title: 'settles for a recipient that is no key',
    ...REFUSED,
    ask: settling(() => ({ payTo: '0x5e' })),
    wrong: /payTo/,
    next: /66 lower-case hex/,
  },
  {
    title: 'settles another transfer method',
    ...REFUSED,
    ask: withExtra({ assetTransferMethod: 'keysend' }),
    wrong: /assetTransferMethod/,
    next: /bolt11/,
  },
  {
    title: 'settles another payment flow',
    ...REFUSED,
    ask: withExtra({ paymentFlow: 'escrow' }),
    wrong: /paymentFlow/,
    next: /upfront/,
  },
  {
    title: 'settles without a request',
    ...REFUSED,
    ask: withExtra({ requestHash: 'abc' }),
    wrong: /requestHash/,
    next: /http:1|64 lower-case hex/,
  },
  {
    title: 'settles without an invoice',
    ...REFUSED,
    ask: withExtra({ invoice: '' }),
    wrong: /invoice/,
    next: /both/,
  },
  {
    title: 'settles an invoice that cannot be read',
    ...REFUSED,
    ask: withExtra({ invoice: 'lnbc1' }),
    wrong: /invoice/,
    next: /BOLT11/,
  },
  {
    title: 'settles without the preimage',
    ...REFUSED,
    ask: settling(() => ({}), {}),
    wrong: /preimage is missing/,
    next: /payload\.preimage/,
  },
  {
    title: 'settles a preimage in upper case',
    ...REFUSED,
    ask: settling(() => ({}), { preimage: 'AB'.repeat(32) }),
    wrong: /preimage/,
    next: /lower-case hex/,
  },
  {
    title: 'settles a preimage of another payment',
    ...REFUSED,
    ask: settling(() => ({}), { preimage: 'ab'.repeat(32) }),
    wrong: /preimage/,
    next: /SHA-256/,
  },
  {
    title: 'asks the facilitator to verify',
    ...BAD,
    ask: posting('/facilitator/verify', {}),
    wrong: /no verify step/,
    next: /\/facilitator\/settle/,
  },
  {
    title: 'settles a proof twice',
    ...REFUSED,
    ask: async (bench) => {
      const { body } = lightningProof({ createdAt: Math.floor(Date.now() / 1000) });
      await posting(SETTLE, body)(bench);
      return posting(SETTLE, body)(bench);
    },
    wrong: /already|before/,
    next: /not served it, serve; otherwise refuse/,
  },
];

/** Calls of the tools server. */
export const tools: readonly Mistake[] = [
  {
    title: 'calls a tool that there is not',
    status: 200,
    ask: calling('paid_weather'),
    wrong: /paid_weather/,
    next: /tools\/list/,
  },
  {
    title: 'calls a tool with an argument that it does not take',
    status: 200,
    ask: calling('paid_fees_estimate', { gaz: 1 }),
    wrong: /gaz/,
    next: /gas/,
  },
  {
    title: 'calls a tool without a required argument',
    status: 200,
    ask: calling('paid_packages_npm'),
    wrong: /name: (missing|required)/,
    next: /for example|package name/,
  },
  {
    title: 'speaks a version of MCP that there is not',
    status: 400,
    ask: calling('free_fees', {}, { 'mcp-protocol-version': '1999-01-01' }),
    wrong: /1999-01-01/,
    next: /supported versions/,
  },
  {
    title: 'accepts no form in which a tool answers',
    status: 406,
    ask: calling('free_fees', {}, { accept: 'text/html' }),
    wrong: /accept/i,
    next: /application\/json/,
  },
  {
    title: 'reads the tools server',
    status: 405,
    charged: false,
    ask: asking('/mcp'),
    wrong: /GET/,
    next: /POST/,
  },
];

/** Calls a tool over MCP. */
function calling(name: string, given: object = {}, headers: Record<string, string> = {}) {
  const params = { name, arguments: given };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const usual = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  return asking('/mcp', { method: 'POST', headers: { ...usual, ...headers }, body });
}
