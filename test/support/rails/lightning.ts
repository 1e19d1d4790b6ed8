import { randomBytes } from 'node:crypto';
import type { EmbeddedLightning } from '../../../src/embedded/lightning/lightning.ts';
import { decodeInvoice } from '../../../src/payment/lnbtc/bolt11.ts';
import { TESTNET } from '../../../src/payment/lnbtc/networks.ts';
import { type LightningRequirement, offeredBy, proofHeader } from '../lightning/lightning-buyer.ts';
import { until } from '../service/workers.ts';
import { startStandIn } from '../upstream/http-stand-in.ts';
import type { RailFixture, RailUnderTest, Wrong } from './rail-fixture.ts';

/** The dollars for a bitcoin at the embedded exchanges. */
const BTC_USD = 64_000;
const UPFRONT = 'the sats have moved before the proof is presented';

/** A proxy between the service and its node. It passes requests on, or leaves them without an answer. */
async function startNodeProxy({ lndUrl }: EmbeddedLightning) {
  let hangs = false;
  let left = 0;
  const server = await startStandIn(async ({ method, path, headers, text }) => {
    if (hangs) {
      left += 1;
      return null;
    }
    const macaroon = { 'Grpc-Metadata-macaroon': String(headers['grpc-metadata-macaroon']) };
    const answer = await fetch(lndUrl + path, { method, headers: macaroon, ...(text !== '' && { body: text }) });
    return { status: answer.status, json: await answer.json() };
  });
  return {
    url: server.url,
    hang: (): Awaited<ReturnType<RailUnderTest['hang']>> => {
      const before = left;
      hangs = true;
      return {
        arrived: () => until('the node was asked', () => left > before),
        heal: async () => {
          hangs = false;
        },
      };
    },
    stop: server.stop,
  };
}

/** The amount that the seller's node reports as received for a payment hash, in millisatoshis. */
async function received({ lndUrl, macaroon }: EmbeddedLightning, paymentHash: string): Promise<bigint> {
  const headers = { 'Grpc-Metadata-macaroon': macaroon };
  const answer = await fetch(`${lndUrl}/v1/invoice/${paymentHash}`, { headers });
  const { amt_paid_msat: paid } = (await answer.json()) as { amt_paid_msat?: string };
  return BigInt(paid ?? 0);
}

/** `lightning`: the answer is made first, then offered, then paid for. Under a shared key, where the node itself confirms each payment. */
export const lightning: RailFixture = {
  name: 'lightning',
  kind: 'paid-first',
  surface: 'lightning',
  cannot: {
    expired:
      'an invoice lives for five minutes of its node’s time; test/conformance/lightning/routes.test.ts moves a clock',
    'spent meanwhile': UPFRONT,
  },
  unitsOf: (priceUsd) => BigInt(Math.ceil((Number(priceUsd) * 1e8) / BTC_USD)) * 1000n,
  open: async (network) => {
    const node = network.lightning!;
    const proxy = await startNodeProxy(node);
    return {
      env: {
        ...{ LIGHTNING_RECEIVER: 'lnd', LIGHTNING_NODE_URL: proxy.url, LIGHTNING_NODE_SHARED: 'true' },
        LIGHTNING_TIMEOUT_MS: '2500',
      },
      secrets: [node.macaroon, network.relayer.privateKey.slice(2)],
      pay: async (challenge, wrong) => {
        const requirement = offeredBy(challenge);
        const isPaid = wrong !== 'without the money';
        const preimage = isPaid ? await node.pay(requirement.extra.invoice) : randomBytes(32).toString('hex');
        const right = proofHeader(requirement, preimage);
        const header = presented(wrong, requirement, preimage);
        const id = Buffer.from(decodeInvoice(requirement.extra.invoice)!.paymentHash).toString('hex');
        return {
          ...{ header, id, mended: header === right ? null : right },
          ...{ price: BigInt(requirement.amount), secret: preimage },
          lost: () => received(node, id),
        };
      },
      hang: async () => proxy.hang(),
      evidenceOf: ({ transaction }) => received(node, String(transaction)),
      close: proxy.stop,
    };
  },
};

function presented(wrong: Wrong | undefined, requirement: LightningRequirement, preimage: string): string {
  if (wrong === 'forged') return proofHeader(requirement, '11'.repeat(32));
  if (wrong === 'too small') return proofHeader({ ...requirement, amount: '1' }, preimage);
  if (wrong === 'of another network') return proofHeader({ ...requirement, network: TESTNET.id }, preimage);
  return proofHeader(requirement, preimage);
}
