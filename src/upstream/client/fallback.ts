import { AppError, UpstreamFailed } from '../../errors.ts';

/**
 * The result of the first attempt that succeeds, tried in order. When all fail, throws one UpstreamFailed that names each failure.
 * Only named failures lead to the next attempt. An abort or a bug is thrown at once.
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
