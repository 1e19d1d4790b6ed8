import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import type { LightningStore } from '../../src/store/ports/lightning.ts';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';
import { createLightningModel } from '../support/lightning/lightning-model.ts';
import {
  accountedOf,
  DAY,
  grantOf,
  HOUR,
  hashOf,
  invoiceOf,
  keyOf,
  NOON,
  nodeOf,
} from '../support/lightning/lightning-rows.ts';
import { seed, seededRandom } from '../support/random.ts';

/** At least; a burst costs PostgreSQL some milliseconds, and its readings as many. */
const BURSTS = process.env.SLOW ? { sqlite: 500, postgres: 500 } : { sqlite: 200, postgres: 40 };
const MOST_BURSTS = 1000;
const OUTCOMES = ['claimed', 'duplicate', 'daily_cap', 'client_cap', 'open_cap', true, false] as const;
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const CLIENTS = ['x', 'y', 'z'];
const HOLDERS = ['one:1', 'one:2', 'two:1'];
/** From a moment within a lease to more than a claim's seven days. */
const STEPS_MS = [1000, 1000, 60_000, 60_000, 10 * 60_000, HOUR, HOUR, 9 * HOUR, 4 * DAY];

type Model = ReturnType<typeof createLightningModel>;
interface World {
  readonly store: LightningStore;
  readonly model: Model;
  readonly pick: <T>(from: readonly T[]) => T;
  readonly now: number;
}
interface Step {
  readonly what: string;
  readonly is: Promise<unknown>;
  readonly should: unknown;
}

const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10);

function recordStep({ store, model, pick, now }: World): Step {
  const name = pick(NAMES);
  const record = invoiceOf(name, { issuedAt: now, forgetAt: now + pick([420_000, 3 * HOUR]) });
  const reply = 'r'.repeat(pick([1, 500]));
  const is = store.recordInvoice(record, Buffer.from(reply)).then(
    () => true,
    () => false,
  );
  return { what: `record ${name}`, is, should: model.record(name, record, reply) };
}

function claimStep({ store, model, pick, now }: World): Step {
  const name = pick(NAMES);
  const newPayee = `new ${dayOf(now)}`;
  const payTo = nodeOf(pick(['ours', 'theirs', newPayee, newPayee]));
  const more = { claimedAt: now, keepUntil: now + pick([HOUR, 2 * DAY]), payTo };
  const caps = { dailyCap: 2, clientCap: 1, payeeCap: 2, openCap: 1 };
  const client = hashOf(pick(CLIENTS));
  const account = { day: dayOf(now), clientHash: client, payeeClientHash: client, ...caps };
  const grant = {
    requestHash: hashOf(`request ${name}`),
    redeemUntil: now + 7 * DAY,
    route: '/v1/lightning/a',
    protocol: 'x402',
  };
  const claim = pick([true, false]) ? grantOf(name, { ...more, grant }) : accountedOf(name, account, more);
  return { what: `claim ${name}`, is: store.claim(claim), should: model.claim(name, claim) };
}

function grantStep({ store, model, pick, now }: World): Step {
  const name = pick(NAMES);
  const holder = pick(HOLDERS);
  const key = keyOf(name);
  const until = now + 30_000;
  const answer = 'a'.repeat(pick([2, 700]));
  switch (pick(['lease', 'lease', 'answer', 'answer', 'release', 'delivered', 'boot'])) {
    case 'lease': {
      const should = model.takeLease(name, holder, now, until);
      return { what: `${holder} takes ${name}`, is: store.takeLease(key, holder, now, until), should };
    }
    case 'answer': {
      const is = store.storeAnswer(key, holder, Buffer.from(answer));
      return { what: `${holder} answers ${name}`, is, should: model.storeAnswer(name, holder, answer) };
    }
    case 'release': {
      model.releaseLease(name, holder);
      return { what: `${holder} leaves ${name}`, is: store.releaseLease(key, holder), should: undefined };
    }
    case 'delivered': {
      const should = model.delivered(name, now, now + 900_000);
      return { what: `deliver ${name}`, is: store.delivered(key, now, now + 900_000), should };
    }
    default: {
      const is = store.releaseLeasesExcept('one');
      return { what: 'one starts anew', is, should: model.releaseLeasesExcept('one') };
    }
  }
}

/** Everything that can be read, from the store and from the model. */
async function readings({ store, model, now }: World): Promise<readonly [unknown, unknown]> {
  const day = dayOf(now);
  const text = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString();
  const is = {
    proofs: await Promise.all(
      NAMES.map(async (name) => {
        const key = keyOf(name);
        const bodies = [text(await store.keptReply(key)), text(await store.answer(key))];
        return [name, await store.findInvoice(key), await store.findClaim(key), ...bodies];
      }),
    ),
    counts: await store.facilitatorCounts(day, nodeOf('ours')),
    clients: await Promise.all(CLIENTS.map((client) => store.clientCount(day, hashOf(client)))),
    bytes: await store.bodyBytes(),
  };
  const should = {
    proofs: NAMES.map((n) => [n, model.invoice(n), model.find(n), model.reply(n), model.answer(n)]),
    counts: model.counts(day, nodeOf('ours')),
    clients: CLIENTS.map((client) => model.clientCount(day, hashOf(client))),
    bytes: model.bodyBytes(),
  };
  return [is, should];
}

describePorts('the Lightning rail’s store', (adapter) => {
  const ledger = useLedger(adapter, { synced: false });

  const bursts = BURSTS[adapter.name];
  const inTime = { timeout: 300_000 + MOST_BURSTS * 100 };
  test(`${bursts} random bursts and more do what a simple model does (SEED=${seed})`, inTime, async () => {
    const random = seededRandom('lightning-interleaving');
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const store = ledger.stores.lightning;
    const model = createLightningModel();
    const outcomes = new Set<unknown>();
    let now = NOON;
    let equal = 0;
    // Goes on until every outcome has occurred. Of 400 seeds, half take up to 65 bursts, and the longest takes 267.
    const isOver = (round: number) => round >= bursts && OUTCOMES.every((one) => outcomes.has(one));
    let round = 0;
    for (; !isOver(round) && round < MOST_BURSTS; round += 1) {
      now += pick(STEPS_MS);
      const world = { store, model, pick, now };
      const makers = Array.from({ length: pick([1, 4, 8, 12]) }, () =>
        pick([recordStep, claimStep, grantStep, grantStep]),
      );
      const steps = makers.map((make) => make(world));
      const all = await Promise.all(steps.map(({ is }) => is));
      const context = `SEED=${seed}, burst ${round}`;
      const [did, should] = [steps.map(({ what }, at) => [what, all[at]]), steps.map((one) => [one.what, one.should])];
      expect(did, context).toEqual(should);
      for (const one of all) outcomes.add(one);
      if (random() < 0.4) {
        await store.prune(now);
        model.prune(now);
      }
      const [is, wanted] = await readings(world);
      // Node's own comparison is many times faster; the matcher shows the difference where there is one.
      if (isDeepStrictEqual(is, wanted)) equal += 1;
      else expect(is, context).toEqual(wanted);
    }
    expect(equal).toBe(round);
    expect([...outcomes]).toEqual(expect.arrayContaining([...OUTCOMES]));
  });
});
