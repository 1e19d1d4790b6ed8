import type { Registry } from 'prom-client';
import { Unavailable } from '../errors.ts';
import { createBundle } from '../lib/bundle.ts';
import type { Clock } from '../lib/clock.ts';
import type { SettlingProcess } from '../payment/settling.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import type { Heartbeat, ToPrimary, ToWorker } from './messages.ts';

/** Heartbeat time-out, in milliseconds. The primary sends a heartbeat every second, so it hangs when none came for this long. */
const HEARTBEAT_TIMEOUT_MS = 5000;
/** How long a worker waits for the metrics, in milliseconds: longer than the primary waits for the other workers. */
const METRICS_MS = 3000;

/** The channel to the primary. */
export interface Channel {
  send(message: ToPrimary): void;
  onMessage(listener: (message: ToWorker) => void): void;
}

/** The primary as an API process sees it. */
export interface PrimaryLink {
  readonly settling: SettlingProcess;
  readonly collector: CollectorView;
  /** Resolves with the port to listen on at the first heartbeat. */
  readonly ready: Promise<number>;
  /** Whether heartbeats arrive; the detail says for how long none did. */
  status(): { ok: boolean; detail?: string };
  /** Calls the listener at each heartbeat, which comes after the collector has written. */
  onHeartbeat(listener: () => void): void;
  onStop(listener: () => void): void;
  /** Sends this process's figures when the primary asks for them, and makes the registry's `metrics` return those of the whole service. */
  joinMetrics(registry: Registry): void;
}

/** Keeps the primary's last heartbeat, and sends requests to the primary. */
export function createPrimaryLink({ send, onMessage }: Channel, clock: Clock): PrimaryLink {
  const listeners = { heartbeat: new Set<() => void>(), stop: new Set<() => void>() };
  const ended = new Set<(id: string) => void>();
  const metrics = createMetricsLink(send, clock);
  let last: Heartbeat | null = null;
  let heardMs = clock.nowMs();
  const { promise: ready, resolve: isReady } = Promise.withResolvers<number>();

  function known(): Heartbeat {
    if (!last) throw new Error('the primary has not sent a heartbeat yet');
    return last;
  }

  const silentMs = () => clock.nowMs() - heardMs;
  const isSilent = () => silentMs() > HEARTBEAT_TIMEOUT_MS;

  onMessage((message) => {
    heardMs = clock.nowMs();
    switch (message.kind) {
      case 'heartbeat':
        last = message.heartbeat;
        isReady(last.port);
        for (const call of listeners.heartbeat) call();
        break;
      case 'ended':
        for (const id of message.ids) for (const call of ended) call(id);
        break;
      case 'measure':
        void metrics.measure(message.ask);
        break;
      case 'metrics':
        metrics.answered(message.ask, message.text);
        break;
      case 'stop':
        for (const call of listeners.stop) call();
        break;
    }
  });
  send({ kind: 'hello' });

  return {
    settling: {
      ask: createBundle<string>((ids) => send({ kind: 'settle', ids })),
      onEnded: (listener) => void ended.add(listener),
      report: () => known().report,
      staleReason: () => (isSilent() ? 'the process that settles does not answer' : null),
    },
    collector: { status: () => known().collector },
    ready,
    status: () => (isSilent() ? { ok: false, detail: `silent for ${Math.round(silentMs() / 1000)} s` } : { ok: true }),
    onHeartbeat: (listener) => void listeners.heartbeat.add(listener),
    onStop: (listener) => void listeners.stop.add(listener),
    joinMetrics: metrics.join,
  };
}

/** This process's figures for the primary, and the whole service's figures from it. */
function createMetricsLink(send: Channel['send'], clock: Clock) {
  const readings = new Map<number, (text: string | null) => void>();
  let registry: Registry | null = null;
  let asked = 0;

  /** Rejects with Unavailable when the primary does not answer in time or could not aggregate the figures. */
  async function read(): Promise<string> {
    asked += 1;
    const ask = asked;
    const late = new AbortController();
    const answer = new Promise<string | null>((resolve) => readings.set(ask, resolve));
    send({ kind: 'read', ask });
    const nothing = () => null;
    const text = await Promise.race([answer, clock.sleep(METRICS_MS, late.signal).then(nothing, nothing)]);
    late.abort();
    readings.delete(ask);
    if (text === null) throw new Unavailable('metrics_unavailable', 'The figures of all processes cannot be read now.');
    return text;
  }

  return {
    /** Figures that cannot be read are missing from the total. */
    measure: async (ask: number): Promise<void> => {
      const metrics = (await registry?.getMetricsAsJSON().catch(() => [])) ?? [];
      send({ kind: 'measured', ask, metrics });
    },
    answered: (ask: number, text: string | null): void => readings.get(ask)?.(text),
    join: (own: Registry): void => {
      registry = own;
      own.metrics = read;
    },
  };
}
