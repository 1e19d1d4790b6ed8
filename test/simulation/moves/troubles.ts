import type { Random } from '../engine/random.ts';
import type { WireFault } from '../network/wire.ts';
import type { FloodKind, MoveName } from './move.ts';
import type { Drawn, Sketch } from './sketch.ts';

const WIRE_FAULTS: readonly WireFault[] = [
  ...(['refused', 'hangs before', 'hangs after', 'reset before', 'reset after', '503 before', '502 after'] as const),
];

const FLOODS: readonly FloodKind[] = ['bad signatures', 'bad signatures', 'empty accounts', 'garbage', 'unpaid offers'];

const wireFault = (random: Random) => ({ fault: random.pick(WIRE_FAULTS), faultPercent: random.pick([30, 100]) });
const span = (random: Random): number => random.pick([300, 1500, 4000, 10_000]);

/** What the world itself does to the service. */
export function drawTrouble(name: MoveName, sketch: Sketch): Drawn | null {
  const { random } = sketch;
  const at = random.pick(sketch.instances);
  const ms = span(random);
  const sellsOffers = sketch.scenario.lightning !== 'off';
  switch (name) {
    case 'wait':
      return { do: 'wait', ms: random.pick([50, 500, 2000, 8000]) };
    case 'leap':
      return { do: 'leap', ms: random.pick([20_000, 700_000, 90_000_000]) };
    case 'flood':
      return {
        do: 'flood',
        kind: random.pick(FLOODS.filter((kind) => kind !== 'unpaid offers' || sellsOffers)),
        perSecond: random.pick([5, 10]),
        seconds: random.between(4, 10),
        addresses: random.pick([1, 4, 40]),
        ipv6: random.chance(0.3),
      };
    case 'kill':
      return { do: 'kill', at, afterEvents: random.int(40), downMs: random.pick([0, 200, 2000, 20_000]) };
    case 'stop':
      return { do: 'stop', at, downMs: random.pick([0, 1000]) };
    case 'sleep':
      return { do: 'sleep', at, ms: random.pick([500, 3000, 7000, 20_000]) };
    case 'provider':
      return { do: 'provider', number: random.int(3), mood: providerMood(random), ms };
    case 'facilitator':
      return {
        do: 'facilitator',
        ms,
        mood: random.chance(0.6)
          ? wireFault(random)
          : random.chance(0.4)
            ? { slowMs: random.pick([2000, 9000]) }
            : { lies: random.pick(['another hash', 'success without a transaction', 'refused after all', 'pending']) },
      };
    case 'gateway':
      return {
        do: 'gateway',
        mood: random.pick([
          ...[wireFault(random), wireFault(random)],
          ...[{ readFault: random.pick(WIRE_FAULTS) }, { lateMs: random.pick([1500, 8000]) }],
        ]),
        ms,
      };
    case 'node':
      return {
        do: 'node',
        ms,
        mood: random.chance(0.7)
          ? wireFault(random)
          : { makes: random.pick(['another amount', 'another request', 'the last one again']) },
      };
    case 'source':
      return {
        do: 'source',
        which: random.int(4),
        ms,
        mood: random.pick([
          { fault: random.pick(WIRE_FAULTS) },
          { slowMs: 4000 },
          { percent: random.pick([90, 103, 200]) },
        ]),
      };
    case 'ledger':
      return {
        do: 'ledger',
        how: random.pick(['away', 'silent', 'lost', 'slow']),
        percent: random.pick([20, 100]),
        ms: random.pick([300, 2000, 6000]),
      };
    case 'disk':
      return { do: 'disk', at, how: random.pick(['full', 'read-only']), ms };
    case 'token':
      return { do: 'token', how: random.pick(['paused', 'seller blocked']), ms: random.pick([3000, 10_000]) };
    case 'fee':
      return { do: 'fee', gwei: random.pick([30, 60, 200]), ms };
    case 'stall':
      return { do: 'stall', ms: random.pick([1000, 4000]) };
    case 'moody':
      return { do: 'moody', ms: random.pick([500, 3000]) };
    case 'drop pending':
      return { do: 'drop pending' };
    case 'relayer gas':
      return { do: 'relayer gas', usdc: random.pick([0, 0.02]), ms };
    case 'price':
      return { do: 'price', percent: random.pick([-20, -1, 1, 25]) };
    default:
      return null;
  }
}

function providerMood(random: Random) {
  return random.pick([
    wireFault(random),
    wireFault(random),
    { lag: random.pick([1, 3, 8]) },
    { perSecond: 2, limitSays: random.pick(['429', '-32011'] as const) },
    { wrongChain: true },
    { hoards: true },
    { hidesReceipts: true },
    { refusesCreation: true },
  ]);
}
