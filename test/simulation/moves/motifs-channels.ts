import { presenter } from './motif-parts.ts';
import type { ChannelChange, MoveOf } from './move.ts';
import type { Drawn, Sketch } from './sketch.ts';

// Against payment channels.

type Who = ReturnType<typeof presenter>;
type VoucherMove = MoveOf<'voucher'>;

/** Longer than a deposit takes to be mined and answered. */
const OPENED_MS = 3500;

function opened(sketch: Sketch, id: string, who: Who, units = 60_000): Drawn {
  const payer = sketch.rich();
  return {
    do: 'open channel',
    id,
    payer,
    authorizer: 'itself',
    route: '/sim/cheap',
    units,
    validFor: 590,
    ...who,
    pauseMs: OPENED_MS,
  };
}

function voucher(of: string, who: Who, more: Partial<VoucherMove> = {}): Drawn {
  const plain = { device: 'first', change: 'nothing', route: '/sim/cheap', times: 1, retries: true } as const;
  return { do: 'voucher', of, ...plain, ...who, pauseMs: 120, ...more };
}

const calls = (of: string, who: Who, count: number): Drawn[] => Array.from({ length: count }, () => voucher(of, who));

/** The payer takes its money back. The service has peace for long enough to claim before that, and is away when the delay ends. */
export function withdrawalInPeace(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const after = (): Drawn[] => (random.chance(0.5) ? calls(id, who, 2) : []);
  return [
    opened(sketch, id, who),
    ...calls(id, who, random.between(2, 5)),
    { do: 'withdraw', of: id, percent: 100, tipGwei: 1, pauseMs: random.pick([20, 700]) },
    ...after(),
    { do: 'wait', ms: 75_000, pauseMs: 0 },
    ...after(),
    { do: 'leap', ms: 905_000, pauseMs: 0 },
    { do: 'finalize', of: id, tipGwei: 40, pauseMs: 1500 },
    ...after(),
  ];
}

/** The same while the process is dead or asleep for the whole delay: then the payer is faster, and what is lost is written off. */
export function withdrawalUnseen(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const away: Drawn = random.chance(0.5)
    ? { do: 'leap', ms: 905_000, pauseMs: 0 }
    : { do: 'kill', at: who.at, afterEvents: 0, downMs: 910_000, pauseMs: 905_000 };
  const back: Drawn = {
    do: 'top up',
    of: id,
    device: 'second',
    change: 'nothing',
    route: '/sim/dear',
    units: 60_000,
    validFor: 590,
    ...who,
  };
  return [
    opened(sketch, id, who),
    ...calls(id, who, random.between(2, 5)),
    { do: 'withdraw', of: id, percent: random.pick([40, 100]), tipGwei: 1, pauseMs: 600 },
    away,
    { do: 'finalize', of: id, tipGwei: 40, pauseMs: random.pick([20, 1500, 20_000]) },
    { ...back, pauseMs: 4000 },
    { ...back, pauseMs: 4000 },
    ...calls(id, who, 2),
  ];
}

/** Two devices with one channel call at once, at one instance or several, for cheap and dear. */
export function twoDevices(sketch: Sketch): Drawn[] {
  const { random, instances } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const call = (device: 'first' | 'second', route: string, change: ChannelChange = 'nothing'): Drawn =>
    voucher(
      id,
      { ...who, at: random.pick(instances) },
      { device, route, change, retries: random.chance(0.7), pauseMs: random.int(4) },
    );
  const rounds = Array.from({ length: random.between(2, 5) }, (): Drawn[] => [
    call('first', '/sim/cheap'),
    call('second', '/sim/dear'),
    ...(random.chance(0.4) ? [call('first', '/sim/slow')] : []),
    { do: 'wait', ms: random.pick([60, 700]), pauseMs: 0 },
  ]);
  return [opened(sketch, id, who), ...calls(id, who, 1), voucher(id, who, { device: 'second' }), ...rounds.flat()];
}

