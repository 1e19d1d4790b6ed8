import type { LedgerStores } from '../../../src/store/ports/stores.ts';

// The steps of the ledger that a sale over a channel takes, by names that do not change with the code that takes them.

const STEPS = {
  'read the channel': ['channels', 'get'],
  'note the channel': ['channels', 'note'],
  'find the sale': ['channels', 'findSale'],
  charge: ['channels', 'charge'],
  'begin the refund': ['channels', 'begin'],
  'look at the refund': ['channels', 'operation'],
  'find the identifier': ['payments', 'findByIdentifier'],
  'take the reply': ['payments', 'takeReply'],
  'find the payment': ['payments', 'find'],
  reserve: ['payments', 'reserve'],
} as const;

type Step = keyof typeof STEPS;
/** What happens in place of a step. `go` takes the real one; `nth` counts from one since `on` was called. */
type Instead = (go: () => Promise<unknown>, nth: number) => Promise<unknown>;

/** The same ledger as one process sees it. What `on` changes, other processes do not see. */
export function stepsOf(stores: LedgerStores) {
  const taken = new Map<Step, number>();
  const changed = new Map<Step, { readonly instead: Instead; times: number }>();
  const own = { channels: { ...stores.channels }, payments: { ...stores.payments } };

  for (const [step, [store, method]] of Object.entries(STEPS) as [Step, readonly ['channels', 'get']][]) {
    const real = own[store][method] as (...given: unknown[]) => Promise<unknown>;
    const watched = (...given: unknown[]): Promise<unknown> => {
      taken.set(step, (taken.get(step) ?? 0) + 1);
      const change = changed.get(step);
      return change ? change.instead(() => real(...given), ++change.times) : real(...given);
    };
    Object.assign(own[store], { [method]: watched });
  }

  return {
    stores: own,
    /** From now on, this happens in place of a step; without `instead` the step itself. */
    on(step: Step, instead: Instead = (go) => go()): void {
      changed.set(step, { instead, times: 0 });
    },
    /** How often a step was taken since it was last asked. */
    count(step: Step): number {
      const count = taken.get(step) ?? 0;
      taken.set(step, 0);
      return count;
    },
  };
}

/** Holds work up where it calls `pause`, until `go`. */
export function createPause() {
  const [reached, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    reached: reached.promise,
    pause: (): Promise<void> => {
      reached.resolve();
      return going.promise;
    },
    go: (): void => going.resolve(),
  };
}
