import { ConfigError, loadConfig } from '../../../src/config.ts';

/** The configuration's problems with an environment, one per line. Empty when there are none. */
export function configProblems(env: Record<string, string | undefined>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
