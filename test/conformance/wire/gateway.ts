import { callMessage } from '../../support/service/mcp.ts';
import { until } from '../../support/service/workers.ts';
import type { createStillClock } from '../../support/still-clock.ts';
import { newBuyer, type Payment } from '../../support/usdc/buyer.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import type { GatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';
import { headerOf, payloadOf, type Requirement } from '../../support/usdc/payments.ts';
import { decodedIn, exchange } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import { posting } from './mcp.ts';
import { type Shop, WALLET } from './shop.ts';
import { presenting } from './usdc-sales.ts';

type StillClock = ReturnType<typeof createStillClock>;

const PATH = '/v1/paid/test/usdc';
const calling = (given: object, meta?: object) => posting(callMessage('paid_test_usdc', given, meta));

/** A payment through the Gateway by a new payer with this deposit, in base units. */
async function batched(shop: Shop, gateway: GatewayStandIn, units: bigint): Promise<Payment> {
  const { privateKey, address } = await newBuyer(shop.network, 0n);
  gateway.deposit(address, units);
  const { accepts } = decodedIn(await exchange(shop.origin, PATH), 'payment-required');
  const requirement = (accepts as Requirement[])[1] as Requirement;
  const authorization = signForGateway(privateKey, requirement, WALLET);
  return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
}

/** Sales and refusals of the Gateway's rail, and a settlement that it refuses. */
export async function recordGateway(t: Transcript, shop: Shop, gateway: GatewayStandIn): Promise<void> {
  const { origin } = shop;
  const payment = await batched(shop, gateway, 5000n);
  const sale = await t.ask('a sale', origin, `${PATH}?tag=a`, presenting(payment));
  await t.ask('its redelivery', origin, `${PATH}?tag=a`, presenting(payment));
  await t.ask('the same payment for another request', origin, `${PATH}?tag=b`, presenting(payment));
  const { transaction } = decodedIn(sale, 'payment-response');
  await t.ask('the lookup by transfer', origin, `/v1/payments/${transaction}`);
  const poor = await batched(shop, gateway, 499n);
  await t.ask('a payer whose deposit is too small', origin, PATH, presenting(poor));
  const changed = headerOf(payloadOf(payment.authorization, { ...payment.requirement, amount: '1' }));
  await t.ask('a payment that accepts another amount', origin, `${PATH}?tag=c`, presenting({ header: changed }));
  const { requirement } = await (await newBuyer(shop.network, 0n)).sign(origin, PATH);
  const other = await batched(shop, gateway, 5000n);
  const mixed = headerOf(payloadOf(other.authorization, requirement));
  await t.ask('a signature for the Gateway under the plain requirement', origin, PATH, presenting({ header: mixed }));
  await t.ask('the demand of a tool', origin, '/mcp', calling({ tag: 'e' }));
  const call = { tag: 'f' };
  const { authorization } = await batched(shop, gateway, 5000n);
  const forTool = payloadOf(authorization, payment.requirement);
  await t.ask('a sale by a tool', origin, '/mcp', calling(call, { 'x402/payment': forTool }));
  gateway.fault('refuses');
  await t.ask('a settlement that the Gateway refuses', origin, `${PATH}?tag=g`, presenting(other));
  gateway.fault(null);
  await t.ask('the refused payment again', origin, `${PATH}?tag=g`, presenting(other));
}

/** A settlement whose outcome is not known in time, the lookup meanwhile, and the answer afterwards. */
export async function recordUnknown(t: Transcript, { network, origin }: Shop, clock: StillClock): Promise<void> {
  const payment = await (await newBuyer(network)).sign(origin, PATH);
  const nonce = Buffer.from(payment.authorization.nonce).toString('hex');
  t.name(nonce, 'nonce');
  const found = async () => JSON.parse((await exchange(origin, `/v1/payments/${nonce}`)).body).payments[0];
  clock.stop();
  await network.pauseMining();
  await t.ask('a settlement that no block holds in time', origin, `${PATH}?tag=d`, presenting(payment));
  await until('its transaction is noted', async () => (await found()).transaction !== null);
  await t.ask('the lookup meanwhile', origin, `/v1/payments/${nonce}`);
  await network.resumeMining();
  await until('the payment has settled', async () => (await found()).state === 'settled');
  clock.start();
  await t.ask('the same payment once it has settled', origin, `${PATH}?tag=d`, presenting(payment));
}
