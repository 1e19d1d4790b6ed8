import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError, TooMany, Unavailable } from '../../../../../src/errors.ts';
import { asAppError } from '../../../../../src/http/problems.ts';
import { isBuyersDoing } from '../../../../../src/payment/limits.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { openVoucherSeller, orderOf, PRICE, presentVoucher } from '../../../../support/channels/voucher-seller.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';

// A buyer whose connection broke presents its voucher again. The sale is settled. Whatever fails then must not say `charged: false`, or the buyer pays
// elsewhere.

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
});
afterEach(() => bed.close());

/** As the stores throw it: src/store/{sqlite,postgres}/errors.ts. */
const fail = async (): Promise<never> => {
  throw new AppError(503, 'ledger_unavailable', 'the ledger does not answer', { retryAfterSeconds: 5 });
};
const present = (by: ReturnType<typeof openVoucherSeller>, order = orderOf()) =>
  presentVoucher(by, channel, PRICE, order);
/** How a sale ended: the status, the code and what the error says of the money. */
const endOf = async (sold: Promise<unknown>): Promise<unknown[]> => {
  const error = await sold.then(
    () => null,
    (thrown: unknown) => asAppError(thrown),
  );
  return error === null ? ['sold'] : [error.status, error.code, error.charged];
};

describe('a voucher that is charged, where the ledger fails', () => {
  beforeEach(() => present(openVoucherSeller(bed)));

  test.each([
    ['to write the redelivery', { ledger: () => ({ redeliver: fail }) }],
    ['to find the sale', { store: { findSale: fail } }],
    ['to read the channel', { store: { get: fail } }],
  ])('%s, is answered as unknown', async (_, changes) => {
    expect(await endOf(present(openVoucherSeller(bed, changes)))).toEqual([503, 'ledger_unavailable', 'unknown']);
  });

  test('with an error of its own, is answered as unknown', async () => {
    const broken = async (): Promise<never> => {
      throw new Error('SQLITE_IOERR');
    };
    expect(await endOf(present(openVoucherSeller(bed, { store: { findSale: broken } })))).toEqual([
      ...[500, 'internal', 'unknown'],
    ]);
  });

  test('to find the sale that a corrected voucher has missed, is answered as unknown', async () => {
    let looks = 0;
    // Each presentation looks twice before it is corrected. The second correction looks once more.
    const seller = openVoucherSeller(bed, { store: { findSale: async () => (++looks > 4 ? fail() : null) } });
    await expect(present(seller, orderOf('b'))).rejects.toMatchObject({ settlement: null });
    await bed.clock.advance(500);
    expect(await endOf(present(seller, orderOf('b')))).toEqual([503, 'ledger_unavailable', 'unknown']);
    expect(looks).toBe(5);
  });
});

test('a voucher that waits for its own sale is answered as unknown when the ledger fails in its turn', async () => {
  let isAway = false;
  const get = (id: Uint8Array) => (isAway ? fail() : bed.store.get(id));
  const seller = openVoucherSeller(bed, { store: { get } });
  const held = Promise.withResolvers<Buffer>();
  const first = present(seller, orderOf('a', { run: () => held.promise }));
  const second = endOf(present(seller));
  // The second one waits for its turn.
  await expect.poll(() => bed.clock.pendingSleeps().length).toBeGreaterThan(0);
  isAway = true;
  held.resolve(Buffer.from('answer'));
  await first;
  expect((await bed.noted(channel.id)).charged).toBe(PRICE);
  expect(await second).toEqual([503, 'ledger_unavailable', 'unknown']);
});

/** Sells a call whose endpoint waits for `answer`. Resolves once it runs. */
async function holdFirst(seller: ReturnType<typeof openVoucherSeller>, more: Parameters<typeof orderOf>[1] = {}) {
  const answer = Promise.withResolvers<Buffer>();
  const running = Promise.withResolvers<void>();
  const run = () => {
    running.resolve();
    return answer.promise;
  };
  const sold = present(seller, orderOf('a', { ...more, run }));
  await running.promise;
  return { sold, end: () => answer.resolve(Buffer.from('answer')) };
}

test.each([true, false])(
  'a voucher that is charged between its first read and its turn is answered as unknown when the turn fails; with an identifier: %s',
  async (hasIdentifier) => {
    const identifierHash = hasIdentifier ? hash32('identifier') : null;
    const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let [isSecond, isAway] = [false, false];
    const pause = async (): Promise<void> => {
      reached.resolve();
      await go.promise;
    };
    const seller = openVoucherSeller(bed, {
      store: {
        get: async (id) => {
          if (isAway) return fail();
          const row = await bed.store.get(id);
          if (isSecond && !hasIdentifier) await pause();
          return row;
        },
      },
      ledger: (real) => ({
        findByIdentifier: async (sought) => {
          if (isSecond) await pause();
          return real.findByIdentifier(sought);
        },
      }),
    });
    const first = await holdFirst(seller, { identifierHash });
    isSecond = true;
    const second = endOf(present(seller, orderOf('a', { identifierHash })));
    await reached.promise;
    first.end();
    await first.sold;
    isAway = true;
    go.resolve();
    expect(await second).toEqual([503, 'ledger_unavailable', 'unknown']);
  },
);

test('a voucher that is being sold is answered as unknown while its client must wait', async () => {
  const seller = openVoucherSeller(bed);
  const first = await holdFirst(seller);
  const admit = () => {
    throw new TooMany('client_failures', 'wait', 5);
  };
  expect(await endOf(present(seller, orderOf('a', { admit })))).toEqual([429, 'client_failures', 'unknown']);
  first.end();
  await first.sold;
});

