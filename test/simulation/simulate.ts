import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { playInParallel, type Told, tellBreach } from './lane/play-seeds.ts';

const say = (text: string): void => void process.stdout.write(`${text}\n`);

// The slow lane: `npm run simulate -- --from 1 --count 20000`. Says after each round how far it is, and with which --from it goes on.

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '20000' },
    processes: { type: 'string', default: String(availableParallelism()) },
  },
});

/** Seeds of one round: each starts new processes, whose memory grows with what they have played. */
const ROUND = 400;

const from = Number(values.from);
const end = from + Number(values.count);
const began = Date.now();
const findings: Told[] = [];
let played = 0;

for (let at = from; at < end; at += ROUND) {
  const seeds = Array.from({ length: Math.min(ROUND, end - at) }, (_, index) => at + index);
  const onTold = (told: Told) => {
    played += 1;
    if (!told.breach) return;
    findings.push(told);
    say(tellBreach(told));
  };
  await playInParallel({ seeds, onTold, shorten: true }, Number(values.processes));
  const aMinute = Math.round((played * 60_000) / (Date.now() - began));
  say(`${played} seeds, ${aMinute} a minute, ${findings.length} findings; goes on with --from ${at + seeds.length}`);
}
process.exitCode = findings.length > 0 ? 1 : 0;
