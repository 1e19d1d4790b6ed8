import type { EmbeddedNetwork } from '../../../dev/network.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import {
  hashOfPreimage,
  type LightningProof,
  type LightningRequirement,
  proofHeader,
} from '../../support/lightning/lightning-buyer.ts';
import { startLightningService } from '../../support/lightning/lightning-service.ts';
import { until } from '../../support/service/workers.ts';
import { decodedIn, exchange, type Sent } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import { PLACE, type Shop, sold } from './shop.ts';

const PATH = '/v1/lightning/test/sats';
/** An invoice lasts 300 s, and its proof is accepted for 60 s more. */
const EXPIRED_MS = 366_000;
const presenting = (header: string): Sent => ({ headers: { 'payment-signature': header } });

/** Asks, pays the invoice and keeps the proof. The payment hash gets a name. */
async function payFor(
  { network, origin }: Pick<Shop, 'network' | 'origin'>,
  t: Transcript,
  path: string,
  name: string,
): Promise<LightningProof> {
  const { accepts } = decodedIn(await exchange(origin, path), 'payment-required');
  const requirement = (accepts as LightningRequirement[])[0]!;
  const preimage = await network.lightning!.pay(requirement.extra.invoice);
  const paymentHash = hashOfPreimage(preimage);
  t.name(paymentHash, name);
  return { header: proofHeader(requirement, preimage), preimage, paymentHash, requirement };
}

/** Answers to unpaid requests. They show that parameters are checked before a payment. */
export async function recordLightningUnpaid(t: Transcript, { origin }: Shop): Promise<void> {
  await until('the fee endpoints have blocks to answer from', async () => {
    const { checks } = JSON.parse((await exchange(origin, '/readyz')).body);
    return checks.collector.collected !== null;
  });
  await t.ask('fees/estimate', origin, '/v1/lightning/fees/estimate');
  await t.ask('fees/estimate with its parameter', origin, '/v1/lightning/fees/estimate?gas=50000');
  await t.ask('fees/forecast, a route without parameters', origin, '/v1/lightning/fees/forecast');
  await t.ask(
    'chain/wallet in the network’s own spelling',
    origin,
    `/v1/lightning/arc/wallet?address=0x${'ab'.repeat(20)}`,
  );
  await t.ask('chain/wallet without its required parameter', origin, '/v1/lightning/chain/wallet');
  await t.ask('a bad parameter', origin, `${PATH}?nonsense=1`);
  await t.ask('a parameter twice', origin, `${PATH}?tag=a&tag=b`);
  await t.ask('HEAD', origin, PATH, { method: 'HEAD' });
  await t.ask('a request with a body', origin, PATH, { headers: { 'content-length': '2' }, body: '{}' });
  await t.ask('a payment of x402 version 1', origin, PATH, { headers: { 'x-payment': 'e30=' } });
  await t.ask('the order: an unreadable payment and bad parameters', origin, `${PATH}?nonsense=1`, presenting('e30='));
  await t.ask('the order: an unreadable payment', origin, PATH, presenting('e30='));
  sold.sats.fail();
  await t.ask('a handler whose source fails', origin, PATH);
  sold.sats.recover();
}

/** A sale, its redelivery, uses of its proof elsewhere, and the lookup; then a handler that fails after the payment. */
export async function recordLightningSales(t: Transcript, shop: Shop): Promise<void> {
  const { origin } = shop;
  const path = `${PATH}?tag=sale`;
  const proof = await payFor(shop, t, path, 'payment hash 1');
  const lookup = `/v1/payments/${proof.paymentHash}`;
  await t.ask('the lookup before the proof is presented', origin, lookup);
  await t.ask('a sale', origin, path, presenting(proof.header));
  await t.ask('its redelivery', origin, path, presenting(proof.header));
  await t.ask('the same proof for another request', origin, `${PATH}?tag=other`, presenting(proof.header));
  await until('the delivery is noted', async () => (await exchange(origin, lookup)).body.includes('"delivered"'));
  await t.ask('the lookup by payment hash', origin, lookup);
  await t.ask('the spent proof at the facilitator', origin, '/facilitator/settle', settling(proof));

  const failing = `${PATH}?tag=failing`;
  const paid = await payFor(shop, t, failing, 'payment hash 2');
  sold.sats.fail();
  await t.ask('a handler that fails after the payment', origin, failing, presenting(paid.header));
  sold.sats.recover();
}

/** The facilitator call that claims a proof. */
function settling({ header, requirement }: LightningProof): Sent {
  const paymentPayload = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  const body = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: requirement });
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body };
}

/** Proofs that are refused. Each gets its reason and a new invoice. */
export async function recordLightningRefusals(t: Transcript, shop: Shop): Promise<void> {
  const { origin } = shop;
  const path = `${PATH}?tag=refused`;
  const { requirement, preimage } = await payFor(shop, t, path, 'payment hash 1');
  const refuse = async (title: string, change: object, shown: unknown = preimage) => {
    await t.ask(title, origin, path, presenting(proofHeader({ ...requirement, ...change }, shown)));
  };
  await refuse('no preimage', {}, null);
  await refuse('a preimage that is not hex', {}, 'xyz');
  await refuse('a preimage that is too short', {}, '00');
  await refuse('another preimage', {}, '00'.repeat(32));
  await refuse('another network', { network: 'eip155:5042' });
  await refuse('another amount', { amount: '999' });
  await refuse('another recipient', { payTo: `02${'11'.repeat(32)}` });
  await refuse('another life time', { maxTimeoutSeconds: 301 });
  await refuse('nothing of what was offered', { extra: {} });
  const unsigned = { ...requirement, extra: { ...requirement.extra, invoice: 'lnbc1' } };
  await refuse('an invoice that cannot be read', unsigned);
  const other = proofHeader({ ...requirement, amount: '999' }, preimage);
  await t.ask('the order: another amount and bad parameters', origin, `${PATH}?nonsense=1`, presenting(other));

  const elsewhere = `${PATH}?tag=claimed`;
  const claimed = await payFor(shop, t, elsewhere, 'payment hash 2');
  await t.ask('a claim at the facilitator', origin, '/facilitator/settle', settling(claimed));
  await t.ask('the proof that was claimed there', origin, elsewhere, presenting(claimed.header));
  await t.ask('the lookup of that claim', origin, `/v1/payments/${claimed.paymentHash}`);
}

/** A proof whose invoice has expired, and the answers of a service without a node. */
export async function recordLightningAway(t: Transcript, network: EmbeddedNetwork): Promise<void> {
  let shiftMs = 0;
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + shiftMs };
  const options = { catalogue: [sold.sats.endpoint], clock };
  const shop = await startLightningService(network.lightning!, { ...options, env: PLACE });
  const { origin } = shop;
  const path = `${PATH}?tag=late`;
  const late = await payFor({ network, origin }, t, path, 'payment hash 1');
  shiftMs = EXPIRED_MS;
  await t.ask('a proof whose invoice has expired', origin, path, presenting(late.header));
  await shop.stop();

  const bare = await startLightningService(network.lightning!, {
    ...options,
    env: { ...PLACE, LIGHTNING_RECEIVER: 'none' },
  });
  await t.ask('no node: an unpaid request', bare.origin, path);
  await t.ask('no node: a payment', bare.origin, path, presenting(late.header));
  await t.ask('no node: the descriptor', bare.origin, '/v1/lightning');
  await bare.stop();
}
