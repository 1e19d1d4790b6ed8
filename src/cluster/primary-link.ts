import type { Registry } from 'prom-client';
import { Unavailable } from '../errors.ts';
import { createBundle } from '../lib/bundle.ts';
import type { Clock } from '../lib/clock.ts';
import type { SettlingProcess } from '../payment/settling.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import type { Beat, ToPrimary, ToWorker } from './messages.ts';

/** Without a word for this long the primary hangs: it speaks every second. */
const SILENCE_MS = 5000;
/** Longer than the primary waits for the others. */
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
  /** Resolves with the port to listen on when the primary has told how things stand. */
  readonly ready: Promise<number>;
  /** Whether it speaks; the detail says since when not. */
  status(): { ok: boolean; detail?: string };
  /** Calls back at each word of how things stand, which comes after the collector has written. */
  onBeat(listener: () => void): void;
  onStop(listener: () => void): void;
  /** Answers for this process's registry, and lets its `metrics` tell of the whole service. */
  joinMetrics(registry: Registry): void;
}

/** Keeps what the primary has told last, and asks it for what it alone can do. */
export function createPrimaryLink({ send, onMessage }: Channel, clock: Clock): PrimaryLink {
  const listeners = {
    beat: new Set<() => void>(),
    ended: new Set<(id: string) => void>(),
    stop: new Set<() => void>(),
  };
  const readings = new Map<number, (text: string | null) => void>();
  let registry: Registry | null = null;
  let last: Beat | null = null;
  let heardMs = clock.nowMs();
  let asked = 0;
  let isReady = (_port: number) => {};
  const ready = new Promise<number>((resolve) => {
    isReady = resolve;
  });
  const settle = createBundle<string>((ids) => send({ kind: 'settle', ids }));

  function known(): Beat {
    if (!last) throw new Error('the primary has not told anything yet');
    return last;
  }

  const silentMs = () => clock.nowMs() - heardMs;
  const silence = () => (silentMs() > SILENCE_MS ? 'the process that settles does not answer' : null);

  onMessage((message) => {
    heardMs = clock.nowMs();
    switch (message.kind) {
      case 'beat':
        last = message.beat;
        isReady(message.beat.port);
        for (const tell of listeners.beat) tell();
        break;
      case 'ended':
        for (const id of message.ids) for (const tell of listeners.ended) tell(id);
        break;
      case 'measure':
        void measure(message.ask);
        break;
      case 'metrics':
        readings.get(message.ask)?.(message.text);
        break;
      case 'stop':
        for (const tell of listeners.stop) tell();
        break;
    }
  });
  send({ kind: 'hello' });

  /** Figures that cannot be read are missing from the whole's. */
  async function measure(ask: number): Promise<void> {
    const metrics = (await registry?.getMetricsAsJSON().catch(() => [])) ?? [];
    send({ kind: 'measured', ask, metrics });
  }

  async function readMetrics(): Promise<string> {
    asked += 1;
    const ask = asked;
    const late = new AbortController();
    const read = new Promise<string | null>((resolve) => readings.set(ask, resolve));
    send({ kind: 'read', ask });
    const nothing = () => null;
    const text = await Promise.race([read, clock.sleep(METRICS_MS, late.signal).then(nothing, nothing)]);
    late.abort();
    readings.delete(ask);
    if (text === null) throw new Unavailable('metrics_unavailable', 'The figures of all processes cannot be had now.');
    return text;
  }

  return {
    settling: {
      ask: settle,
      onEnded: (listener) => void listeners.ended.add(listener),
      report: () => known().report,
      silence,
    },
    collector: { status: () => known().collector },
    ready,
    status: () =>
      silentMs() <= SILENCE_MS ? { ok: true } : { ok: false, detail: `silent for ${Math.round(silentMs() / 1000)} s` },
    onBeat: (listener) => void listeners.beat.add(listener),
    onStop: (listener) => void listeners.stop.add(listener),
    joinMetrics: (own) => {
      registry = own;
      own.metrics = readMetrics;
    },
  };
}
