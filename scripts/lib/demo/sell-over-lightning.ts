import { formatSats } from '../../../cli/money.ts';
import type { EmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { bindHttp } from '../../../src/payment/lightning/binding.ts';

interface Sale {
  readonly lightning: EmbeddedLightning;
  /** The service's, whose facilitator claims the proof. */
  readonly origin: string;
  readonly say: (line: string) => void;
  readonly stopping: AbortSignal;
}

/** The request that the other seller sells: its own address, which nobody calls here. */
const SOLD = 'https://seller.example/v1/weather?city=Oslo';
const AMOUNT_MSAT = 4000n;
const EXPIRY_SECONDS = 300;

/**
 * Plays a seller of other data, on the seller's node: makes an invoice over a request, lets the buyer pay it, posts the
 * proof to the facilitator, and posts it again. Prints each step. Throws unless the first is a success and the second is
 * refused. `docs/selling.md` shows the same as a sample.
 */
export async function sellOverLightning({ lightning, origin, say, stopping }: Sale): Promise<void> {
  say(`\nSelling as somebody else over Lightning  GET ${SOLD}`);
  const offer = await makeOffer(lightning, stopping);
  say(`  the seller’s node makes an invoice of ${formatSats(AMOUNT_MSAT)} over exactly this request`);
  const preimage = await lightning.pay(offer.extra.invoice);
  say('  the buyer pays it, and proves so to the seller with the preimage (not shown here)');
  const paymentPayload = { x402Version: 2, accepted: offer, payload: { preimage } };
  const proof = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: offer });
  const settle = async (): Promise<{ success?: unknown; errorReason?: unknown }> => {
    const headers = { 'content-type': 'application/json' };
    const options = { method: 'POST', headers, body: proof, signal: stopping };
    const answer = await fetch(`${origin}/facilitator/settle`, options);
    const body = await answer.text();
    say(`  ← ${answer.status}  ${body}`);
    return JSON.parse(body);
  };
  say('  → POST /facilitator/settle, with the proof and the seller’s own terms');
  const claimed = await settle();
  expect(claimed.success === true, 'the facilitator did not claim the proof');
  say('  → the same proof again');
  const again = await settle();
  expect(again.errorReason === 'duplicate_settlement', 'the facilitator claimed the same proof twice');
  say('  the seller serves the first request, and not the second');
}

/** The seller's terms for the request, with a fresh invoice of its node. */
async function makeOffer({ lndUrl, macaroon, network, nodeId }: EmbeddedLightning, signal: AbortSignal) {
  const binding = bindHttp({ method: 'GET', url: SOLD, body: new Uint8Array() });
  if (!binding) throw new Error(`${SOLD} cannot be bound into an invoice`);
  const hash = Buffer.from(binding.hash);
  const order = {
    value_msat: String(AMOUNT_MSAT),
    expiry: String(EXPIRY_SECONDS),
    description_hash: hash.toString('base64'),
  };
  const headers = { 'Grpc-Metadata-macaroon': macaroon };
  const answer = await fetch(`${lndUrl}/v1/invoices`, { method: 'POST', headers, body: JSON.stringify(order), signal });
  const { payment_request: invoice } = (await answer.json()) as { payment_request: string };
  const extra = {
    assetTransferMethod: 'bolt11',
    paymentFlow: 'upfront',
    invoice,
    requestHash: hash.toString('hex'),
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
  };
  const terms = { network, asset: 'BTC', amount: String(AMOUNT_MSAT), payTo: nodeId };
  return { scheme: 'exact', ...terms, maxTimeoutSeconds: EXPIRY_SECONDS, extra };
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
