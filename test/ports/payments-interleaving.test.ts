import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import type { LedgerStore, Payment } from '../../src/store/ports/payments.ts';
import { describePorts, type OpenLedger, useLedger } from '../support/ledger/ledger-adapters.ts';
import { createLedgerModel, type ModelRow } from '../support/ledger/ledger-model.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { seed, seededRandom } from '../support/random.ts';

/** At least; a burst costs PostgreSQL some milliseconds. */
const BURSTS = process.env.SLOW ? { sqlite: 500, postgres: 500 } : { sqlite: 200, postgres: 40 };
const MOST_BURSTS = 1000;
const HAPPENED: readonly string[] = [
  ...['reserves', 'reuses', 'to settling', 'to settled', 'fails', 'to unknown'],
  ...['release ', 'broadcast', 'take '],
];
const NONCES = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8'];
const IDENTIFIERS = ['first', 'second', null, null];
const REVERTED = 'reverted';
const payerOf = (nonce: string): string => (nonce < 'n5' ? 'a' : 'b');
const addressOf = (payer: string): Buffer => Buffer.alloc(20, payer);
const textOf = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString();

interface World {
  readonly store: LedgerStore;
  readonly model: ReturnType<typeof createLedgerModel>;
  readonly pick: <T>(from: readonly T[]) => T;
  readonly now: number;
  /** Ids given so far, the latest last; the calls of one burst know each other's. */
  readonly ids: string[];
}
interface Step {
  readonly what: string;
  readonly is: Promise<unknown>;
  readonly should: unknown;
}

function reserveStep({ store, model, pick, ids }: World): Step {
  const nonce = pick(NONCES);
  const id = `p${String(ids.length).padStart(6, '0')}`;
  ids.push(id);
  const identifier = pick(IDENTIFIERS);
  const [maxOpen, reusable] = [pick([0, 2, 3]), pick([null, REVERTED])];
  const payer = payerOf(nonce);
  const identifierHash = identifier === null ? null : hash32(identifier);
  // Mostly the very same one again, sometimes another content under the same nonce.
  const authorization = pick([nonce, nonce, nonce, `another ${nonce}`]);
  const authorizationHash = hash32(authorization);
  const row = reservation(id, nonce, { payer: addressOf(payer), identifierHash, authorizationHash });
  const verb = model.rows().some((one) => one.nonce === nonce) ? 'reuses' : 'reserves';
  const should = model.reserve({ id, nonce, authorization, payer, identifier }, maxOpen, reusable);
  return { what: `${id} ${verb} ${nonce} as ${identifier}`, is: store.reserve(row, maxOpen, reusable), should };
}

/** Mostly one that is there as the model stands now, which knows the burst's earlier calls; else a late one, there or not. */
function someId({ model, pick, ids }: Pick<World, 'model' | 'pick' | 'ids'>): string {
  const known = model.rows().map(({ id }) => id);
  return pick([...known, ...ids.slice(-3)]);
}

function moveStep({ store, model, pick, now, ids }: World): Step {
  const id = someId({ model, pick, ids });
  const to = pick(['settling', 'settling', 'settled', 'settled', 'failed', 'unknown'] as const);
  const body = 'b'.repeat(pick([1, 300]));
  const reason = pick([REVERTED, 'cancelled']);
  switch (to) {
    case 'settling': {
      const is = store.move(id, ['reserved'], to, { checkedBlock: 7 }, { store: Buffer.from(body) });
      return { what: `${id} to ${to}`, is, should: model.move(id, ['reserved'], to, { reply: { store: body } }) };
    }
    case 'settled': {
      const keepUntil = now + 900;
      const is = store.move(id, ['settling', 'unknown'], to, { reason: null, endedAt: now }, { keepUntil });
      const should = model.move(id, ['settling', 'unknown'], to, { reason: null, reply: { keepUntil } });
      return { what: `${id} to ${to}`, is, should };
    }
    case 'failed': {
      const is = store.move(id, ['settling', 'unknown'], to, { reason, endedAt: now }, 'drop');
      return {
        what: `${id} fails`,
        is,
        should: model.move(id, ['settling', 'unknown'], to, { reason, reply: 'drop' }),
      };
    }
    default: {
      const is = store.move(id, ['settling'], to, {});
      return { what: `${id} to ${to}`, is, should: model.move(id, ['settling'], to, {}) };
    }
  }
}

