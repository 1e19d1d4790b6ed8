import { expect, test } from 'vitest';
import { readText } from '../../support/documents.ts';

// The table of docs/limits.md has the figures of the code.

const rowAbout = (words: string): string =>
  readText('docs/limits.md')
    .split('\n')
    .find((line) => line.startsWith('|') && line.includes(words)) ?? '';
const constant = (file: string, name: string): string => {
  const [, value = 'absent'] = new RegExp(`^const ${name} = ([\\d_]+);`, 'm').exec(readText(file)) ?? [];
  return value;
};

test('what a payer may have open has the default of its key', () => {
  const [, most] = /^PAYER_MAX_OPEN=(\d+)$/m.exec(readText('.env.example')) ?? [];
  expect(rowAbout('payments that a payer has open')).toContain(`\`PAYER_MAX_OPEN\` (${most})`);
});

test('the Gateway’s queue has its places, its wait, and as many payers in a request', () => {
  const file = 'src/payment/usdc/gateway.ts';
  const seconds = Number(constant(file, 'WAIT_MS')) / 1000;
  const row = rowAbout("Circle's Gateway");
  expect(row).toContain(`${constant(file, 'MOST_DEPOSITORS')} payers share a request`);
  expect(row).toContain(`${constant(file, 'PLACES')} payers wait in each process, for ${seconds} s at the most`);
});

test('the checks of signatures by contracts have the budget that all rails share', () => {
  const file = 'src/payment/usdc/checks.ts';
  const [all, one, more] = ['CONTRACTS_PER_MINUTE', 'MOST_OF_CLIENT', 'CUSTOMERS_PER_MINUTE'].map((name) =>
    constant(file, name),
  );
  expect(rowAbout('signature checks by contracts (ERC-1271), over all rails')).toContain(
    `${all} a minute in each process, ${one} for a client; ${more} more for payers that have paid before`,
  );
});
