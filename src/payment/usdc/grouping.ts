import type { Job } from './job.ts';

/** Cuts jobs into groups that share a transaction: at most `most` together, and no job with more others than it may have. Keeps the order. */
export function cutGroups(jobs: readonly Job[], most: number): Job[][] {
  const groups: Job[][] = [];
  let room = 0;
  for (const job of jobs) {
    const last = groups.at(-1);
    const allowed = Math.min(most, job.maxGroup);
    if (last && last.length < Math.min(room, allowed)) {
      last.push(job);
      room = Math.min(room, allowed);
    } else {
      groups.push([job]);
      room = allowed;
    }
  }
  return groups;
}

/** After a batch in which they got nothing: half as many together next time, so that what spoils a batch ends up alone. */
export function halve(jobs: readonly Job[]): void {
  for (const job of jobs) job.maxGroup = Math.max(1, Math.ceil(jobs.length / 2));
}
