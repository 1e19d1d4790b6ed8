import type { Procedure, Turn } from './events.ts';
import { type Flight, newest } from './flight.ts';
import { finish, finishOperation } from './verdicts.ts';

/** Asks for the newest transactions of these flights to be written to disk. They must not be sent before. */
export function note({ effects }: Turn, flights: readonly Flight[], procedure: Procedure): void {
  effects.push({ kind: 'note', flights, for: procedure });
}

/**
 * Returns the flights that may be sent: those whose jobs all still await settlement. If a job does not, its flight is signed again without it, all
 * flights are noted again, and null is returned. The same holds for an operation that no longer awaits its end.
 */
export function takeNoted(
  turn: Turn,
  flights: readonly Flight[],
  procedure: Procedure,
  waiting: ReadonlySet<string>,
): readonly Flight[] | null {
  const changed = flights.filter((flight) => idsOf(flight).some((id) => !waiting.has(id)));
  if (changed.length === 0) return flights;
  const empty = changed.filter((flight) => !leaveOut(turn, flight, waiting));
  const going = flights.filter((flight) => !empty.includes(flight));
  note(turn, going, procedure);
  return null;
}

function idsOf(flight: Flight): string[] {
  const { jobs, operationJob } = newest(flight);
  return [...jobs.map(({ intent }) => intent.id), ...(operationJob ? [operationJob.operation.id] : [])];
}

/** Signs a flight again without the jobs that no longer wait. False when no job is left and the transaction is removed. */
function leaveOut(turn: Turn, flight: Flight, waiting: ReadonlySet<string>): boolean {
  const { flights } = turn.state;
  const { jobs, operationJob } = newest(flight);
  if (operationJob) finishOperation(turn, operationJob, { kind: 'unknown' });
  const left = jobs.filter(({ intent }) => waiting.has(intent.id));
  for (const job of jobs) if (!left.includes(job)) finish(turn, job, { kind: 'unknown' });
  if (left.length > 0) flights.replaceUnsent(flight, left);
  else flights.dropUnsent(flight);
  return left.length > 0;
}

/** Removes the newest transactions of these flights, because they could not be written to disk. */
export function dropNotes({ state }: Turn, flights: readonly Flight[]): void {
  for (const flight of flights) state.flights.dropUnsent(flight);
}

/** Marks these flights as sent. From then on a third party may hold their authorizations. Returns the raw transactions to send. */
export function markSent({ now }: Turn, flights: readonly Flight[]): string[] {
  for (const flight of flights) {
    flight.sentMs = now.nowMs;
    const { jobs, operationJob } = newest(flight);
    for (const job of jobs) job.nonces.add(flight.nonce);
    operationJob?.nonces.add(flight.nonce);
  }
  return flights.map((flight) => newest(flight).raw);
}
