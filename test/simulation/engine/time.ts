import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import perfHooks from 'node:perf_hooks';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { joinSignals } from './abort.ts';
import { currentOwner } from './owner.ts';
import type { Random } from './random.ts';
import { real } from './real.ts';
import type { Scheduled, Scheduler } from './scheduler.ts';

/** Where time and chance come from while a seed runs; null between seeds, when Node's own hold. */
let active: { scheduler: Scheduler; random: Random } | null = null;

/** From here on time, timers and chance are the scheduler's; null gives them back. */
export function useVirtualTime(given: typeof active): void {
  active = given;
}

/** Node fires a timer at once when it is set further away than this. */
const MAX_TIMER_MS = 2 ** 31 - 1;

type Callback = (...args: unknown[]) => void;

/** What Node calls a Timeout, as far as libraries use one. */
interface SimTimer {
  event: Scheduled | null;
  again: (() => void) | null;
}

/** The methods that all of them share. */
const TIMER = {
  ref(this: SimTimer): SimTimer {
    return this;
  },
  unref(this: SimTimer): SimTimer {
    return this;
  },
  hasRef: (): boolean => true,
  refresh(this: SimTimer): SimTimer {
    this.event?.cancel();
    this.again?.();
    return this;
  },
  close(this: SimTimer): void {
    stop(this);
  },
  [Symbol.dispose](this: SimTimer): void {
    stop(this);
  },
};

const newTimer = (): SimTimer => Object.assign(Object.create(TIMER) as SimTimer, { event: null, again: null });

function stop(timer: unknown): void {
  const known = timer as SimTimer | null | undefined;
  if (typeof known !== 'object' || known === null) return;
  known.event?.cancel();
  known.again = null;
}

function delayOf(ms: unknown): number {
  const given = Number(ms);
  return given >= 1 && given <= MAX_TIMER_MS ? Math.trunc(given) : 1;
}

function start(scheduler: Scheduler, callback: Callback, ms: number, args: unknown[], repeats: boolean): SimTimer {
  const timer = newTimer();
  const owner = currentOwner();
  timer.again = () => {
    timer.event = scheduler.after(ms, owner, repeats ? 'interval' : 'timeout', () => {
      callback(...args);
      if (repeats) timer.again?.();
    });
  };
  timer.again();
  return timer;
}

/** Puts virtual time in place of Node's, for every module, now and later. Done once; outside of a seed everything is as before. */
export function installVirtualTime(): void {
  installTimers();
  installClocks();
  installChance();
  syncBuiltinESMExports();
}

function installTimers(): void {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const realSleep = timersPromises.setTimeout;
  const patched = {
    setTimeout: (callback: Callback, ms?: unknown, ...args: unknown[]) =>
      active
        ? start(active.scheduler, callback, delayOf(ms), args, false)
        : real.setTimeout(callback, ms as number, ...args),
    setInterval: (callback: Callback, ms?: unknown, ...args: unknown[]) =>
      active
        ? start(active.scheduler, callback, delayOf(ms), args, true)
        : real.setInterval(callback, ms as number, ...args),
    setImmediate: (callback: Callback, ...args: unknown[]) => {
      if (!active) return real.setImmediate(callback, ...args);
      const timer = newTimer();
      timer.event = active.scheduler.after(0, currentOwner(), 'immediate', () => callback(...args));
      return timer;
    },
  };
  const clear = (original: (timer: never) => void) => (timer: unknown) => {
    if (typeof timer === 'object' && timer !== null && 'event' in timer) stop(timer);
    else original(timer as never);
  };
  const cleared = {
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
    clearImmediate: clear(real.clearImmediate),
  };
  Object.assign(timers, patched, cleared);
  Object.assign(globalThis, patched, cleared);
  const sleep = (ms?: number, value?: unknown, options?: { signal?: AbortSignal }) =>
    new Promise((resolve, reject) => {
      const timer = patched.setTimeout(() => resolve(value), ms);
      options?.signal?.addEventListener('abort', () => {
        cleared.clearTimeout(timer);
        reject(options.signal?.reason);
      });
    });
  Object.assign(timersPromises, {
    setTimeout: (ms?: number, value?: unknown, options?: { signal?: AbortSignal }) =>
      active ? sleep(ms, value, options) : realSleep(ms, value, options),
  });
  const any = AbortSignal.any.bind(AbortSignal);
  AbortSignal.any = (signals) => (active ? joinSignals([...signals]) : any(signals));
  AbortSignal.timeout = (ms: number) => {
    if (!active) return timeout(ms);
    const control = new AbortController();
    const late = () => control.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    active.scheduler.after(ms, currentOwner(), 'abort-timeout', late);
    return control.signal;
  };
}

function installClocks(): void {
  const RealDate = Date;
  const now = () => (active ? active.scheduler.nowMs() : RealDate.now());
  const SimDate = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
  });
  globalThis.Date = SimDate;
  const clock = { hrtime: process.hrtime, bigint: process.hrtime.bigint };
  performance.now = () => (active ? active.scheduler.nowMs() % 1_000_000_000 : real.now());
  const hrtime = (since?: [number, number]): [number, number] => {
    if (!active) return clock.hrtime(since);
    const [seconds, nanos] = [Math.floor(now() / 1000), (now() % 1000) * 1e6];
    const early = since !== undefined && nanos < since[1] ? 1 : 0;
    return since ? [seconds - since[0] - early, nanos - since[1] + early * 1e9] : [seconds, nanos];
  };
  process.hrtime = Object.assign(hrtime, { bigint: () => (active ? BigInt(now()) * 1_000_000n : clock.bigint()) });
  // The metrics' own: a native timer for each start of the service would outlive it here.
  const still = new Proxy({}, { get: () => () => 0 });
  perfHooks.monitorEventLoopDelay = () => still as ReturnType<typeof perfHooks.monitorEventLoopDelay>;
  const Deaf = function deaf() {
    return { observe: () => undefined, disconnect: () => undefined };
  };
  Object.assign(perfHooks, { PerformanceObserver: Deaf });
}

function installChance(): void {
  const chance = { ...crypto, random: Math.random, web: globalThis.crypto };
  const bytes = (count: number): Buffer => (active ? active.random.bytes(count) : chance.randomBytes(count));
  const uuid = (): ReturnType<typeof crypto.randomUUID> => {
    if (!active) return chance.randomUUID();
    const hex = bytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const fill = <T>(target: T): T => {
    const view = target as unknown as Uint8Array;
    Buffer.from(view.buffer, view.byteOffset, view.byteLength).set(bytes(view.byteLength));
    return target;
  };
  const randomBytes = (count: number, callback?: (error: null, bytes: Buffer) => void) =>
    callback ? callback(null, bytes(count)) : bytes(count);
  Object.assign(crypto, { randomBytes, randomUUID: uuid, randomFillSync: fill });
  Object.defineProperty(chance.web, 'getRandomValues', { value: fill, configurable: true });
  Object.defineProperty(chance.web, 'randomUUID', { value: uuid, configurable: true });
  Math.random = () => (active ? active.random.next() : chance.random());
}
