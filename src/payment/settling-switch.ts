import { createRounds } from '../lib/rounds.ts';
import type { Leader, MaintainedSettling } from './settling.ts';
import type { LocalSettling } from './settling-local.ts';

interface SwitchedSettlingOptions {
  /** Settlement by the leader, while another instance leads. */
  remote: MaintainedSettling;
  /** Opens settlement by this instance under the lease with this fencing token. */
  openLocal(fencingToken: number): LocalSettling;
  takeOver: Leader['takeOver'];
  join(leader: Leader): Promise<void>;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

/** Milliseconds between two reads of waiting rows. It is also the longest delay of a settlement whose request did not reach the leader. */
const SWEEP_MS = 1000;

/** Settlement by the leader: by this instance from `lead` to `stepDown`, by another instance at all other times. */
export function createSwitchedSettling(options: SwitchedSettlingOptions): MaintainedSettling {
  const { remote, openLocal, takeOver, log } = options;
  let current = remote;
  let stopSweep = async (): Promise<void> => {};
  let ending: Promise<unknown> = Promise.resolve();

  /** A settlement request can be lost, or its receiver can lose the lease. So the leader also reads the ledger's rows every second. */
  function startSweep(local: LocalSettling): void {
    const sweep = createRounds(local.carryWaiting, log);
    const timer = setInterval(sweep, SWEEP_MS);
    stopSweep = () => {
      clearInterval(timer);
      return sweep.idle();
    };
  }

  /** Rejects when the settlers cannot be loaded. The caller then steps down. */
  async function lead(fencingToken: number): Promise<void> {
    const local = openLocal(fencingToken);
    current = local;
    await local.load();
    // This instance may have stepped down during the load.
    if (current === local) startSweep(local);
  }

  function stepDown(): void {
    const left = current;
    current = remote;
    ending = Promise.all([ending, left.stop(), stopSweep()]);
  }

  const carry: Leader['carry'] = (id) => current.carry(id);
  const report: Leader['report'] = () => current.report();

  return {
    settle: (intent, contract) => current.settle(intent, contract),
    resume: (payment) => current.resume(payment),
    status: (rail) => current.status(rail),
    probes: () => current.probes(),
    detail: () => current.detail(),
    carry,
    report,
    takeOver,
    start: async (maintain) => {
      await remote.start(maintain);
      const leadAndMaintain = async (fencingToken: number): Promise<void> => {
        await lead(fencingToken);
        maintain();
      };
      await options.join({ lead: leadAndMaintain, stepDown, carry, report, takeOver });
    },
    refresh: () => current.refresh(),
    reconcile: (isInUse) => current.reconcile(isInUse),
    stop: async () => {
      await Promise.all([current.stop(), stopSweep(), ending]);
    },
  };
}
