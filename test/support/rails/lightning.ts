import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { EmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { TESTNET } from '../../../src/payment/lightning/terms.ts';
import { createHold } from '../hold.ts';
import { type LightningRequirement, offeredBy, proofHeader } from '../lightning/lightning-buyer.ts';
import { startStandIn } from '../upstream/http-stand-in.ts';
import type { RailFixture, Wrong } from './rail-fixture.ts';
import { hangAt } from './signed-rail.ts';

/** The dollars for a bitcoin at the embedded exchanges. */
const BTC_USD = 64_000;
const UPFRONT = 'the sats have moved before the proof is presented';

/** How long a stopped node keeps a connection, in milliseconds. A short time-out of the service would end other requests too, at a pause. */
const KEEPS_MS = 2000;

/** A proxy between the service and its node. It passes requests on. While a test holds them, it breaks their connections in the end. */
async function startNodeProxy({ lndUrl }: EmbeddedLightning) {
  const { passed, hold } = createHold();
  const server = await startStandIn(async ({ method, path, headers, text }) => {
    const given = await Promise.race([passed().then(() => true), delay(KEEPS_MS, false, { ref: false })]);
    if (!given) return { isBroken: true };
    const macaroon = { 'Grpc-Metadata-macaroon': String(headers['grpc-metadata-macaroon']) };
    const answer = await fetch(lndUrl + path, { method, headers: macaroon, ...(text !== '' && { body: text }) });
    return { status: answer.status, json: await answer.json() };
  });
  return { url: server.url, hold, asked: () => server.asked.length, stop: server.stop };
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
        LIGHTNING_RECEIVER: 'lnd',
        LIGHTNING_NODE_URL: proxy.url,
        LIGHTNING_NODE_SHARED: 'true',
        LIGHTNING_TIMEOUT_MS: '60000',
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
          header,
          id,
          mended: header === right ? null : right,
          price: BigInt(requirement.amount),
          secret: preimage,
          lost: () => received(node, id),
        };
      },
      hang: async () => hangAt(proxy),
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
