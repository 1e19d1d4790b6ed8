import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Adapter, ofNow } from '../../support/ledger/ledger-adapters.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { lightning } from '../../support/rails/lightning.ts';
import type { RailFixture, Shown } from '../../support/rails/rail-fixture.ts';
import { openShop, type Shop, type Stage } from '../../support/rails/rail-stage.ts';
import { toy } from '../../support/rails/toy.ts';
import { usdcDeposit, usdcVoucher } from '../../support/rails/usdc-channels.ts';
import { usdcFacilitator } from '../../support/rails/usdc-facilitator.ts';
import { usdcGateway } from '../../support/rails/usdc-gateway.ts';
import { usdcRelayer } from '../../support/rails/usdc-relayer.ts';
import { promisesOfCrashing } from './crashing.ts';
import { promisesOfPresenting } from './presenting.ts';
import { promisesOfReporting } from './reporting.ts';
import { promisesOfSelling } from './selling.ts';

/** Rails that one process sells over, and what each fixture may leave out. */
type Shelf = readonly (readonly [fixture: RailFixture, mayLack: readonly Shown[]])[];

/** Every rail that this suite tests. A process settles `usdc-exact` either by our relayer or by a facilitator. */
const SHOPS: Readonly<Record<string, Shelf>> = {
  'a shop with a relayer': [
    [toy, []],
    [usdcRelayer, []],
    [usdcGateway, []],
    [usdcDeposit, []],
    [usdcVoucher, ['expired', 'spent meanwhile', 'unclear settlement', 'secret kept from answers']],
    [lightning, ['expired', 'spent meanwhile']],
  ],
  'a shop with a facilitator': [[usdcFacilitator, []]],
};

/**
 * Rails that the lane of every change leaves out on PostgreSQL. `usdc-exact over the relayer` is there, and in the ledger the first four make the same
 * moves. What vouchers and Lightning write, other suites of test/ports compare on both databases. The slow lane has all rails on both.
 */
const LEFT_OUT: readonly RailFixture[] = [toy, usdcFacilitator, usdcGateway, usdcDeposit, usdcVoucher, lightning];

/** Tests the twelve promises of src/payment/README.md for every rail on one database. All rails use one network. */
export function railSuite(database: Adapter['name']): void {
  const isHere = (fixture: RailFixture) =>
    database === 'sqlite' || Boolean(process.env.SLOW) || !LEFT_OUT.includes(fixture);
  let network: EmbeddedNetwork;
  beforeAll(async () => {
    network = await startEmbeddedNetwork({ lightning: isHere(lightning), blockTimeMs: 200 });
  });
  afterAll(async () => {
    await network?.stop();
  });

  test('each rail shows every promise, except for gaps that this suite allows and that its fixture explains', () => {
    for (const [{ name, cannot }, mayLack] of Object.values(SHOPS).flat()) {
      expect(mayLack, name).toEqual(expect.arrayContaining(Object.keys(cannot)));
      for (const reason of Object.values(cannot)) expect(reason, name).toMatch(/\w+ \w+/);
    }
  });

  const inShop = (shelf: readonly RailFixture[], ledgerEnv: () => Promise<Record<string, string>>) => {
    let open: Shop;
    beforeAll(async () => {
      open = await openShop(shelf, network, await ledgerEnv());
      await open.start();
    });
    afterAll(async () => {
      await open?.close();
    });
    afterEach(() => open.calm());
    for (const [at, fixture] of shelf.entries()) {
      describe(fixture.name, () => {
        const stage = ofNow(() => open.stages[at] as Stage);
        promisesOfSelling(fixture, stage);
        promisesOfPresenting(fixture, stage);
        promisesOfReporting(fixture, stage);
      });
    }
    promisesOfCrashing(ofNow(() => open));
  };
  const inShops = (ledgerEnv: () => Promise<Record<string, string>>) => {
    for (const [name, all] of Object.entries(SHOPS)) {
      const shelf = all.map(([fixture]) => fixture).filter(isHere);
      if (shelf.length > 0) describe(name, () => inShop(shelf, ledgerEnv));
    }
  };
  describeServices('a rail keeps the twelve promises', inShops, database);
}
