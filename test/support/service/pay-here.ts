import { join } from 'node:path';
import { payCommand } from '../../../cli/pay-command.ts';
import type { Run } from './operator-command.ts';

/**
 * Runs `npm run pay` with these words in this process: a program of its own would load its libraries for each purchase. The program itself runs in
 * test/conformance.
 */
export async function payHere(
  args: readonly string[],
  { env, folder }: { env: Record<string, string>; folder: string },
): Promise<Run> {
  const [answer, words]: [Buffer[], string[]] = [[], []];
  const code = await payCommand(args, {
    // Each folder has its own record, unless the test names one.
    env: { PERCALL_DIR: join(folder, '.percall'), ...env },
    folder,
    say: (line) => void words.push(`${line}\n`),
    deliver: async (body) => void answer.push(body),
  });
  return { code, stdout: Buffer.concat(answer).toString('utf8'), stderr: words.join('') };
}
