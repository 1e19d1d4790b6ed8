import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { blocksOf, commandsOf, readText } from '../../support/documents.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { type Examples, openExamples, ROOT } from '../../support/service/shown-code.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

const paying = readText('docs/paying.md');
const PATH = '/v1/paid/fees/estimate';

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples({ channels: true });
  await untilChannelsAreOffered(examples.service.origin + PATH);
});
afterAll(() => examples?.stop());

const environment = () => {
  const { network, service } = examples;
  const keys = { BUYER_PRIVATE_KEY: network.buyer.privateKey, RPC_URL: network.rpcUrl, ORIGIN: service.origin };
  return { ...CHILD_ENV, HOME: process.env.HOME, NO_PROXY: '*', ...keys };
};
const spent = async (before: bigint) => before - (await balanceOf(examples.network, examples.network.buyer.address));

// The commands come after the refund of the lines.
describe('the page', { shuffle: false }, () => {
  test('has lines that buy three calls over a channel and get the rest back', async () => {
    const [code = ''] = blocksOf(paying, 'ts');
    const before = await balanceOf(examples.network, examples.network.buyer.address);
    const file = examples.write('channel.ts', code);
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env: environment() });
    expect(stdout.split('\n').slice(0, 3)).toEqual(['200', '200', '200']);
    expect(stdout).toContain("amount: '998500'");
    expect(await spent(before)).toBe(1500n);
  });

  test('has commands that buy a call over a channel; the refund waits, because the same channel was just refunded', async () => {
    const { service, network, folder } = examples;
    const commands = commandsOf(paying).filter((command) => command.includes('--channel'));
    expect(commands).toHaveLength(2);
    const outputs: string[] = [];
    for (const command of commands) {
      const [words = ''] = command.split(' #');
      const line = words
        .replace('https://…', network.rpcUrl)
        .replace('0x…', network.buyer.privateKey)
        .replace('https://HOST', service.origin);
      const run = promisify(execFile)('sh', ['-c', `${line} --channel-dir ${folder}`], {
        cwd: ROOT,
        env: environment(),
      });
      outputs.push((await run.catch((error: { stderr: string }) => error)).stderr);
    }
    expect(outputs[0]).toMatch(/^left: +0\.\d+ USDC in channel 0x[0-9a-f]{64}$/m);
    expect(outputs[1]).toContain('status 429: this channel was refunded a moment ago');
  });
});
