import { availableParallelism } from 'node:os';
import { argumentsOr, readArguments, wholeNumber } from './lane/arguments.ts';
import { type Played, playInParallel, tellBreach } from './lane/play-seeds.ts';

const say = (text: string): void => void process.stdout.write(`${text}\n`);

// The long lane. Says after each round how far it is, and with which --from it goes on.

const USAGE = `npm run simulate -- [--from N] [--count N] [--processes N]

Plays seeds of 200 moves each. A broken promise is reported with its seed, its shortened moves and a file that plays them again.

  --from N       the first seed (1)
  --count N      how many seeds (20000)
  --processes N  how many are played at once (one for each core)

Ends with 0 where every promise held, 1 where one broke, 2 for arguments that it does not know.`;

const { from, count, processes } = argumentsOr(USAGE, (args) => {
  const values = readArguments(args, {
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '20000' },
    processes: { type: 'string', default: String(availableParallelism()) },
  });
  return {
    from: wholeNumber('from', values.from, 0),
    count: wholeNumber('count', values.count, 1),
    processes: wholeNumber('processes', values.processes, 1),
  };
});

/** Seeds of one round: each starts new processes, whose memory grows with what they have played. */
const ROUND = 400;

const end = from + count;
const began = Date.now();
const findings: Played[] = [];
let played = 0;

for (let at = from; at < end; at += ROUND) {
  const seeds = Array.from({ length: Math.min(ROUND, end - at) }, (_, index) => at + index);
  const onPlayed = (reported: Played) => {
    played += 1;
    if (!reported.breach) return;
    findings.push(reported);
    say(tellBreach(reported));
  };
  await playInParallel({ seeds, onPlayed, shorten: true }, processes);
  const aMinute = Math.round((played * 60_000) / (Date.now() - began));
  say(`${played} seeds, ${aMinute} a minute, ${findings.length} findings; goes on with --from ${at + seeds.length}`);
}
process.exitCode = findings.length > 0 ? 1 : 0;
