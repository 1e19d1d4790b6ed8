import { asking, type Mistake, posting } from './mistake.ts';

const ESTIMATE = '/v1/paid/fees/estimate';
const NOT_THERE = { status: 404, charged: false } as const;
const BAD = { status: 400, charged: false } as const;
const UNPAID = { status: 402 } as const;
const OTHER_METHOD = { status: 405, charged: false } as const;

/** Requests of an address that is not served. */
export const addresses: readonly Mistake[] = [
  {
    ...{ title: 'asks in USDC for a route that is sold in bitcoin alone', ...NOT_THERE },
    ask: asking('/v1/paid/market/prices'),
    ...{ wrong: /in bitcoin only/, next: /\/v1\/lightning\/market\/prices/ },
  },
  {
    ...{ title: 'asks in bitcoin for a route that is sold in USDC alone', ...NOT_THERE },
    ask: asking('/v1/lightning/selftest/fail'),
    ...{ wrong: /in USDC only/, next: /\/v1\/paid\/selftest\/fail/ },
  },
  {
    ...{ title: 'asks under the free prefix for a route that is sold', ...NOT_THERE },
    ask: asking('/v1/fees/forecast'),
    ...{ wrong: /is sold/, next: /\/v1\/paid\/fees\/forecast.*\/v1\/lightning\/fees\/forecast/s },
  },
  {
    ...{ title: 'asks under the paid prefix for a route that is free', ...NOT_THERE },
    ask: asking('/v1/paid/network'),
    ...{ wrong: /is free/, next: /\/v1\/network/ },
  },
  {
    ...{ title: 'asks in bitcoin for a route that is free', ...NOT_THERE },
    ask: asking('/v1/lightning/health'),
    ...{ wrong: /is free/, next: /\/v1\/health/ },
  },
  {
    ...{ title: 'asks by MPP where MPP is off', ...NOT_THERE },
    ask: asking('/v1/mpp/fees/estimate'),
    ...{ wrong: /MPP is off/, next: /\/v1\/paid\/fees\/estimate/ },
  },
  {
    ...{ title: 'asks for the chain’s own segment under the wrong prefix', ...NOT_THERE },
    ask: asking('/v1/arc/wallet'),
    ...{ wrong: /is sold/, next: /\/v1\/paid\/chain\/wallet/ },
  },
  {
    ...{ title: 'mistypes a path', ...NOT_THERE },
    ask: asking('/v1/paid/fees/forcast'),
    ...{ wrong: /no such route/, next: /\/v1\/paid\/fees\/forecast/ },
  },
  {
    ...{ title: 'forgets the version', ...NOT_THERE },
    ask: asking('/paid/fees/estimate'),
    ...{ wrong: /no such route/, next: /\/v1\/paid\/fees\/estimate/ },
  },
  {
    ...{ title: 'ends a path with a slash', ...NOT_THERE },
    ask: asking(`${ESTIMATE}/`),
    ...{ wrong: /slash/, next: /\/v1\/paid\/fees\/estimate(?!\/)/ },
  },
  {
    ...{ title: 'doubles a slash', ...NOT_THERE },
    ask: asking('/v1//fees'),
    ...{ wrong: /slash/, next: /\/v1\/fees/ },
  },
  {
    ...{ title: 'writes a path in upper case', ...NOT_THERE },
    ask: asking('/V1/Paid/Fees/Estimate'),
    ...{ wrong: /lower case/, next: /\/v1\/paid\/fees\/estimate/ },
  },
  {
    ...{ title: 'asks for nothing that is near a route', ...NOT_THERE },
    ask: asking('/v1/paid/weather'),
    ...{ wrong: /no such route/, next: /\/v1\/paid lists|\/openapi\.json/ },
  },
  {
    ...{ title: 'sends a POST to a route that is read', ...OTHER_METHOD },
    ask: posting(ESTIMATE, {}),
    ...{ wrong: /POST/, next: /GET/ },
  },
  {
    ...{ title: 'sends a DELETE to a free route', ...OTHER_METHOD },
    ask: asking('/v1/fees', { method: 'DELETE' }),
    ...{ wrong: /DELETE/, next: /GET/ },
  },
  {
    ...{ title: 'reads the facilitator’s settle route', ...OTHER_METHOD },
    ask: asking('/facilitator/settle'),
    ...{ wrong: /GET/, next: /POST/ },
  },
  {
    ...{ title: 'sends a percent sign that escapes nothing', ...BAD },
    ask: asking('/v1/paid/%zz'),
    ...{ wrong: /URL/, next: /percent-encoding/ },
  },
];

