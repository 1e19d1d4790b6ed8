import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { startCommand } from '../../../scripts/lib/build/start-command.ts';

// The image does not start through npm, so it repeats what keeps memory small: the options, and a variable of glibc.
test('the image starts the service by the command of npm start', () => {
  const image = readFileSync('Dockerfile', 'utf8');
  const { variable, options, program } = startCommand();
  expect(JSON.parse(/^CMD (\[.*\])$/m.exec(image)?.[1] ?? '[]')).toEqual(['node', ...options, program]);
  expect(/^ENV (.*)$/m.exec(image)?.[1]?.split(' ')).toContain(variable);
  expect(options).toContainEqual(expect.stringMatching(/^--max-semi-space-size=\d+$/));
});

// npm leaves out `prestart` where a user has set `ignore-scripts`, and would start the program before the upgrade.
test('npm start builds by itself', () => {
  expect(packageJson.scripts.start).toMatch(/^npm run -s build && /);
  expect(packageJson.scripts).not.toHaveProperty('prestart');
});

// A shell that stays between npm and the service would die of SIGTERM and leave the service running.
test('npm start leaves no shell between npm and the service', () => {
  expect(packageJson.scripts.start).toMatch(/ && exec env \S+ node [^&|;]+$/);
});
