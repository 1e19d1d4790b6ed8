import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };

// The image does not start through npm, so it repeats what keeps memory small: the options, and a variable of glibc.
test('the image starts the service by the command of npm start', () => {
  const image = readFileSync('Dockerfile', 'utf8');
  const command: string[] = JSON.parse(/^CMD (\[.*\])$/m.exec(image)?.[1] ?? '[]');
  const variables = /^ENV (.*)$/m.exec(image)?.[1]?.split(' ') ?? [];
  const [variable = '', ...words] = packageJson.scripts.start.split(' ');
  expect(command).toEqual(words);
  expect(variables).toContain(variable);
  expect(words).toEqual(['node', expect.stringMatching(/^--max-semi-space-size=\d+$/), ...command.slice(2)]);
});
