import { ConfigError, loadConfig } from '../../../src/config.ts';

/** What the configuration has to say against an environment, a line each; nothing when it takes it. */
export function configProblems(env: Record<string, string | undefined>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
