import type { Job } from './job.ts';

type Grouped = Pick<Job, 'maxGroup'>;

/**
 * Cuts jobs into groups that share a transaction: at most `most` together, and no job with more others than it may have.
 * Those that may have many come first, so that one who must go alone never splits the company of others; among equals the order is kept.
 */
export function cutGroups<J extends Grouped>(jobs: readonly J[], most: number): J[][] {
  const groups: J[][] = [];
  for (const job of [...jobs].sort((a, b) => b.maxGroup - a.maxGroup)) {
    const last = groups.at(-1);
    // None before it may have fewer others.
    if (last && last.length < Math.min(most, job.maxGroup)) last.push(job);
    else groups.push([job]);
  }
  return groups;
}

/** After a batch in which they got nothing: half as many together next time, so that what spoils a batch ends up alone. */
export function halve(jobs: readonly Grouped[]): void {
  for (const job of jobs) job.maxGroup = Math.max(1, Math.ceil(jobs.length / 2));
}