/** A refund by command, and the same command again and again from elsewhere. */
export function capturedRefund(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const refund = (change: 'nothing' | 'the last one again', units: number | null, by: Who): Drawn => ({
    do: 'refund',
    of: id,
    change,
    units,
    times: random.pick([1, 2]),
    ...by,
    pauseMs: random.pick([40, 2500]),
  });
  const units = random.pick([null, 100_000]);
  return [
    opened(sketch, id, who, 450_000),
    ...calls(id, who, random.between(1, 3)),
    refund('nothing', units, who),
    ...(random.chance(0.5) ? calls(id, who, 1) : []),
    ...Array.from({ length: 4 }, () => refund('the last one again', units, presenter(sketch))),
  ];
}

/** The process dies somewhere between a voucher or a deposit and its answer, and the payer asks again. */
export function killedWithChannel(sketch: Sketch): Drawn[] {
  const { random, instances } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const downMs = random.pick([0, 300, 3000]);
  const kill = (most: number): Drawn => ({
    do: 'kill',
    at: who.at,
    afterEvents: random.int(most),
    downMs,
    pauseMs: downMs + random.pick([300, 1500, 4000]),
  });
  const elsewhere = { ...who, at: random.pick(instances) };
  const again = voucher(id, elsewhere, { change: 'the last one again', pauseMs: 1200 });
  const start = opened(sketch, id, who);
  const rounds = Array.from({ length: random.between(1, 3) }, (): Drawn[] => [
    voucher(id, who, { pauseMs: 0 }),
    kill(14),
    again,
    voucher(id, elsewhere),
  ]);
  return [...(random.chance(0.4) ? [{ ...start, pauseMs: 0 }, kill(40), again] : [start]), ...rounds.flat()];
}

/** A deposit that a third party sends, into its channel or past it, or that is cancelled or without money when the service sends it. */
export function frontRunDeposit(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('channel');
  const who = presenter(sketch);
  const payer = sketch.rich();
  const trap = random.pick([
    'is sent by a third party',
    'is sent by a third party',
    'is sent past its channel',
    'cancels',
    'moves the balance',
  ] as const);
  const open: Drawn = {
    do: 'open channel',
    id,
    payer,
    authorizer: 'itself',
    route: '/sim/cheap',
    units: 60_000,
    validFor: 590,
    ...who,
  };
  const topUp = (change: MoveOf<'top up'>['change']): Drawn => ({
    do: 'top up',
    of: id,
    device: 'first',
    change,
    route: '/sim/dear',
    units: 50_000,
    validFor: 590,
    ...who,
    pauseMs: 3500,
  });
  const armed: Drawn = { do: 'trap', payer, trap, backMs: 3000, pauseMs: 5 };
  const sent: Drawn = { do: 'third party deposits', of: id, tipGwei: 5, pauseMs: random.pick([0, 1500]) };
  return [
    ...(random.chance(0.5) ? [armed, { ...open, pauseMs: 6000 }] : [{ ...open, pauseMs: random.int(30) }, sent]),
    topUp('the last one again'),
    ...calls(id, who, 2),
    ...(random.chance(0.5) ? [armed] : []),
    { ...topUp('nothing'), pauseMs: random.pick([10, 3500]) },
    sent,
    topUp(random.pick(['the last one again', 'the last one for another request'])),
    ...calls(id, who, 1),
  ];
}

/** One channel whose claims revert, between others. */
export function poisonedRow(sketch: Sketch): Drawn[] {
  const ids = [sketch.newId('channel'), sketch.newId('channel'), sketch.newId('channel')];
  const who = presenter(sketch);
  return [
    ...ids.map((id) => ({ ...opened(sketch, id, who), pauseMs: 1500 })),
    { do: 'poison', of: sketch.random.pick(ids), pauseMs: 1500 },
    ...ids.flatMap((id) => calls(id, who, 2)),
  ];
}
