import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Answer, faultOf } from '../../support/service/service.ts';
import { ROOT } from '../../support/sources.ts';

/** The first lines of a recorded answer: the request, the status, and the header fields up to the body. */
const ANSWER = /^> (.+)\n(\d{3}) .*\n((?:[\w-]+: [\s\S]*?)?)(?=^## |$(?![\s\S]))/gm;

/** The answers of a recording, with the names of their header fields. */
function answersIn(text: string): (Pick<Answer, 'status' | 'headers'> & { line: string })[] {
  return [...text.matchAll(ANSWER)].map(([, line = '', status, head = '']) => {
    const names = [...head.matchAll(/^([a-z][\w-]*): /gim)].map(([, name = '']) => [name.toLowerCase(), '']);
    return { line, status: Number(status), headers: Object.fromEntries(names) };
  });
}

test('in every recorded answer, only a 402 asks for a payment and only a sold answer has a receipt', () => {
  const files = globSync('test/conformance/wire/*.txt', { cwd: ROOT });
  const answers = files.flatMap((file) => answersIn(readFileSync(`${ROOT}/${file}`, 'utf8')));
  expect(answers.filter((answer) => faultOf(answer) !== null)).toEqual([]);
  // The recordings were read: they hold challenges, and answers of many statuses.
  expect(answers.filter(({ headers }) => 'www-authenticate' in headers).length).toBeGreaterThan(5);
  expect(new Set(answers.map(({ status }) => status)).size).toBeGreaterThan(5);
});

test('the check finds a challenge on another status, and a receipt on a refusal', () => {
  const found = answersIn(
    '## a\n> GET /\n200 OK\ndate: x\nwww-authenticate: L402\n\n{}\n\n## b\n> GET /\n402 X\npayment-receipt: y\n',
  );
  expect(found.map(faultOf)).toEqual(['200 with WWW-Authenticate', '402 with Payment-Receipt']);
});
