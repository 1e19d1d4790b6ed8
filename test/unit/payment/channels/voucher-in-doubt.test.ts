import { describe, expect, test } from 'vitest';
import { AppError, Unavailable, UpstreamFailed } from '../../../../src/errors.ts';
import { AWAY, openChannelSale, PRICE } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';

// A buyer whose connection broke presents its voucher again. The sale is settled. Whatever fails then must not say
// `charged: false`, or the buyer pays elsewhere.

const ID = 'identifier-000001';
const UNREAD = '503 ledger_unavailable, charged: unknown';
const MUST_WAIT = '429 client_failures, charged: unknown';
const CONFLICT = '409 payment_identifier_conflict, charged: unknown';

/** A world in which a call of this voucher is being sold: its endpoint runs until `go`. */
async function openWhileSold(more: { identifier?: string | undefined } = {}) {
  const world = await openChannelSale();
  const held = createPause();
  const first = world.ask({ run: held.pause }, world.voucher(PRICE, more));
  await held.reached;
  const end = async (): Promise<void> => {
    held.go();
    expect(await first).toMatch(/^answer/);
  };
  return { ...world, again: () => world.ask({}, world.voucher(PRICE, more)), end };
}

describe('a voucher that is charged is answered as unknown', () => {
  test.each(['take the reply', 'find the sale', 'read the channel'] as const)(
    'where the ledger fails to %s',
    async (step) => {
      const { ask, voucher, another } = await openChannelSale();
      await ask({}, voucher(PRICE));
      const other = await another();
      other.on(step, AWAY);
      expect(await other.ask({}, voucher(PRICE))).toBe(UNREAD);
    },
  );

  test('where the ledger fails with an error of its own', async () => {
    const { ask, voucher, on } = await openChannelSale();
    await ask({}, voucher(PRICE));
    on('find the sale', () => Promise.reject(new Error('SQLITE_IOERR')));
    expect(await ask({}, voucher(PRICE))).toBe('500 internal, charged: unknown');
  });

  test('where the ledger fails to find the sale that its correction has missed', async () => {
    const { ask, voucher, on, count, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    count('find the sale');
    // Each presentation looks twice before it is corrected. The second correction looks once more.
    on('find the sale', async (_, nth) => (nth > 4 ? AWAY() : null));
    expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe('402 cumulative_amount_mismatch, charges: 500');
    await clock.advance(500);
    expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe(UNREAD);
    expect(count('find the sale')).toBe(5);
  });

  test('while its client must wait, and a fresh one is not', async () => {
    const { ask, voucher, failOften } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await failOften();
    // Another client cannot get the answer, and must not hear that nothing was charged.
    expect(await ask({ identity: 'two' }, voucher(PRICE))).toBe(MUST_WAIT);
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE))).toBe('429 client_failures, charged: false');
  });
});

describe('a voucher that is being sold is answered as unknown', () => {
  test('when the ledger fails in its turn', async () => {
    const { again, end, waiting, on, noted } = await openWhileSold();
    const second = again();
    await expect.poll(waiting).toBe(1);
    on('read the channel', AWAY);
    await end();
    expect((await noted()).charged).toBe(PRICE);
    expect(await second).toBe(UNREAD);
  });

  test.each([undefined, ID])(
    'when it is charged before its turn, and that fails; with identifier %s',
    async (identifier) => {
      const { again, end, on } = await openWhileSold({ identifier });
      const slow = createPause();
      on(identifier ? 'find the identifier' : 'read the channel', async (go) => {
        const row = await go();
        await slow.pause();
        return row;
      });
      const second = again();
      await slow.reached;
      await end();
      on('read the channel', AWAY);
      slow.go();
      expect(await second).toBe(UNREAD);
    },
  );

  test('while its client must wait', async () => {
    const { again, end, failOften } = await openWhileSold();
    await failOften();
    expect(await again()).toBe(MUST_WAIT);
    await end();
  });

  test('while its client must wait, also where the sale ends before that is known', async () => {
    const { again, end, failOften, on } = await openWhileSold();
    await failOften();
    const slow = createPause();
    on('read the channel', async (go, nth) => {
      const row = await go();
      if (nth === 1) await slow.pause();
      return row;
    });
    const second = again();
    await slow.reached;
    await end();
    slow.go();
    expect(await second).toBe(MUST_WAIT);
  });

  test('where another payment holds its identifier', async () => {
    const { ask, voucher, bed, end } = await openWhileSold();
    const of = await bed.open(10_000n);
    await ask({ tag: 'other' }, voucher(PRICE, { of, identifier: ID }));
    expect(await ask({}, voucher(PRICE, { identifier: ID }))).toBe(CONFLICT);
    await end();
  });
});

