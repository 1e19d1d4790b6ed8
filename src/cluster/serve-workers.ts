import type { Registry } from 'prom-client';
import { createBundle } from '../lib/bundle.ts';
import type { Clock } from '../lib/clock.ts';
import type { SettlesForOthers } from '../payment/settling.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import { createGathering } from './gather-metrics.ts';
import type { Beat } from './messages.ts';
import type { Crew, CrewEvents, Member } from './workers.ts';

/** API processes are at the most this much behind. */
const TICK_MS = 100;
/** Said at least this often, so that silence means something. */
const HEARTBEAT_MS = 1000;

interface LeadOptions {
  crew: Crew;
  settling: Pick<SettlesForOthers, 'carry' | 'report'>;
  port: number;
  collector: CollectorView;
  /** The primary's own figures, with those that are read from the shared files. */
  metrics: Registry;
  /** Takes over what the dead left: everything of processes that are not the crew's any more. */
  takeOver(bootId: string): Promise<void>;
  onServing(): void;
  clock: Clock;
  log: { warn(detail: object, message: string): void };
}

/**
 * The primary's side of several processes: it tells the crew how things stand, settles what they hand over, takes over what a dead one
 * left, and puts the figures of all together. It serves no HTTP itself.
 */
export function lead({ crew, settling, port, collector, metrics, takeOver, clock, log, ...options }: LeadOptions) {
  const gathering = createGathering(metrics, crew, clock);
  const bundles = new WeakMap<Member, (id: string) => void>();
  let said = '';
  let saidMs = 0;

  function now(): Beat | null {
    const report = settling.report();
    return report && { port, report, collector: collector.status() };
  }

  function tick(): void {
    const beat = now();
    if (!beat) return;
    const text = JSON.stringify(beat);
    const nowMs = clock.nowMs();
    if (text === said && nowMs - saidMs < HEARTBEAT_MS) return;
    said = text;
    saidMs = nowMs;
    crew.sendAll({ kind: 'beat', beat });
  }

  /** Tells the process that asked; many that end in one block are one message. */
  function ended(member: Member): (id: string) => void {
    const known = bundles.get(member);
    if (known) return known;
    const tell = createBundle<string>((ids) => crew.send(member, { kind: 'ended', ids }));
    bundles.set(member, tell);
    return tell;
  }

  const events: CrewEvents = {
    onMessage: (member, message) => {
      switch (message.kind) {
        case 'hello': {
          const beat = now();
          if (beat) crew.send(member, { kind: 'beat', beat });
          break;
        }
        case 'settle':
          for (const id of message.ids) void settling.carry(id).then(() => ended(member)(id));
          break;
        case 'measured':
          gathering.measured(member, message);
          break;
        case 'read':
          void gathering
            .read()
            .catch((err) => {
              log.warn({ err }, 'the figures of all processes could not be put together');
              return null;
            })
            .then((text) => crew.send(member, { kind: 'metrics', ask: message.ask, text }));
          break;
      }
    },
    onDeath: (bootId) => {
      // What fails here is taken over by the next round of upkeep.
      takeOver(bootId).catch((err) => log.warn({ err }, 'what a dead API process left was not taken over'));
    },
    onFirstListening: options.onServing,
  };
  crew.listen(events);
  tick();
  const timer = setInterval(tick, TICK_MS);

  return {
    stop: async (): Promise<void> => {
      try {
        await crew.stop();
      } finally {
        clearInterval(timer);
      }
    },
  };
}
