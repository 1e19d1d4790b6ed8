import { AppError } from '../../src/errors.ts';
import type { InstancesStore } from '../../src/store/ports/instances.ts';

/** Each takes 1.5 s at the most. So this is a minute, far longer than a busy machine keeps a database silent. */
const ATTEMPTS = 40;

/** Whether a statement, a transaction, a connection or an answer took too long. A server that has ended a slow transaction leaves a broken connection. */
const isLate = (error: unknown): boolean =>
  error instanceof AppError &&
  error.code === 'ledger_unavailable' &&
  /timeout|Connection terminated|connection error/.test(String(error.cause));

/** Does the work again after a time-out alone, because what instances share fails on a database that takes longer than 1.5 s. It may have been done before. */
export async function unlessLate<T>(work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt === ATTEMPTS || !isLate(error)) throw error;
    }
  }
}

/** The same store, whose calls are made again after a time-out, like an instance does. Each of them may be repeated. */
export const patient = (store: InstancesStore): InstancesStore => ({
  heartbeat: (...given) => unlessLate(() => store.heartbeat(...given)),
  report: (...given) => unlessLate(() => store.report(...given)),
  markDead: (bootId) => unlessLate(() => store.markDead(bootId)),
  forget: (bootId) => unlessLate(() => store.forget(bootId)),
  leave: (bootId) => unlessLate(() => store.leave(bootId)),
});
