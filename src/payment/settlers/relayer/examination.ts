import type { Found } from '../../settler.ts';
import type { Turn } from './events.ts';
import type { Job } from './job.ts';
import { isGriefer, judgeLookUp, judgeRefused, type Ruling } from './judge.ts';
import type { Sorting } from './state.ts';
import { apply, banPayer, endRound, holdUnresolved, isPending } from './verdicts.ts';

/** Decides the jobs of a round whose simulation failed. An unused job ends without a transaction, or is sent alone in the next round. */
export function examine(turn: Turn, { unused, toLookUp }: Sorting): void {
  const { round } = turn.state;
  holdUnresolved(turn, toLookUp);
  const jobs = unused.filter((job) => !job.ended);
  if (round) round.examined = jobs.map((job) => ({ job, isPending: isPending(turn, job) }));
  examineNext(turn);
}

/** Decides one job after the other, because each lookup may change what the next one finds. */
function examineNext(turn: Turn): void {
  const { state, effects } = turn;
  const { round } = state;
  const alone: Ruling[] = [];
  for (const [index, { job, ...known }] of round?.examined.entries() ?? []) {
    const verdict = judgeRefused(job, { ...known, provenBlock: state.nonces.provenBlock() });
    if (verdict.kind === 'sendAlone') alone.push({ job, verdict });
    if (!round || index < round.next) continue;
    if (isGriefer(job)) banPayer(turn, job);
    if (verdict.kind === 'lookUp')
      return void effects.push({ kind: 'lookUp', job, atBlock: verdict.atBlock, for: 'examination' });
    if (verdict.kind === 'end') {
      apply(turn, [{ job, verdict }]);
      suspectToken(turn, job);
    }
    round.next++;
  }
  apply(turn, alone);
  endRound(turn);
}

/** Applies the logs' answer to the job that is being examined, then continues with the next. */
export function endExamined(turn: Turn, job: Job, found: Found): void {
  apply(turn, [judgeLookUp(job, found, { nowMs: turn.now.nowMs, isPending: isPending(turn, job) })]);
  if (found.kind === 'open') suspectToken(turn, job);
  if (turn.state.round) turn.state.round.next++;
  examineNext(turn);
}

/**
 * Checks the token after a simulation refused a plain account's payment. That cost nothing, so the payer is not banned. The token may refuse every
 * payer.
 */
function suspectToken({ effects }: Turn, { hasCode }: Job): void {
  if (!hasCode) effects.push({ kind: 'tryToken', suspect: null });
}
