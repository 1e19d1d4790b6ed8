import { newBuyer, type Payment } from '../../support/usdc/buyer.ts';
import { headerOf, payloadOf } from '../../support/usdc/payments.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import type { Shop } from './shop.ts';
import { presenting } from './usdc-sales.ts';

const PATH = '/v1/paid/test/usdc';
const BAD = `${PATH}?nonsense=1`;
const encoded = (payload: unknown) => ({ header: headerOf(payload) });
const nowSeconds = () => BigInt(Math.floor(Date.now() / 1000));

/** Headers that are no payment. They show that a header is judged before the parameters. */
export async function recordUnreadable(t: Transcript, { network, origin }: Shop): Promise<void> {
  const { authorization, requirement } = await (await newBuyer(network, 0n)).sign(origin, PATH);
  const good = payloadOf(authorization, requirement);
  const permit2 = { ...good, payload: { signature: '0x00', permit2Authorization: {} } };
  await t.ask('a header that is not base64', origin, PATH, presenting({ header: 'not base64!' }));
  await t.ask('a header without JSON', origin, PATH, presenting({ header: 'bm8ganNvbg==' }));
  await t.ask('an empty object', origin, PATH, presenting(encoded({})));
  await t.ask('x402 version 1', origin, PATH, presenting(encoded({ ...good, x402Version: 1 })));
  await t.ask(
    'a payload without its fields',
    origin,
    PATH,
    presenting(encoded({ ...good, payload: { authorization: {} } })),
  );
  await t.ask('another way to pay', origin, PATH, presenting(encoded(permit2)));
  await t.ask('the order: no header and bad parameters', origin, BAD);
  await t.ask('the order: an unreadable header and bad parameters', origin, BAD, presenting({ header: 'e30=' }));
  await t.ask('the order: another way to pay and bad parameters', origin, BAD, presenting(encoded(permit2)));
  const cheap = encoded(payloadOf(authorization, { ...requirement, amount: '1' }));
  await t.ask('the order: a wrong amount and bad parameters', origin, BAD, presenting(cheap));
  await t.ask('the order: a payer without money and bad parameters', origin, BAD, presenting(encoded(good)));
}

/** Readable payments that are refused. */
export async function recordUsdcRefusals(t: Transcript, { network, origin }: Shop): Promise<void> {
  const buyer = await newBuyer(network);
  const refuse = async (title: string, payment: Pick<Payment, 'header'>) => {
    await t.ask(title, origin, PATH, presenting(payment));
  };
  const { authorization, requirement } = await buyer.sign(origin, PATH);
  const accepting = (change: object) => encoded(payloadOf(authorization, { ...requirement, ...change }));
  await refuse('it accepts another network', accepting({ network: 'eip155:1' }));
  await refuse('it accepts another amount', accepting({ amount: '499' }));
  await refuse('it accepts another recipient', accepting({ payTo: `0x${'11'.repeat(20)}` }));
  await refuse('it accepts another token', accepting({ asset: `0x${'22'.repeat(20)}` }));
  await refuse('it accepts another scheme', accepting({ scheme: 'upto' }));
  await refuse('it accepts a Lightning network', accepting({ network: 'lnbtc:000000000019d6689c085ae165831e93' }));
  await refuse('it is signed for another amount', await buyer.sign(origin, PATH, { value: 499n }));
  await refuse('it is signed for another recipient', await buyer.sign(origin, PATH, { to: `0x${'11'.repeat(20)}` }));
  await refuse('it has expired', await buyer.sign(origin, PATH, { validBefore: nowSeconds() - 10n }));
  await refuse(
    'it expires before it can be settled',
    await buyer.sign(origin, PATH, { validBefore: nowSeconds() + 35n }),
  );
  await refuse('it is not valid yet', await buyer.sign(origin, PATH, { validAfter: nowSeconds() + 600n }));
  await refuse('it is signed for another chain', await buyer.sign(origin, PATH, { chainId: 1 }));
  const forged = { ...authorization, signature: new Uint8Array(65).fill(17) };
  await refuse('its signature is forged', encoded(payloadOf(forged, requirement)));
  const undeployed = { ...authorization, signature: Buffer.from('6492'.repeat(16), 'hex') };
  await refuse('its wallet is not deployed yet (ERC-6492)', encoded(payloadOf(undeployed, requirement)));
  await refuse('its payer holds nothing', await (await newBuyer(network, 0n)).sign(origin, PATH));
  await refuse('its payer holds too little', await (await newBuyer(network, 499n)).sign(origin, PATH));
}
