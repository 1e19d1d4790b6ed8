import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { AppError, Unavailable } from '../../../src/errors.ts';
import type { Order } from '../../../src/payment/call.ts';
import type { Ledger } from '../../../src/payment/ledger.ts';
import { createServe, IntentInDoubt } from '../../../src/payment/sale.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { signedPayment } from '../../support/usdc/payments.ts';
import { randomAuthorization } from '../../support/usdc/token-node.ts';

type Stored = Parameters<Ledger['storeIntent']>;

/** Serves one order; `store` is what the ledger does with the intent. */
function bench(store: () => Promise<boolean> = async () => true) {
  const latch = latchedEndpoint();
  const stored: Stored[] = [];
  const ledger = {
    storeIntent: (...given: Stored) => {
      stored.push(given);
      return store();
    },
  };
  const serve = createServe({ ledger: ledger as Ledger, sources: {} as Sources, handlerTimeoutMs: 1000 });
  const authorization = randomAuthorization();
  const order = {
    endpoint: latch.endpoint,
    params: { tag: 'a' },
    authorization,
    payment: signedPayment(authorization),
  } as {
    -readonly [Key in keyof Order<Sources>]: Order<Sources>[Key];
  };
  const buyer = new AbortController();
  const answer = () => serve('id', order, { checkedBlock: 7, hasCode: true }, buyer.signal);
  return { latch, stored, authorization, buyer, answer, order };
}

test('a reply is stored with all that settling needs before it is handed on', async () => {
  const { answer, stored, authorization } = bench();
  const body = await answer();
  expect(JSON.parse(String(body))).toEqual({ tag: 'a', run: 1 });
  const { signature } = authorization;
  expect(stored).toEqual([['id', { signature, checkedBlock: 7, payerHasCode: true, body }]]);
});

test('a buyer who leaves while the reply is made pays nothing: no intent is stored', async () => {
  const { answer, stored, latch, buyer } = bench();
  latch.close();
  const started = latch.started();
  const gone = answer().catch((error: unknown) => error);
  await started;
  buyer.abort();
  latch.open();
  expect(await gone).toMatchObject({ status: 499, code: 'client_gone' });
  expect(stored).toEqual([]);
});

test('a buyer who leaves at the last moment, while the reply is checked, pays nothing either', async () => {
  const { answer, stored, latch, buyer, order } = bench();
  order.endpoint = {
    ...latch.endpoint,
    result: z.object({
      tag: z.string().refine(() => {
        buyer.abort();
        return true;
      }),
    }),
  };
  expect(await answer().catch((error: unknown) => error)).toMatchObject({ status: 499, code: 'client_gone' });
  expect(stored).toEqual([]);
});

test('a reply that does not fit in the reply store is not sold', async () => {
  const error = await bench(async () => false)
    .answer()
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Unavailable);
  expect(error).toMatchObject({ status: 503, code: 'reply_store_full', charged: false, retryAfterSeconds: 30 });
});

test('a store that fails in this step leaves the intent in doubt, with what failed as its cause', async () => {
  const cause = new AppError(503, 'ledger_unavailable', 'the disk is away');
  const error = await bench(() => Promise.reject(cause))
    .answer()
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(IntentInDoubt);
  expect((error as Error).cause).toBe(cause);
});
