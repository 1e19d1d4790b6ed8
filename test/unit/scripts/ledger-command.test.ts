import { describe, expect, test } from 'vitest';
import { readLedgerCommand } from '../../../scripts/lib/ledger/ledger-command.ts';
import { UsageError } from '../../../scripts/lib/ledger/operator-command.ts';

const read = (line: string) => readLedgerCommand(line === '' ? [] : line.split(' '));

test.each([
  ['status', { name: 'status', dataDir: undefined, json: false }],
  ['status --json --data-dir x', { name: 'status', dataDir: 'x', json: true }],
  ['list', { name: 'list', dataDir: undefined, state: null, limit: 50, json: false }],
  ['list --state unknown --limit 7', { name: 'list', dataDir: undefined, state: 'unknown', limit: 7, json: false }],
  ['reconcile --timeout 5', { name: 'reconcile', dataDir: undefined, timeoutMs: 5000 }],
  ['claim', { name: 'claim', dataDir: undefined, timeoutMs: 120_000 }],
  ['claim --timeout 5 --data-dir x', { name: 'claim', dataDir: 'x', timeoutMs: 5000 }],
  ['copy --to postgres://h/d', { name: 'copy', dataDir: undefined, from: undefined, to: 'postgres://h/d' }],
  ['copy --from x', { name: 'copy', dataDir: undefined, from: 'x', to: undefined }],
  ['providers', { name: 'providers', dataDir: undefined }],
  ['accept-mismatch', { name: 'accept-mismatch', dataDir: undefined }],
  ['trust rpc.example:8545', { name: 'trust', dataDir: undefined, host: 'rpc.example:8545' }],
  ['trust rpc.example --data-dir x', { name: 'trust', dataDir: 'x', host: 'rpc.example' }],
  ['export --csv', { name: 'export', dataDir: undefined, from: 0, to: Number.MAX_SAFE_INTEGER }],
])('%s is accepted', (line, command) => {
  expect(read(line)).toEqual(command);
});

test('the days of an export are UTC, the last one included', () => {
  const command = read('export --csv --from 2026-01-01 --to 2026-01-31');
  expect(command).toMatchObject({ from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 1, 1) });
  expect(read('export --csv --from 2026-01-01 --to 2026-01-01')).toMatchObject({ from: Date.UTC(2026, 0, 1) });
});

test.each([
  '--help',
  'status --help',
  'list --help',
  'reconcile --help',
  'claim --help',
  'export --help',
  'copy --help',
  'providers --help',
  'accept-mismatch --help',
  'trust --help',
  'trust rpc.example --help',
])('%s asks for help', (line) => {
  expect(read(line)).toBeNull();
});

describe('wrong usage', () => {
  test.each([
    '',
    'stauts',
    'status --limit 3',
    'status more',
    'list --state lost',
    'list --state',
    'list --limit 0',
    'list --limit 100001',
    'list --limit 1.5',
    'list --limit -1',
    'reconcile --timeout 0',
    'reconcile --json',
    'claim --timeout 0',
    'claim all',
    'copy x',
    'providers x',
    'accept-mismatch all',
    'trust',
    'trust --data-dir x',
    'trust a b',
    'copy --from x --data-dir y',
    'export',
    'export --csv --from 2026-02-29',
    'export --csv --to yesterday',
    'export --csv --from 2026-01-02 --to 2026-01-01',
  ])('%s is refused', (line) => {
    expect(() => read(line)).toThrow(UsageError);
  });
});
