import { createHash } from 'node:crypto';
import { hashOfPreimage } from '../../support/lightning/lightning-buyer.ts';
import { callMessage, MCP_HEADERS } from '../../support/service/mcp.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';
import { payloadOf } from '../../support/usdc/payments.ts';
import { exchange, type Sent } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import { type Shop, sold } from './shop.ts';

const TOOL = 'paid_test_tool';
const PAID = '/v1/paid/test/tool';
const LIGHTNING = { 'percall/rail': 'lightning' };

/** The request that sends one message to the tools server. */
export const posting = (message: object): Sent => ({
  method: 'POST',
  headers: MCP_HEADERS,
  body: JSON.stringify(message),
});
const holding = (payment: unknown) => ({ 'x402/payment': payment });

type Ask = (title: string, given?: object, meta?: object, tool?: string) => Promise<{ body: string }>;
const asking =
  (t: Transcript, { origin }: Shop): Ask =>
  (title, given, meta, tool = TOOL) =>
    t.ask(title, origin, '/mcp', posting(callMessage(tool, given, meta)));

/** The server's own description, and each tool: its parts about payment, and a hash over the whole. */
export async function recordTools(t: Transcript, { origin }: Shop): Promise<void> {
  const clientInfo = { name: 'test', version: '1.0.0' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  await t.ask('initialize', origin, '/mcp', posting({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
  const { body } = await exchange(origin, '/mcp', posting({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }));
  const { tools } = JSON.parse(body).result as { tools: { name: string; description: string; _meta?: object }[] };
  const lines = tools.map((tool) => {
    const hash = createHash('sha256').update(JSON.stringify(tool)).digest('hex').slice(0, 16);
    return `${tool.name} ${hash}\n  ${tool.description}\n  ${JSON.stringify(tool._meta) ?? 'no _meta'}`;
  });
  t.note('tools/list: name, start of the SHA-256 of all of it, description, _meta', lines.join('\n'));
  const priced = tools.find(({ name }) => name === TOOL);
  t.noteJson(`tools/list: ${TOOL}`, priced);
}

/** Demands, sales and refusals in USDC. */
export async function recordUsdcTools(t: Transcript, shop: Shop): Promise<void> {
  const { network, origin } = shop;
  const ask = asking(t, shop);
  const buyer = await newBuyer(network);
  await ask('a demand', { tag: 'a' });
  await ask('a demand of a real tool', {}, undefined, 'paid_fees_estimate');
  await ask('bad arguments', { nonsense: 1 });
  await ask('a rail that is not there', { tag: 'a' }, { 'percall/rail': 'cash' });
  const { authorization, requirement } = await buyer.sign(origin, PAID);
  const payment = payloadOf(authorization, requirement);
  await ask('the order: an unreadable payment and bad arguments', { nonsense: 1 }, holding('e30='));
  await ask('an unreadable payment', { tag: 'a' }, holding('e30='));
  await ask('x402 version 1', { tag: 'a' }, holding({ ...payment, x402Version: 1 }));
  await ask('another amount', { tag: 'a' }, holding({ ...payment, accepted: { ...requirement, amount: '1' } }));
  const poor = await (await newBuyer(network, 0n)).sign(origin, PAID);
  await ask('a payer who holds nothing', { tag: 'a' }, holding(payloadOf(poor.authorization, poor.requirement)));
  sold.tool.fail();
  await ask('a handler whose source fails', { tag: 'a' }, holding(payment));
  sold.tool.recover();
  await ask('a sale', { tag: 'a' }, holding(payment));
  await ask('its redelivery', { tag: 'a' }, holding(payment));
  await ask('the same payment for other arguments', { tag: 'b' }, holding(payment));
  const header = Buffer.from(JSON.stringify(payment)).toString('base64');
  await t.ask('its redelivery at the route', origin, `${PAID}?tag=a`, { headers: { 'payment-signature': header } });
  const info = { required: false, id: 'an-identifier-of-a-tool-call' };
  const [one, two] = [await buyer.sign(origin, PAID), await buyer.sign(origin, PAID)];
  const extensions = { 'payment-identifier': { info } };
  const identified = (given: typeof one) => holding(payloadOf(given.authorization, given.requirement, extensions));
  await ask('a sale under a payment identifier', { tag: 'c' }, identified(one));
  await ask('another payment under the same identifier', { tag: 'c' }, identified(two));
  await ask('a tool that takes sats alone, paid in USDC', { tag: 'a' }, identified(two), 'paid_test_sats_alone');
}

/** Demands, sales and refusals over Lightning. */
export async function recordLightningTools(t: Transcript, shop: Shop): Promise<void> {
  const ask = asking(t, shop);
  const given = { tag: 'sats' };
  const demand = JSON.parse((await ask('a demand', given, LIGHTNING)).body);
  const [requirement] = demand.result.structuredContent.accepts;
  const preimage = await shop.network.lightning!.pay(requirement.extra.invoice);
  t.name(hashOfPreimage(preimage), 'payment hash');
  const proof = (change: object = {}, shown = preimage) =>
    holding({ x402Version: 2, accepted: { ...requirement, ...change }, payload: { preimage: shown } });
  await ask('bad arguments', { nonsense: 1 }, LIGHTNING);
  await ask('the order: a proof and bad arguments', { nonsense: 1 }, proof());
  await ask('another preimage', given, proof({}, '00'.repeat(32)));
  await ask('another amount', given, proof({ amount: '999' }));
  await ask('the proof for other arguments', { tag: 'other' }, proof());
  await ask('a sale', given, proof());
  await ask('its redelivery', given, proof());
  await ask('the spent proof for other arguments', { tag: 'other' }, proof());
  sold.tool.fail();
  await ask('a demand of a handler whose source fails', { tag: 'failing' }, LIGHTNING);
  sold.tool.recover();
  await ask('a tool that takes sats alone', {}, undefined, 'paid_test_sats_alone');
}
