import type RealDatabase from 'better-sqlite3';
import { WORLD } from '../engine/owner.ts';
import { LEDGER_QUERIES } from '../seam.ts';
import type { Instance } from '../service/instance.ts';
import { connectionsOf } from '../service/sqlite.ts';
import type { World } from '../world/world.ts';
import type { Handlers, MoveOf } from './move.ts';

const GWEI = 1_000_000_000n;
const WEI_PER_USDC = 10n ** 18n;

/** Everything that the world does to the service by itself; each trouble ends after its time. */
export function createTroubles(world: World): Handlers {
  const { scheduler, instances, providers, facilitator, gateway, lightning, sources, chain, accounts, catalogue } =
    world;
  const { ledger } = world;
  const later = (ms: number, label: string, what: () => void) => void scheduler.after(ms, WORLD, label, what);
  const named = (name: string): Instance | undefined => instances.find((one) => one.name === name);

  function during<T extends object>(mood: T, change: Partial<T>, ms: number, heal: () => void): void {
    Object.assign(mood, change);
    later(ms, 'heals', heal);
  }

  /** Counted in events of the instance's own, so that it dies anywhere in its work. */
  function kill({ at, afterEvents, downMs }: MoveOf<'kill'>): void {
    const instance = named(at);
    if (!instance || instance.isDead()) return;
    scheduler.afterEventsOf(instance.owner(), afterEvents, () => {
      instance.kill();
      later(downMs, `start ${at}`, () => void instance.boot());
    });
  }

  function sleep({ at, ms }: MoveOf<'sleep'>): void {
    const instance = named(at);
    instance?.sleep();
    world.noteSuspended(ms);
    later(ms, `wake ${at}`, () => instance?.wake());
  }

  function disk({ at, how, ms }: MoveOf<'disk'>): void {
    const instance = named(at);
    world.noteSpoiltDisk(ms);
    for (const db of instance ? connectionsOf(instance.owner(), LEDGER_QUERIES.file) : []) {
      spoil(db, how);
      later(ms, 'the disk is well', () => mend(db));
    }
  }

  function token({ how, ms }: MoveOf<'token'>): void {
    const slot = how === 'paused' ? 'paused' : (`blocked ${accounts.seller.address}` as const);
    chain.change((view) => view.set(slot, true));
    later(ms, 'the token is well', () => chain.change((view) => view.set(slot, false)));
  }

  function relayerGas({ usdc, ms }: MoveOf<'relayer gas'>): void {
    const set = (wei: bigint) => chain.change((view) => view.set(`balance ${accounts.relayer.address}`, wei));
    set(BigInt(Math.round(usdc * 1e6)) * 10n ** 12n);
    later(ms, 'gas for the relayer', () => set(100n * WEI_PER_USDC));
  }

  return {
    kill,
    sleep,
    disk,
    token,
    'relayer gas': relayerGas,
    stop: ({ at, downMs }) =>
      named(at)
        ?.stop()
        .then(() => later(downMs, `start ${at}`, () => void named(at)?.boot())),
    provider: ({ number, mood, ms }) => providers.upset(number, mood, ms),
    facilitator: ({ mood, ms }) => during(facilitator.mood, mood, ms, facilitator.heal),
    gateway: ({ mood, ms }) => during(gateway.mood, mood, ms, gateway.heal),
    node: ({ mood, ms }) => during(lightning.mood, mood, ms, lightning.heal),
    source: ({ which, mood, ms }) => during(sources.moods[which % sources.moods.length] ?? {}, mood, ms, sources.heal),
    ledger: ({ how, percent, ms }) => {
      // Who cannot reach the ledger knows no more than who sleeps.
      world.noteSuspended(ms);
      during(ledger.mood, { how, percent }, ms, () => Object.assign(ledger.mood, { how: 'well' }));
    },
    fee: ({ gwei, ms }) => {
      chain.setFee(BigInt(gwei) * GWEI);
      later(ms, 'the fee falls', () => chain.setFee(20n * GWEI));
    },
    stall: ({ ms }) => chain.stall(ms),
    moody: ({ ms }) => {
      catalogue.setMoody(true);
      later(ms, 'the data are well', () => catalogue.setMoody(false));
    },
    'drop pending': () => chain.pending().forEach(chain.drop),
    price: ({ percent }) => sources.move(percent),
  };
}

/** For real: SQLite itself finds no more room, or may not write. */
function spoil(db: RealDatabase.Database, how: 'full' | 'read-only'): void {
  if (!db.open) return;
  if (how === 'read-only') db.pragma('query_only = ON');
  else db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`);
}

/** Room again, and leave to write. */
export function mend(db: RealDatabase.Database): void {
  if (!db.open) return;
  db.pragma('query_only = OFF');
  db.pragma('max_page_count = 1073741823');
}
