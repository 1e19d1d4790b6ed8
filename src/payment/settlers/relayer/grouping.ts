import type { Job } from './job.ts';

type Grouped = Pick<Job, 'maxGroup'>;

/**
 * Splits jobs into groups that share a transaction. A group weighs at most `most`, unless it is one job, and has no more jobs than any of its jobs
 * allows (`maxGroup`). Jobs that allow larger groups come first, so that a job that must go alone never splits a group. Jobs with equal limits keep
 * their order.
 */
export function cutGroups<J extends Grouped>(jobs: readonly J[], most: number, weigh: (job: J) => number): J[][] {
  const groups: J[][] = [];
  let weight = 0;
  for (const job of [...jobs].sort((a, b) => b.maxGroup - a.maxGroup)) {
    const last = groups.at(-1);
    weight += weigh(job);
    // No earlier job in the group has a lower limit.
    if (last && last.length < job.maxGroup && weight <= most) last.push(job);
    else {
      groups.push([job]);
      weight = weigh(job);
    }
  }
  return groups;
}

/** Limits the next groups of jobs that a batch did not settle to half of that batch. So the job that fails batches ends up alone. */
export function splitGroup(jobs: readonly Grouped[]): void {
  for (const job of jobs) job.maxGroup = Math.max(1, Math.ceil(jobs.length / 2));
}
