import { orAborted } from './or-aborted.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  readonly control: AbortController;
  waiters: number;
}

/**
 * Runs one task for all callers that ask for the same key at the same time. When it fails, it fails for all of them.
 * A caller's abort does not affect the others: the task is aborted only when the last caller has aborted.
 */
export function createSingleFlight<T, K = string>() {
  const flights = new Map<K, Flight<T>>();

  function start(key: K, task: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const control = new AbortController();
    const flight: Flight<T> = {
      control,
      waiters: 0,
      result: task(control.signal).finally(() => {
        if (flights.get(key) === flight) flights.delete(key);
      }),
    };
    flights.set(key, flight);
    return flight;
  }

  return async (key: K, signal: AbortSignal | undefined, task: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    signal?.throwIfAborted();
    const flight = flights.get(key) ?? start(key, task);
    flight.waiters += 1;
    try {
      return await (signal ? orAborted(flight.result, signal) : flight.result);
    } finally {
      flight.waiters -= 1;
      if (flight.waiters === 0 && flights.get(key) === flight) {
        // No caller may join a task that is being aborted.
        flights.delete(key);
        flight.control.abort(signal?.reason);
      }
    }
  };
}
