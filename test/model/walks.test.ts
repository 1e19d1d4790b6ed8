import { expect, test } from 'vitest';
import { canCheck } from '../../scripts/lib/model/checker.ts';
import { drawWalks, type ModelWrite } from '../../scripts/lib/model/walks.ts';
import { type Adapter, describeLedgers, useLedger } from '../support/ledger/ledger-adapters.ts';
import { type Compared, createReplay } from '../support/ledger/model-replay.ts';

const HAS_SPIN = await canCheck();
const IS_SLOW = process.env.SLOW === '1';
const WALKS: Readonly<Record<Adapter['name'], number>> = IS_SLOW
  ? { sqlite: 100_000, postgres: 10_000 }
  : { sqlite: 900, postgres: 100 };
/** Walks that one shell draws, while the ledger is taken through those before them. */
const AT_ONCE = 50;
/** What a thousand walks show at least once: each write, made and refused where it can be refused. */
const HAPPENED = [
  'reserve 1',
  'reserve 0',
  'abandon 1',
  'store 1',
  'note 1',
  'settled 1',
  'failed 1',
  'unknown',
  'recover',
];

/** A write's kind, and whether it was made. */
function kindOf({ what, given }: ModelWrite): string {
  if (what === 'unknown' || what === 'recover') return what;
  return `${what} ${what === 'reserve' ? Math.min(given[0] ?? 0, 1) : given[1]}`;
}

/** The walks from 1 to `count` with their numbers. */
async function* walks(count: number): AsyncGenerator<readonly [number, readonly ModelWrite[]]> {
  const draw = (from: number) => drawWalks(from, Math.min(from + AT_ONCE - 1, count));
  let next = draw(1);
  for (let from = 1; from <= count; from += AT_ONCE) {
    const drawn = await next;
    if (from + AT_ONCE <= count) next = draw(from + AT_ONCE);
    for (const [at, writes] of drawn.entries()) yield [from + at, writes];
  }
}

describeLedgers('the real ledger, through random walks of the model', (adapter) => {
  const open = useLedger(adapter, { synced: false });

  test.skipIf(!HAS_SPIN)(
    `has the model’s row after each write of ${WALKS[adapter.name]} walks, and keeps the answer that the model owes (skipped without spin)`,
    { timeout: 0 },
    async () => {
      const { payments } = open.stores;
      const seen = new Set<string>();
      const count = WALKS[adapter.name];
      for await (const [number, writes] of walks(count)) {
        const replay = createReplay(payments, number);
        const compared: (Compared & { readonly write: ModelWrite })[] = [];
        for (const write of writes) {
          compared.push({ write, ...(await replay.step(write)) });
          seen.add(kindOf(write));
        }
        expect(
          compared.map(({ write, ledger }) => ({ write, row: ledger })),
          `walk ${number}`,
        ).toEqual(compared.map(({ write, model }) => ({ write, row: model })));
        const last = writes.at(-1);
        if (last) {
          const { model, ledger } = await replay.end(last.after);
          expect(ledger, `the answer after walk ${number}`).toEqual(model);
        }
      }
      expect(HAPPENED.filter((kind) => !seen.has(kind))).toEqual([]);
    },
  );
});
