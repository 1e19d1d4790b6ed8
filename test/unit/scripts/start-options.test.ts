import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };

// The image does not start through npm, so it repeats the options that keep memory small.
test('the image starts the service by the command of npm start', () => {
  const [, command] = /^CMD (\[.*\])$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];
  expect(JSON.parse(String(command)).join(' ')).toBe(packageJson.scripts.start);
  expect(packageJson.scripts.start).toContain('--max-semi-space-size=');
});
