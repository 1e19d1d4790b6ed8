import type { Operation, OperationOutcome } from '../../operation.ts';
import type { Intent, Outcome } from '../../settler.ts';
import type { Effects } from './effects.ts';
import type { Effect, Event, Moment } from './events.ts';
import { type Job, newJob, newOperationJob, type OperationJob } from './job.ts';
import { hasStopped, step } from './machine.ts';
import type { MinedCost, RailCost } from './mined-cost.ts';
import type { State } from './state.ts';

interface DriverOptions {
  readonly state: State;
  readonly effects: Effects;
  moment(): Moment;
  onHead(listener: () => void): () => void;
  onMined(cost: MinedCost, rails: readonly RailCost[]): void;
  readonly log: { warn(detail: object, message: string): void };
}

/** Runs the machine. Feeds it one event after the other, carries out its effects concurrently, and feeds each answer back as one event. */
export function createDriver({ state, effects, moment, onHead, onMined, log }: DriverOptions) {
  const ends = createEnds<Job, Outcome>();
  const operationEnds = createEnds<OperationJob, OperationOutcome>();
  let stopListening = (): void => {};
  let whenStopped = (): void => {};

  function feed(event: Event): void {
    for (const effect of step(state, event, moment())) carryOut(effect);
    if (hasStopped(state)) whenStopped();
  }

  function carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'end':
        return void ends.end(effect.job, effect.outcome);
      case 'endOperation':
        return void operationEnds.end(effect.job, effect.outcome);
      case 'resendEverywhere':
        return void effects.resendEverywhere(effect.raws);
      case 'wake':
        return void effects.wake(effect.timer);
      case 'listen':
        stopListening = onHead(() => feed({ kind: 'head' }));
        return;
      case 'stopListening':
        return void stopListening();
      case 'report':
        return void onMined(effect.cost, effect.rails);
      case 'warn':
        return void log.warn(effect.detail, effect.message);
      default:
        effects.ask(effect).then(feed, (error) => feed({ kind: 'failed', effect, error }));
    }
  }

  return {
    /** Returns one promise of an outcome for each intent, in order. */
    submit(intents: readonly Intent[]): Promise<Outcome>[] {
      const jobs = intents.map((intent) => newJob(intent, moment().nowMs));
      const outcomes = jobs.map(ends.of);
      feed({ kind: 'submitted', jobs });
      return outcomes;
    },
    /** Returns a promise of the operation's outcome. It never rejects. */
    operate(operation: Operation): Promise<OperationOutcome> {
      const job = newOperationJob(operation, moment().nowMs);
      const outcome = operationEnds.of(job);
      feed({ kind: 'operated', job });
      return outcome;
    },
    /** Resolves once the running work has ended. Open jobs end as unknown. `abort` cuts waits and requests short. */
    async stop(abort: () => void): Promise<void> {
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      whenStopped = resolve;
      feed({ kind: 'stopped' });
      abort();
      await stopped;
    },
  };
}

/** The promises of jobs that have not ended. */
function createEnds<J, O>() {
  const ends = new Map<J, (outcome: O) => void>();

  return {
    of: (job: J): Promise<O> => new Promise((end) => void ends.set(job, end)),
    end(job: J, outcome: O): void {
      ends.get(job)?.(outcome);
      ends.delete(job);
    },
  };
}
