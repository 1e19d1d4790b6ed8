import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../../src/discovery/entry.ts';
import { quoteScript, quoteShell } from '../../../src/pages/examples.ts';
import { callOf } from '../../../src/pages/market.ts';
import { listing } from '../discovery/world.ts';

const TERMS = { origin: 'https://us.example', network: 'eip155:5042', asset: `0x36${'0'.repeat(38)}` };
const entry = (members: Partial<Entry> & { url: string }): Entry => ({
  ...listing(members).entry,
  online: true,
  score: 0,
});

/** Texts that would end a quote, or be evaluated, if they were put into code as they are. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: as a seller may write it
const EXPRESSION = '${process.exit()}';
const HOSTILE = [`'; touch /tmp/x; '`, `$(id) \`id\` ${EXPRESSION}`, "\\' + process.exit() + '", '"\n\u2028'];

describe('the code that calls another seller’s route', () => {
  test.each(HOSTILE)('a shell sees %j as one plain argument', (text) => {
    expect(execFileSync('sh', ['-c', `printf %s ${quoteShell(text)}`]).toString()).toBe(text);
  });

  test.each(HOSTILE)('a script sees %j as one plain string', (text) => {
    expect(new Function(`return ${quoteScript(text)}`)()).toBe(text);
  });

  test('puts an address with an expression into a string that is not evaluated', () => {
    const code = callOf(entry({ url: `https://a.example/${EXPRESSION}/x` }), TERMS);
    expect(code.map(({ language }) => language)).toEqual(['curl', 'TypeScript']);
    expect(code[1]?.code).toContain(`pay('https://a.example/${EXPRESSION}/x')`);
  });

  test('pays at most the listed price, and gives the seller’s examples', () => {
    const params = [
      { name: 'q', in: 'query', type: 'string', description: '', required: true, example: 'a b' },
    ] as const;
    const [curl, script] = callOf(
      entry({ url: 'https://a.example/x', priceUsd: '0.0123', params: [...params] }),
      TERMS,
    );
    expect(curl?.code).toContain(`'https://a.example/x?q=a+b'`);
    expect(script?.code).toContain(`maxAmountPerPayment: '12300'`);
  });

  test('posts the example of a body', () => {
    const [curl, script] = callOf(entry({ url: 'https://a.example/x', method: 'POST', body: { text: "it's" } }), TERMS);
    expect(curl?.code).toContain(`-d '{"text":"it'\\''s"}'`);
    expect(script?.code).toContain(`body: '{"text":"it\\'s"}'`);
  });

  test('does not promise that the stock client pays a route of the Gateway alone', () => {
    const code = callOf(entry({ url: 'https://a.example/x', rail: 'gateway' }), TERMS);
    expect(code.map(({ language }) => language)).toEqual(['curl']);
  });
});
