import type { Endpoint } from '../../catalogue/endpoint.ts';
import type { Mount } from '../../catalogue/paths.ts';
import type { Requirement } from '../requirement.ts';
import type { Json } from './openapi-shapes.ts';

/**
 * The security schemes of the document, by protocol. Operations that are paid over Lightning or by MPP refer to those of `Authorization`. No operation refers to
 * `x402`, because crawlers take every scheme of the type `apiKey` for an account; such an operation has the header as a parameter.
 */
export const SECURITY_SCHEMES: Json = {
  x402: {
    type: 'apiKey',
    in: 'header',
    name: 'PAYMENT-SIGNATURE',
    description: 'x402 version 2: base64 JSON of the payment that the PAYMENT-REQUIRED header of the 402 asks for.',
  },
  L402: {
    type: 'http',
    scheme: 'L402',
    description:
      'L402 (LSAT): `L402 <macaroon>:<preimage>`, the macaroon as the 402’s WWW-Authenticate has it, the preimage of the paid invoice in hex.',
  },
  Payment: {
    type: 'http',
    scheme: 'Payment',
    description:
      'MPP: `Payment <base64url JSON>`, which repeats a challenge of the 402’s WWW-Authenticate with its proof.',
  },
};

const LIGHTNING_PROTOCOLS: readonly Json[] = [
  { x402: { protocol: 'x402', version: 2, scheme: 'exact', asset: 'BTC', maxTimeoutSeconds: 300 } },
  { l402: { currency: 'sat' } },
  { mpp: { method: 'lightning', intent: 'charge', currency: 'sat' } },
];

/** An amount of null means that the 402 names it: the sats are quoted at the rate of the moment. */
const LIGHTNING_OFFERS: readonly Json[] = [
  {
    ...{ intent: 'charge', method: 'lightning', amount: null, currency: 'sat' },
    description: 'Whole sats, quoted in the 402',
  },
];

/** The terms of an endpoint in USDC. */
interface UsdcTerms {
  requirementOf(endpoint: Endpoint<never>): Requirement;
  /** Every way to pay under `/v1/paid`. */
  acceptsOf(endpoint: Endpoint<never>): readonly Requirement[];
}

/**
 * How a priced operation is paid: the header parameter, the alternatives of `security`, and `x-payment-info` in the two forms that crawlers read: price
 * and protocols, and the offers of MPP. Only an operation whose 402 has a `Payment` challenge has offers. Empty for a free operation.
 */
export function describePayment(endpoint: Endpoint<never>, mount: Mount, terms: UsdcTerms): Json {
  const { price } = endpoint;
  if (price === null || mount === 'free') return {};
  const { security, header, ...ways } = waysToPay(endpoint, mount, terms);
  const [name, description] = header;
  return {
    headers: { type: 'object', properties: { [name]: { type: 'string', description } } },
    ...(security && { security }),
    'x-payment-info': { price: { mode: 'fixed', currency: 'USD', amount: price.usd }, ...ways },
  };
}

interface Ways {
  readonly protocols: readonly Json[];
  readonly offers?: readonly Json[];
  readonly security?: readonly Json[];
  /** The header of a payment, and its description. */
  readonly header: readonly [name: string, description: string];
}

function waysToPay(endpoint: Endpoint<never>, mount: Exclude<Mount, 'free'>, terms: UsdcTerms): Ways {
  switch (mount) {
    case 'paid':
      return {
        protocols: terms.acceptsOf(endpoint).map(x402),
        header: [SIGNATURE, `${PAYLOAD}; without it the answer is 402`],
      };
    case 'lightning':
      return {
        ...{ protocols: LIGHTNING_PROTOCOLS, offers: LIGHTNING_OFFERS },
        security: [{}, { L402: [] }, { Payment: [] }],
        header: [
          SIGNATURE,
          `${PAYLOAD}: \`accepted\` as offered, \`payload.preimage\` of the paid invoice; without it, and without an Authorization of L402 or Payment, the answer is 402`,
        ],
      };
    case 'mpp': {
      const { amount, asset: currency } = terms.requirementOf(endpoint);
      const charge = { intent: 'charge', method: 'evm', currency };
      return {
        ...{ protocols: [{ mpp: charge }], offers: [{ ...charge, amount }], security: [{ Payment: [] }] },
        header: ['Authorization', '`Payment <base64url JSON>`; without it the answer is 402'],
      };
    }
  }
}

const SIGNATURE = 'PAYMENT-SIGNATURE';
const PAYLOAD = 'Base64 JSON of an x402 version 2 payment payload';

function x402({ scheme, network, asset, amount, payTo, maxTimeoutSeconds }: Requirement): Json {
  return { x402: { protocol: 'x402', version: 2, scheme, network, asset, amount, payTo, maxTimeoutSeconds } };
}

/** `x-service-info` at the document's top: what the service is, for directories of MPP services. */
export function describeServiceInfo(publicOrigin: string): Json {
  const docs = { homepage: `${publicOrigin}/`, apiReference: `${publicOrigin}/docs`, llms: `${publicOrigin}/llms.txt` };
  return { categories: ['data', 'developer-tools', 'search'], docs };
}