/** Requests whose parameters or body are wrong. */
export const parameters: readonly Mistake[] = [
  {
    ...{ title: 'asks for a price without a required parameter', ...UNPAID },
    ask: asking('/v1/paid/packages/npm'),
    ...{ wrong: /name is missing.*400/s, next: /(for example|package name).*before you sign/s },
  },
  {
    ...{ title: 'asks for a price with an empty parameter', ...UNPAID },
    ask: asking('/v1/paid/packages/npm?name='),
    ...{ wrong: /name.*400/s, next: /before you sign|for example/ },
  },
  {
    ...{ title: 'asks for a price with a parameter that does not exist', ...UNPAID },
    ask: asking(`${ESTIMATE}?gaz=1`),
    ...{ wrong: /gaz.*400/s, next: /gas/ },
  },
  {
    ...{ title: 'asks for a price with a repeated parameter', ...UNPAID },
    ask: asking(`${ESTIMATE}?gas=1&gas=2`),
    ...{ wrong: /gas.*more than once.*400/s, next: /before you sign/ },
  },
  {
    ...{ title: 'asks for a price with a word where a number belongs', ...UNPAID },
    ask: asking(`${ESTIMATE}?gas=lots`),
    ...{ wrong: /gas.*400/s, next: /whole number from 1 to/ },
  },
  {
    ...{ title: 'asks for a price with half an address', ...UNPAID },
    ask: asking('/v1/paid/chain/wallet?address=0x12'),
    ...{ wrong: /address.*400/s, next: /40 hex/ },
  },
  {
    ...{ title: 'asks for a price with a symbol that the service does not watch', ...UNPAID },
    ask: asking('/v1/paid/fx/execution?symbol=DOGE'),
    ...{ wrong: /symbol.*400/s, next: /EURC/ },
  },
  {
    ...{ title: 'asks in bitcoin without a required parameter', ...BAD },
    ask: asking('/v1/lightning/packages/npm'),
    ...{ wrong: /name: (missing|required)/, next: /for example|package name/ },
  },
  {
    ...{ title: 'asks in bitcoin with a body', ...BAD },
    ask: asking('/v1/lightning/fees/estimate', { headers: { 'content-length': '2' }, body: '{}' }),
    ...{ wrong: /no body/, next: /query/ },
  },
  {
    ...{ title: 'asks a free route for what it does not take', ...BAD },
    ask: asking('/v1/network?verbose=1'),
    ...{ wrong: /verbose/, next: /takes none/ },
  },
  {
    ...{ title: 'asks a free route for too much', ...BAD },
    ask: asking('/v1/deploys?limit=5000'),
    ...{ wrong: /limit/, next: /from 1 to 200/ },
  },
  {
    ...{ title: 'looks up what is no payment’s id', ...NOT_THERE },
    ask: asking('/v1/payments/hello'),
    ...{ wrong: /id/, next: /nonce|transaction hash/ },
  },
  {
    ...{ title: 'looks up a payment that is not known', ...NOT_THERE },
    ask: asking(`/v1/payments/0x${'ab'.repeat(32)}`),
    ...{ wrong: /no payment/i, next: /nonce|transaction hash/ },
  },
  {
    ...{ title: 'searches with a limit in words', ...BAD },
    ask: asking('/v1/market/search?limit=many'),
    ...{ wrong: /limit/, next: /1 to 50/ },
  },
  {
    ...{ title: 'lists a route without naming it', ...BAD },
    ask: posting('/v1/market', {}),
    ...{ wrong: /url/, next: /send \{ "url"/ },
  },
  {
    ...{ title: 'sends a body without its type', status: 415, charged: false },
    ask: asking('/v1/market', { method: 'POST', body: '{}' }),
    ...{ wrong: /body/, next: /application\/json/ },
  },
  {
    ...{ title: 'sends a body that is not JSON', ...BAD },
    ask: posting('/v1/market', 'url=https://a.example'),
    ...{ wrong: /not valid JSON/, next: /JSON object/ },
  },
];
