import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { seedsOf, UsageError } from './arguments.ts';

const program = (name: string, ...args: string[]) =>
  spawnSync(process.execPath, [fileURLToPath(new URL(`../${name}`, import.meta.url)), ...args], { encoding: 'utf8' });

describe.each(['simulate.ts', 'find-plants.ts'])('%s', (name) => {
  test('prints its usage for --help', () => {
    const { status, stdout, stderr } = program(name, '--help');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^npm run simulate.* -- \[--/);
  });
});

test.each([
  [['--seeds', '3'], "Unknown option '--seeds'"],
  [['--from', 'two'], '--from takes a whole number from 0 on, not "two"'],
  [['--from', '-3'], "Option '--from' argument is ambiguous"],
  [['--count', '0'], '--count takes a whole number from 1 on, not "0"'],
  [['--processes', '1.5'], '--processes takes a whole number from 1 on, not "1.5"'],
  [['17'], "Unexpected argument '17'"],
])('arguments that make no sense get one line and exit code 2: %j', (args, said) => {
  const { status, stdout, stderr } = program('simulate.ts', ...args);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr.startsWith(said)).toBe(true);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});

test('seeds are numbers and ranges, and nothing else', () => {
  expect(seedsOf('17')).toEqual([17]);
  expect(seedsOf('3,7,9-12')).toEqual([3, 7, 9, 10, 11, 12]);
  for (const text of ['', '1-', '5-3', 'a', '1,,2', '1-9999999']) expect(() => seedsOf(text)).toThrow(UsageError);
});
