import { expect, test } from 'vitest';
import { incomeCsv } from '../../../scripts/lib/ledger/ledger-csv.ts';
import { listJson, listText, statusJson, statusText } from '../../../scripts/lib/ledger/ledger-text.ts';
import type { Income, LedgerStatus, ListedPayment } from '../../../src/store/ports/reports.ts';
import { gathered } from '../../support/gathered.ts';

const AT = Date.UTC(2026, 0, 31, 23, 59, 59, 250);

const status: LedgerStatus = {
  sums: [
    { rail: 'usdc', state: 'settled', count: 3, amount: 3_000_001n },
    { rail: 'lightning', state: 'claimed', count: 1, amount: 25_000n },
  ],
  oldestOpen: { id: '0a', state: 'unknown', reservedAt: AT },
  replies: { count: 2, bytes: 10 },
  lightning: { invoices: 4, facilitatorClaims: 5 },
};
const payment: ListedPayment = {
  id: '0a',
  state: 'settled',
  amount: 1500n,
  nonce: Buffer.alloc(32, 1),
  transaction: Buffer.alloc(32, 0xab),
  block: 7,
  reservedAt: AT,
  endedAt: AT + 1000,
  route: '/v1/paid/chain/wallet',
  protocol: 'x402',
};

test('a status shows exact sums in their units, and the age of the oldest open payment', () => {
  const text = statusText(status, AT + 61_900).join('\n');
  expect(text).toMatch(/usdc +settled +3 +3\.000001 USDC/);
  expect(text).toMatch(/lightning +claimed +1 +25000 msat/);
  expect(text).toContain('0a, unknown, reserved 61 s ago (2026-01-31T23:59:59.250Z)');
  expect(statusJson(status, AT + 61_900)).toMatchObject({
    sums: [{ amount: '3000001' }, { amount: '25000' }],
    oldestOpen: { reservedAt: Math.floor(AT / 1000), ageSeconds: 61 },
  });
});

test('a status with nothing open and without Lightning says so', () => {
  const text = statusText({ ...status, oldestOpen: null, lightning: null }, AT).join('\n');
  expect(text).toContain('no open payment');
  expect(text).toContain('lightning: not in this ledger');
  expect(statusJson({ ...status, oldestOpen: null, lightning: null }, AT)).toMatchObject({
    oldestOpen: null,
    lightning: null,
  });
});

test('a listed payment shows its hashes, and missing values as - or null', () => {
  const open = {
    ...payment,
    state: 'unknown',
    transaction: null,
    block: null,
    endedAt: null,
    route: null,
    protocol: 'x402',
  } as const;
  const [head, first, second] = listText([payment, open]);
  expect(head?.split(/ +/)).toEqual([
    'id',
    'state',
    'usdc',
    'reserved',
    'ended',
    'nonce',
    'transaction',
    'route',
    'protocol',
  ]);
  expect(first).toMatch(
    /^0a +settled +0\.0015 +2026-01-31T23:59:59\.250Z +2026-02-01T00:00:00\.250Z +0x(01){32} +0x(ab){32} +\/v1\/paid\/chain\/wallet +x402$/,
  );
  expect(second).toMatch(/ - +0x(01){32} +- +- +x402$/);
  expect(listJson([open])).toEqual({
    payments: [
      {
        id: '0a',
        state: 'unknown',
        amountUsdc: '0.0015',
        nonce: `0x${'01'.repeat(32)}`,
        transaction: null,
        block: null,
        reservedAt: Math.floor(AT / 1000),
        endedAt: null,
        route: null,
        protocol: 'x402',
      },
    ],
  });
});

test('income is CSV with a header, CRLF, exact amounts, and no field that needs quotes', async () => {
  const income: Income[] = [
    {
      rail: 'usdc',
      id: '0a',
      amount: 1500n,
      at: AT,
      hash: Buffer.alloc(32, 0xab),
      block: 7,
      route: '/v1/paid/a',
      protocol: 'x402',
    },
    {
      rail: 'lightning',
      id: null,
      amount: 25_000n,
      at: AT,
      hash: Buffer.alloc(32, 0xcd),
      block: null,
      route: '/v1/lightning/b-c',
      protocol: 'x402',
    },
    {
      rail: 'usdc',
      id: '0b',
      amount: 1n,
      at: AT,
      hash: Buffer.alloc(32, 0xef),
      block: 8,
      route: null,
      protocol: 'x402',
    },
  ];
  const csv = (await gathered(incomeCsv(income))).join('');
  expect(csv).toBe(
    `rail,id,amount,unit,at,transaction,block,route,protocol\r\n` +
      `usdc,0a,0.0015,USDC,2026-01-31T23:59:59.250Z,0x${'ab'.repeat(32)},7,/v1/paid/a,x402\r\n` +
      `lightning,${'cd'.repeat(32)},25000,msat,2026-01-31T23:59:59.250Z,${'cd'.repeat(32)},,/v1/lightning/b-c,x402\r\n` +
      `usdc,0b,0.000001,USDC,2026-01-31T23:59:59.250Z,0x${'ef'.repeat(32)},8,,x402\r\n`,
  );
  expect(csv.replaceAll('\r\n', '')).toMatch(/^[\w,.:/-]*$/);
  expect(await gathered(incomeCsv([]))).toEqual(['rail,id,amount,unit,at,transaction,block,route,protocol\r\n']);
});
