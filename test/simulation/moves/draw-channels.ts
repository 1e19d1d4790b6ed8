import type { ChannelChange, MoveName } from './move.ts';
import type { Drawn, Sketch } from './sketch.ts';

const CHANGES: readonly ChannelChange[] = [
  ...(['nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing'] as const),
  ...(['the last one again', 'the last one again', 'the last one for another request', 'an old one'] as const),
  ...(['a higher ceiling', 'a lower ceiling', 'the twin of the signature', 'v of 0 or 1', 'another key'] as const),
  'another channel',
];
/** Base units, around the least deposit and the least refund. */
const UNITS = [20_000, 60_000, 60_000, 250_000];

/** Moves of payers with channels; null for any other name, and where there is no channel yet. */
export function drawChannels(name: MoveName, sketch: Sketch): Drawn | null {
  const { random } = sketch;
  if (name === 'open channel') return openChannel(sketch);
  if (name === 'copy operation') return { do: 'copy operation', tipGwei: random.pick([0, 3]) };
  const of = sketch.earlier('channel');
  if (!of) return null;
  const device = random.chance(0.8) ? 'first' : 'second';
  switch (name) {
    case 'voucher':
      return {
        do: 'voucher',
        of,
        device,
        change: random.pick(CHANGES),
        route: sketch.route(),
        times: random.pick([1, 1, 1, 1, 2, 3]),
        retries: random.chance(0.8),
        ...sketch.circumstances(),
      };
    case 'top up':
      return {
        do: 'top up',
        of,
        device,
        units: random.pick(UNITS),
        validFor: sketch.depositValidFor(),
        change: random.pick(['nothing', 'nothing', 'the last one again', 'the last one for another request']),
        route: sketch.route(),
        ...sketch.circumstances(),
      };
    case 'refund':
      return {
        do: 'refund',
        of,
        change: random.pick(['nothing', 'nothing', 'the last one again']),
        units: random.pick([null, null, 100_000, 5_000]),
        times: random.pick([1, 1, 2]),
        ...sketch.circumstances(),
      };
    case 'withdraw':
      return { do: 'withdraw', of, percent: random.pick([10, 50, 100]), tipGwei: random.pick([0, 5]) };
    case 'finalize':
    case 'third party deposits':
      return { do: name, of, tipGwei: random.pick([0, 5]) };
    case 'poison':
      return { do: 'poison', of };
    default:
      return null;
  }
}

function openChannel(sketch: Sketch): Drawn {
  const { random } = sketch;
  const isWallet = random.chance(0.2);
  return {
    do: 'open channel',
    id: sketch.newId('channel'),
    payer: isWallet ? sketch.wallet() : random.chance(0.9) ? sketch.rich() : sketch.payer(),
    authorizer: isWallet
      ? random.pick(['its key', 'its key', 'itself', 'nobody'])
      : random.chance(0.95)
        ? 'itself'
        : 'nobody',
    route: sketch.route(),
    units: random.pick(UNITS),
    validFor: sketch.depositValidFor(),
    ...sketch.circumstances(),
  };
}
