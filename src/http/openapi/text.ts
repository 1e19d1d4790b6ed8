import { chainTitle, type NamedChain } from '../../lib/service.ts';
import type { Requirement } from '../documents.ts';
import type { Json } from './components.ts';

// What OpenAPI says in prose, and the short document that keeps only what is sold.

/** How to pay, and what is never charged. `ceiling`: the most expensive route's requirement. */
export function describeService(ceiling: Requirement | undefined, chain: NamedChain): string {
  const { network = '', asset = '', amount = '0' } = ceiling ?? {};
  return `Data by the call: free summaries under \`/v1\`, priced detail under \`/v1/paid\`. No account, no key.
The chain of the routes \`fees\`, \`chain\`, \`deploys\`, \`rpc\`, \`fx\`, \`token\`, \`activity\`, \`market\` and \
\`network\` is ${chainTitle(chain)}, and no other.

## How to pay
Every \`GET\` under \`/v1/paid\` answers 402 until it is paid over x402 version 2. The \`PAYMENT-REQUIRED\` header \
(base64 JSON) says
what to pay: scheme \`exact\`, USDC on ${chain.name} (\`${network}\`), in base units with 6 decimals. Sign the \
EIP-3009 authorization it asks for and repeat the
request with \`PAYMENT-SIGNATURE\`; any x402 client does both. The answer then carries \`PAYMENT-RESPONSE\` with the \
hash of the transfer.

Stock x402 clients pay only in assets that they know, and this one they do not: allow it once, with a ceiling for one \
payment.

\`\`\`ts
client.setSpendControls({ allowedAssets: [{ network: "${network}", asset: "${asset}", maxAmountPerPayment: "${amount}" \
}] });
\`\`\`

## Paying in bitcoin
The same routes stand under \`/v1/lightning\`, paid in sats over x402's \`exact\` scheme on Lightning. Only an answer \
that exists is sold: parameters are
judged and the data is fetched first, then the 402 comes with a BOLT11 invoice that binds this very request. Pay it \
and repeat the request, byte
for byte, with \`PAYMENT-SIGNATURE\`: the offer as \`accepted\`, the preimage as \`payload.preimage\`. The same 402 \
asks for the same invoice over L402 and MPP
too (\`WWW-Authenticate\`); then the proof goes into \`Authorization\`, and any L402 wallet does that by itself. A \
proof stays good for 7 days until its answer is
delivered, and gets the same bytes for 15 minutes more. \`GET /v1/lightning\` tells node, rate and prices; \
\`/facilitator\` claims such proofs for any seller.

## What is never charged
A payment is settled only after the answer exists: a bad parameter (400), a thing that does not exist (404), a limit \
(429), a fault of
ours (500), a failing source (502) and a refused payment (402) cost nothing. \`GET /v1/paid/selftest/fail\` always \
fails, so that you can check that.
Only an answer with \`charged: "unknown"\` leaves it open: a settlement has no final answer yet (503), the payment is \
being served (409), the service did not
look at it (429), the ledger does not answer (503), or its settlement failed before. Repeat the
request with the same payment; nothing is paid twice. The same payment for the same request gets the same answer again \
for 15 minutes, uncharged,
from the same address, or under the same \`payment-identifier\`, which is needed where a proxy hides the address.

## Conventions
Money and big integers are decimal strings, times are Unix seconds named \`…At\`, unknown is \`null\`. Errors are RFC \
9457 problem details with a
stable \`code\`. An unknown or repeated parameter is refused on every route, so that a typo is neither paid for nor \
answered with something else.
Limits a minute count by IPv4 address and by IPv6 /64, four times as much by /48, and are reported in \`RateLimit-*\` \
headers. Every answer carries \`X-Request-Id\`.`;
}

export function tagsWith(mpp: boolean): typeof TAGS {
  return TAGS.filter(({ name }) => mpp || name !== 'mpp');
}

const TAGS = [
  { name: 'free', description: 'Summaries; no payment, no account' },
  { name: 'paid', description: 'Detail, paid per call in USDC over x402' },
  { name: 'lightning', description: 'The same detail, paid per call in bitcoin over Lightning' },
  { name: 'mpp', description: 'The same detail, paid per call in USDC by MPP’s method `evm`' },
  { name: 'market', description: 'Payable routes of this service and of other sellers, found by search' },
  { name: 'facilitator', description: 'Claims Lightning proofs for any seller' },
  { name: 'meta', description: 'About the service itself' },
];

/** Directories of paid services read no more. */
const MAX_PRICED_BYTES = 64 * 1024;

/** Without answers' schemas; where it would be too large with every way to pay, without descriptions of routes too. */
export function pricedOnly(document: Json): Json {
  const { openapi, info, servers, components, tags, paths } = document;
  const { title, version, contact, license } = info as Json;
  const { securitySchemes } = components as Json;
  const priced = Object.entries(paths as Record<string, { get?: WholeGet }>).flatMap(([path, { get }]) =>
    get?.['x-payment-info'] ? [[path, get] as const] : [],
  );
  const used = new Set(priced.flatMap(([, get]) => get.tags));
  const written = (isDescribed: boolean): Json => ({
    openapi,
    info: { title, version, description: DESCRIPTION, contact, license },
    'x-service-info': document['x-service-info'],
    servers,
    tags: (tags as typeof TAGS).filter(({ name }) => used.has(name)),
    paths: Object.fromEntries(priced.map(([path, get]) => [path, { get: slim(get, isDescribed) }])),
    components: { securitySchemes },
  });
  const whole = written(true);
  return Buffer.byteLength(JSON.stringify(whole)) < MAX_PRICED_BYTES ? whole : written(false);
}

const DESCRIPTION =
  'The priced routes alone, for crawlers that read no more than 64 KiB. The whole document is at /openapi.json. Only ' +
  'the 402 of a route is binding.';

type WholeGet = Json & { readonly tags: readonly string[]; readonly parameters?: readonly Json[] };

/** The whole document has the schemas. */
const ANSWERS = { 200: { description: 'The answer' }, 402: { description: 'Not paid; its headers say how to pay' } };

function slim(operation: WholeGet, isDescribed: boolean): Json {
  const { operationId, tags, summary, description, security, parameters = [] } = operation;
  const query = parameters.filter((parameter) => parameter.in === 'query');
  return {
    operationId,
    tags,
    summary,
    ...(isDescribed && { description }),
    security,
    ...(query.length > 0 && {
      parameters: query.map(({ name, required, schema }) => ({ name, in: 'query', required, schema })),
    }),
    responses: ANSWERS,
    'x-payment-info': operation['x-payment-info'],
  };
}
