import { join } from 'node:path';
import { walletCommand } from '../../../cli/wallet-command.ts';
import type { Run } from '../service/operator-command.ts';

/** Runs `percall wallet` with these words in this process, over the record that `payHere` uses for the folder. */
export async function walletHere(
  args: readonly string[],
  folder: string,
  env: Record<string, string> = {},
): Promise<Run> {
  const [answer, words]: [Buffer[], string[]] = [[], []];
  const code = await walletCommand(args, {
    env: { PERCALL_DIR: join(folder, '.percall'), ...env },
    folder,
    say: (line) => void words.push(`${line}\n`),
    deliver: async (body) => void answer.push(body),
  });
  return { code, stdout: Buffer.concat(answer).toString('utf8'), stderr: words.join('') };
}
