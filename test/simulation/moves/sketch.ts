import type { Random } from '../engine/random.ts';
import type { Scenario } from '../run/scenario.ts';
import { PAYER_NAMES } from '../world/payers.ts';
import type { Move } from './move.ts';

const CLIENTS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '2001:db8:1:1::7', '2001:db8:1:2::7'] as const;

/** What moves make, with the first letter of its names. */
const PREFIXES = { buy: 'p', offer: 'o', channel: 'c' } as const;
type Kind = keyof typeof PREFIXES;

/** A move without the pause after it, which is drawn later. */
export type Drawn = WithoutPause<Move>;
type WithoutPause<M> = M extends Move ? Omit<M, 'pauseMs'> & { readonly pauseMs?: number } : never;

/** What the drawing of moves knows: names, never what has become of them. */
export function createSketch(random: Random, scenario: Scenario) {
  const instances = Array.from({ length: scenario.instances }, (_, at) => String.fromCharCode(97 + at));
  const made: { id: string; kind: Kind }[] = [];
  let last = 0;

  const circumstances = () => ({
    from: random.pick(CLIENTS),
    at: scenario.twin && random.chance(0.3) ? 'twin' : random.pick(instances),
    identifier: random.chance(0.2) ? `identifier-${random.int(6)}-of-a-buyer` : null,
    abandonMs: random.chance(0.08) ? random.pick([1, 5, 40, 400]) : null,
    viaTools: scenario.tools && random.chance(0.3),
  });

  function newId(kind: Kind): string {
    last += 1;
    const id = `${PREFIXES[kind]}${last}`;
    made.push({ id, kind });
    return id;
  }

  /** One that was made before, rather lately. */
  function earlier(kind: Kind): string | null {
    const all = made.filter((one) => one.kind === kind);
    if (all.length === 0) return null;
    const back = Math.min(all.length - 1, random.chance(0.7) ? random.int(3) : random.int(all.length));
    return (all[all.length - 1 - back] as (typeof all)[number]).id;
  }

  return {
    random,
    scenario,
    instances,
    circumstances,
    newId,
    earlier,
    client: () => random.pick(CLIENTS),
    payer: () => random.pick(PAYER_NAMES),
    wallet: () => random.pick(['wallet0', 'wallet1', 'wallet2']),
    rich: () => random.pick(['rich0', 'rich1', 'rich2']),
    /** Any route. In 8 % of the draws it is the one that always fails. */
    route: () =>
      random.chance(0.08)
        ? '/selftest/fail'
        : random.weighted({
            '/sim/cheap': 40,
            '/sim/dear': 25,
            '/sim/slow': 6,
            '/chain/wallet': 14,
            '/domains/dns': 10,
          }),
    rail: (): 'usdc' | 'gateway' => (scenario.gateway && random.chance(0.6) ? 'gateway' : 'usdc'),
    /** Seconds that a deposit is good for; few, or more than the service takes, now and then. */
    depositValidFor: () => Number(random.weighted({ 590: 20, 60: 3, 12: 2, 5: 1, 7200: 1 })),
    /** Seconds that an authorization is good for. */
    validFor: (rail: 'usdc' | 'gateway') =>
      rail === 'gateway'
        ? random.pick([604_900, 605_500, 604_700])
        : random.weighted({ 5: 2, 12: 3, 60: 4, 600: 20, 604900: 10, 315360000: 1 }),
  };
}

export type Sketch = ReturnType<typeof createSketch>;