describe('a voucher that another process charges meanwhile is answered as unknown', () => {
  test('where its endpoint fails here', async () => {
    const { ask, voucher, another } = await openChannelSale();
    const other = await another();
    const run = async (): Promise<never> => {
      await other.ask({}, voucher(PRICE));
      throw new AppError(502, 'upstream_failed', 'away');
    };
    expect(await ask({ run }, voucher(PRICE))).toBe('502 upstream_failed, charged: unknown');
  });

  test('where its identifier belongs to that sale of another request', async () => {
    const { ask, voucher, another, on } = await openChannelSale();
    const other = await another();
    on('find the identifier', async (go) => {
      await other.ask({}, voucher(PRICE, { identifier: ID }));
      return go();
    });
    expect(await ask({ tag: 'b' }, voucher(PRICE, { identifier: ID }))).toBe(CONFLICT);
  });

  test('where the channel cannot be read again, which is not its buyer’s doing', async () => {
    const { ask, voucher, on, failed } = await openChannelSale();
    on('charge', async () => null);
    on('read the channel', async (go, nth) => {
      if (nth > 1) throw new Unavailable('chain_busy', 'busy');
      return go();
    });
    expect(await ask({}, voucher(PRICE))).toBe('503 chain_busy, charged: unknown');
    // Nor where the ledger shows lower charges later: another process is selling over this channel.
    on('read the channel', async (go, nth) => {
      if (nth === 2) throw new Unavailable('chain_busy', 'busy');
      return go();
    });
    expect(await ask({}, voucher(PRICE))).toBe('503 chain_busy, charged: unknown');
    expect(failed).toEqual([]);
  });

  test('where its own answer cannot be kept', async () => {
    const { ask, voucher, another, on } = await openChannelSale();
    const other = await another();
    on('charge', async () => {
      await other.ask({}, voucher(PRICE));
      throw new Unavailable('reply_store_full', 'full');
    });
    expect(await ask({}, voucher(PRICE))).toBe('503 reply_store_full, charged: unknown');
  });
});

test('a voucher of a channel that a lost ledger may have charged is answered as unknown until the chain is read', async () => {
  const { ask, voucher, bed, on, failOften } = await openChannelSale();
  on('read the channel', async () => null);
  bed.contract.before = () => {
    throw new UpstreamFailed('chain', 'no provider answered');
  };
  expect(await ask({}, voucher(PRICE))).toBe('503 settlement_unavailable, charged: unknown');
  await failOften();
  expect(await ask({}, voucher(PRICE))).toBe(MUST_WAIT);
});

test('a look for the identifier that fails is answered as unknown', async () => {
  const { ask, voucher, on } = await openChannelSale();
  on('find the identifier', AWAY);
  expect(await ask({}, voucher(PRICE, { identifier: ID }))).toBe(UNREAD);
});

describe('a fresh voucher is answered as uncharged', () => {
  test('where claims cannot be sent, although it has waited', async () => {
    const { ask, voucher, end, waiting, script, clock, on } = await openWhileSold();
    const second = ask({ tag: 'b' }, voucher(2n * PRICE));
    await expect.poll(waiting).toBe(1);
    const inTurn = createPause();
    on('read the channel', async (go) => {
      await inTurn.pause();
      return go();
    });
    await end();
    await inTurn.reached;
    script.cannotSend = 'no gas';
    await clock.advance(2001);
    inTurn.go();
    expect(await second).toBe('503 settlement_unavailable, charged: false');
  });

  test('where its answer cannot be kept', async () => {
    const { ask, voucher, on } = await openChannelSale();
    on('charge', () => Promise.reject(new Unavailable('reply_store_full', 'full')));
    expect(await ask({}, voucher(PRICE))).toBe('503 reply_store_full, charged: false');
  });

  test('where its endpoint fails', async () => {
    const { ask, voucher } = await openChannelSale();
    const run = () => Promise.reject(new AppError(404, 'not_found', 'no such thing'));
    expect(await ask({ run }, voucher(PRICE))).toBe('404 not_found, charged: false');
  });
});

test('a charge that the store may have made is nobody’s failure: the service was short itself', async () => {
  const { ask, voucher, on, failed } = await openChannelSale();
  on('charge', () => Promise.reject(new Error('the connection broke in the commit')));
  expect(await ask({}, voucher(PRICE))).toBe('503 settlement_unknown, charged: unknown');
  expect(failed).toEqual([]);
});