test('a voucher that another process charges while the endpoint fails here is answered as unknown', async () => {
  const other = openVoucherSeller(bed);
  const run = async (): Promise<never> => {
    await present(other);
    throw new AppError(502, 'upstream_failed', 'away');
  };
  expect(await endOf(present(openVoucherSeller(bed), orderOf('a', { run })))).toEqual([
    ...[502, 'upstream_failed', 'unknown'],
  ]);
});

test('a voucher of a channel that a lost ledger may have charged is answered as unknown until the chain is read', async () => {
  const get = async () => null;
  const read = async (): Promise<never> => {
    throw new Unavailable('chain_busy', 'busy');
  };
  expect(await endOf(present(openVoucherSeller(bed, { store: { get }, read })))).toEqual([
    503,
    'chain_busy',
    'unknown',
  ]);
  const admit = () => {
    throw new TooMany('client_failures', 'wait', 5);
  };
  const limited = orderOf('a', { admit });
  expect(await endOf(present(openVoucherSeller(bed, { store: { get } }), limited))).toEqual([
    ...[429, 'client_failures', 'unknown'],
  ]);
});

test('a look for the identifier that fails is answered as unknown', async () => {
  const seller = openVoucherSeller(bed, { ledger: () => ({ findByIdentifier: fail }) });
  const order = orderOf('a', { identifierHash: hash32('identifier') });
  expect(await endOf(present(seller, order))).toEqual([503, 'ledger_unavailable', 'unknown']);
});

test('a fresh voucher that has waited is answered as uncharged where claims cannot be sent', async () => {
  let isStuck = false;
  const seller = openVoucherSeller(bed, { cannotSend: () => (isStuck ? 'no gas' : null) });
  const first = await holdFirst(seller);
  const second = endOf(presentVoucher(seller, channel, 2n * PRICE, orderOf('b')));
  await expect.poll(() => bed.clock.pendingSleeps().length).toBeGreaterThan(0);
  first.end();
  await first.sold;
  isStuck = true;
  await bed.clock.advance(2001);
  expect(await second).toEqual([503, 'settlement_unavailable', false]);
});

test('a voucher that is being sold is in doubt also where another payment holds its identifier', async () => {
  const identifierHash = hash32('identifier');
  const other = await bed.open(10_000n);
  const seller = openVoucherSeller(bed);
  await presentVoucher(seller, other, PRICE, orderOf('other', { identifierHash }));
  const first = await holdFirst(seller);
  expect(await endOf(present(seller, orderOf('a', { identifierHash })))).toEqual([
    ...[409, 'payment_identifier_conflict', 'unknown'],
  ]);
  first.end();
  await first.sold;
});

test('a voucher whose sale ends while its channel is read is in doubt when its client must wait', async () => {
  const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isSecond = false;
  const get = async (id: Uint8Array) => {
    const row = await bed.store.get(id);
    if (!isSecond) return row;
    reached.resolve();
    await go.promise;
    return row;
  };
  const seller = openVoucherSeller(bed, { store: { get } });
  const first = await holdFirst(seller);
  isSecond = true;
  const admit = () => {
    throw new TooMany('client_failures', 'wait', 5);
  };
  const second = endOf(present(seller, orderOf('a', { admit })));
  await reached.promise;
  first.end();
  await first.sold;
  go.resolve();
  expect(await second).toEqual([429, 'client_failures', 'unknown']);
});

test('a voucher that another process charges meanwhile is a conflict that says unknown', async () => {
  const identifierHash = hash32('identifier');
  const other = openVoucherSeller(bed);
  const seller = openVoucherSeller(bed, {
    ledger: (real) => ({
      findByIdentifier: async (hash) => {
        await present(other, orderOf('a', { identifierHash }));
        return real.findByIdentifier(hash);
      },
    }),
  });
  expect(await endOf(present(seller, orderOf('b', { identifierHash })))).toEqual([
    ...[409, 'payment_identifier_conflict', 'unknown'],
  ]);
});

test('a voucher that loses its charge to another process is answered as unknown when the channel cannot be read again, and its buyer is not to blame', async () => {
  let reads = 0;
  const busy = async (): Promise<never> => {
    throw new Unavailable('chain_busy', 'busy');
  };
  const seller = openVoucherSeller(bed, {
    charge: async () => null,
    store: { get: (id) => (++reads > 1 ? busy() : bed.store.get(id)) },
  });
  const lost: unknown = await present(seller).catch((error: unknown) => error);
  expect(lost).toMatchObject({ status: 503, code: 'chain_busy', charged: 'unknown' });
  expect(isBuyersDoing(lost, true)).toBe(false);
});

test('a voucher that another process charges while its answer is made is not said to be uncharged where its own answer cannot be kept', async () => {
  const other = openVoucherSeller(bed);
  const seller = openVoucherSeller(bed, {
    charge: async () => {
      await present(other);
      throw new Unavailable('reply_store_full', 'full');
    },
  });
  expect(await endOf(present(seller))).toEqual([503, 'reply_store_full', 'unknown']);
});

test('a fresh voucher is answered as uncharged where its answer cannot be kept', async () => {
  const charge = async (): Promise<never> => {
    throw new Unavailable('reply_store_full', 'full');
  };
  expect(await endOf(present(openVoucherSeller(bed, { charge })))).toEqual([503, 'reply_store_full', false]);
});

test('a fresh voucher is answered as uncharged where its endpoint fails', async () => {
  const run = async (): Promise<never> => {
    throw new AppError(404, 'not_found', 'no such thing');
  };
  expect(await endOf(present(openVoucherSeller(bed), orderOf('a', { run })))).toEqual([404, 'not_found', false]);
});
