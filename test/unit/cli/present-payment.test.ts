import { afterEach, expect, test } from 'vitest';
import { CutOff, present as presentPayment, sellerOf } from '../../../cli/seller.ts';
import { type Answered, startStandIn } from '../../support/upstream/http-stand-in.ts';

const opened: Awaited<ReturnType<typeof startStandIn>>[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop();
});

async function start(answerTo: (count: number) => Answered) {
  let count = 0;
  const seller = await startStandIn(async () => {
    count += 1;
    return answerTo(count);
  });
  opened.push(seller);
  return seller;
}
const present = (url: string) => {
  const asked = sellerOf({ kind: 'http', method: 'GET', url: new URL(url), body: null });
  return presentPayment(asked, { 'payment-signature': 'signed' }, { say: () => {}, delay: async () => {} });
};

test('a redirect of a paid request is not followed, so that no third party gets the payment', async () => {
  const other = await start(() => ({ json: {} }));
  const seller = await start(() => ({ status: 307, headers: { location: other.url } }));
  const { reply } = await present(seller.url);
  expect([reply.status, other.asked]).toEqual([307, []]);
});

test('an answer that was cut off is told of when no other comes', async () => {
  const seller = await start((count) =>
    count === 1 ? { text: 'half', isCutOff: true, headers: { 'x-first': 'yes' } } : { isBroken: true },
  );
  const failure = await present(seller.url).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CutOff);
  expect((failure as CutOff).headers.get('x-first')).toBe('yes');
  expect(seller.asked).toHaveLength(6);
});

test('a seller that stays busy is asked six times, and its last answer counts', async () => {
  const seller = await start(() => ({ status: 409, json: { detail: 'busy' } }));
  const { reply, cutOff } = await present(seller.url);
  expect([reply.status, cutOff, seller.asked.length]).toEqual([409, null, 6]);
  expect(JSON.parse(reply.body.toString())).toEqual({ detail: 'busy' });
});
