import { AppError, UpstreamFailed } from '../../errors.ts';

/**
 * The first answer that one of the attempts gives, tried in order; all failing is one UpstreamFailed that tells of each.
 * Only failures that are named pass to the next: an abort or a bug of ours is no reason to ask somebody else.
 */
export async function firstToAnswer<T>(what: string, attempts: readonly (() => Promise<T>)[]): Promise<T> {
  const failures: string[] = [];
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof AppError) || error.status < 500) throw error;
      failures.push(error.message);
    }
  }
  throw new UpstreamFailed(what, failures.join('; '));
}