function otherStep({ store, model, pick, now, ids }: World): Step {
  const id = someId({ model, pick, ids });
  switch (pick(['release', 'broadcast', 'take', 'take', 'purge'])) {
    case 'release':
      return { what: `release ${id}`, is: store.release(id, ['reserved']), should: model.release(id, ['reserved']) };
    case 'broadcast': {
      const entries = ids.slice(-4).map((one) => ({ id: one, transaction: hash32(`${one} ${now}`) }));
      const is = store.noteBroadcast(entries, ['settling', 'unknown']).then((noted) => [...noted].sort());
      const named = ids.slice(-4).map((one) => ({ id: one, transaction: `${one} ${now}` }));
      return { what: 'broadcast', is, should: model.noteBroadcast(named, ['settling', 'unknown']).sort() };
    }
    case 'take': {
      const is = store.takeReply(id, 2, now).then(textOf);
      return { what: `take ${id}`, is, should: model.takeReply(id, 2, now) };
    }
    default:
      return { what: 'purge', is: store.purgeReplies(now), should: model.purgeReplies(now) };
  }
}

const fromStore = ({ id, state, reason, transaction, deliveries, identifierHash }: Payment) => [
  ...[id, state, reason, transaction && Buffer.from(transaction).toString('hex'), deliveries],
  identifierHash && Buffer.from(identifierHash).toString('hex'),
];
const hexOf = (name: string | null): string | null => name && Buffer.from(hash32(name)).toString('hex');
const fromModel = ({ id, state, reason, transaction, deliveries, identifier }: ModelRow) => [
  ...[id, state, reason, hexOf(transaction), deliveries, hexOf(identifier)],
];

/** Everything that can be read, from the store and from the model. */
async function readings({ store, model }: World): Promise<readonly [unknown, unknown]> {
  const states = ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const;
  const rows = (await store.listByState(states, 1000)).map(fromStore);
  const held = await Promise.all(
    ['first', 'second'].map(async (name) => (await store.findByIdentifier(hash32(name)))?.id ?? null),
  );
  const wanted = model
    .rows()
    .map(fromModel)
    .sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));
  return [
    [rows, held, await store.replyBytes()],
    [wanted, ['first', 'second'].map(model.holderOf), model.replyBytes()],
  ];
}

async function forgetEnded({ sql }: OpenLedger, model: World['model']): Promise<void> {
  const ended = model.rows().filter(({ state }) => state === 'settled' || state === 'failed');
  if (ended.length === 0) return;
  await sql(`DELETE FROM usdc_payments WHERE id IN (${ended.map(({ id }) => `'${id}'`).join(', ')})`);
  for (const { id } of ended) model.forget(id);
}

describePorts('the payments’ store', (adapter) => {
  const ledger = useLedger(adapter, { synced: false });

  const bursts = BURSTS[adapter.name];
  const inTime = { timeout: 300_000 + MOST_BURSTS * 100 };
  test(
    `${bursts} random bursts of calls and more do what the same calls do one after the other (SEED=${seed})`,
    inTime,
    async () => {
      const random = seededRandom('ledger-interleaving');
      const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
      const store = ledger.stores.payments;
      const model = createLedgerModel();
      const ids = ['p000000'];
      const met = new Set<string>();
      let now = 1000;
      // Goes on until every outcome has occurred, which usually takes some dozens.
      const isOver = (burst: number) => burst >= bursts && HAPPENED.every((one) => met.has(one));
      for (let burst = 0; !isOver(burst) && burst < MOST_BURSTS; burst++) {
        now += pick([1, 100, 1000]);
        const world = { store, model, pick, now, ids };
        const steps = Array.from({ length: pick([1, 4, 8, 16]) }, () =>
          pick([reserveStep, reserveStep, moveStep, moveStep, moveStep, otherStep])(world),
        );
        const context = `SEED=${seed}, burst ${burst}`;
        const all = await Promise.all(steps.map(({ is }) => is));
        const [did, should] = [
          steps.map(({ what }, at) => [what, all[at]]),
          steps.map((one) => [one.what, one.should]),
        ];
        expect(did, context).toEqual(should);
        for (const [at, { what }] of steps.entries()) {
          if (all[at] !== false && all[at] !== null) met.add(what.replace(/^p\d+ |p\d+$| n\d| as \w+/g, ''));
        }
        const [is, wanted] = await readings(world);
        // Node's own comparison is many times faster; the matcher shows the difference where there is one.
        if (!isDeepStrictEqual(is, wanted)) expect(is, context).toEqual(wanted);
        // Now and then what ended goes, so that nonces and identifiers are free again.
        if (random() < 0.2) await forgetEnded(ledger, model);
      }
      expect([...met]).toEqual(expect.arrayContaining([...HAPPENED]));
    },
  );
});
