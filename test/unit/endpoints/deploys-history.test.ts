import { expect, test } from 'vitest';
import { parseParams } from '../../../src/catalogue/params.ts';
import { deploysHistory } from '../../../src/endpoints/deploys.ts';
import { BadParameter, NotFound } from '../../../src/errors.ts';
import { account, hash, putBlocks, putCoverage, toHex } from '../../support/chain/chain-rows.ts';
import { UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const CODE = 0xc0;

interface Row {
  deployer?: number;
  code?: number | null;
  label?: string | null;
  kinds?: number | null;
  lookAt?: number | null;
}
function put(block: number, { deployer = 0xa, code = CODE, label = null, kinds = 0, lookAt = null }: Row = {}) {
  given()
    .db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    .run(
      ...[block, UNTIL, account(block), account(deployer), hash(block), code === null ? null : 10],
      ...[code === null ? null : hash(code), label, kinds, lookAt],
    );
}
const ask = async (query: Record<string, string> = {}) =>
  (await run(deploysHistory, given().sources, parseParams(deploysHistory, query))) as {
    deploys: Record<string, unknown>[];
    nextCursor: string | null;
    completeSince: unknown;
  };

test('says why a label is missing, what a contract is, and how many others have its code', async () => {
  put(5, { label: 'token "A"', kinds: 3 });
  put(4, { code: null, kinds: null });
  put(3, { lookAt: UNTIL + 60 });
  put(2, { code: 0xc1 });
  const { deploys, nextCursor } = await ask();
  const shown = deploys.map(({ labelState, kinds, codeHash, sameCodeOthers }) => [
    labelState,
    kinds,
    codeHash,
    sameCodeOthers,
  ]);
  expect(shown).toEqual([
    ['known', ['token', 'proxy'], toHex(hash(CODE)), 1],
    ['unread', null, null, null],
    ['open', [], toHex(hash(CODE)), 1],
    ['none', [], toHex(hash(0xc1)), 0],
  ]);
  expect(nextCursor).toBeNull();
});

test('goes past a page with the cursor, until nothing older is there', async () => {
  for (const block of [1, 2, 3, 4, 5]) put(block);
  const seen: unknown[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof ask>> = await ask({ limit: '2', ...(cursor !== null && { cursor }) });
    seen.push(page.deploys.map(({ block }) => block));
    cursor = page.nextCursor;
  } while (cursor !== null);
  expect(seen).toEqual([[5, 4], [3, 2], [1]]);
});

test('a page that exactly ends the rows has no next one', async () => {
  for (const block of [1, 2]) put(block);
  expect((await ask({ limit: '2' })).nextCursor).toBeNull();
  expect((await ask({ limit: '1' })).nextCursor).toBe(`2-${toHex(hash(2))}`);
});

test('a cursor past everything that is collected is 404 and so not charged', async () => {
  put(7);
  await expect(ask({ cursor: `7-${toHex(hash(7))}` })).rejects.toBeInstanceOf(NotFound);
});

test('takes only one deployer, and only one kind; nothing found is an answer', async () => {
  put(1, { deployer: 0xb, kinds: 1 });
  put(2, { deployer: 0xa, kinds: 2 });
  put(3, { deployer: 0xb, kinds: 0 });
  const blocks = async (query: Record<string, string>) => (await ask(query)).deploys.map(({ block }) => block);
  const deployer = toHex(account(0xb));
  expect(await blocks({ deployer })).toEqual([3, 1]);
  expect(await blocks({ deployer: deployer.toUpperCase().replace('0X', '0x') })).toEqual([3, 1]);
  expect(await blocks({ kind: 'proxy' })).toEqual([2]);
  expect(await blocks({ kind: 'other' })).toEqual([3]);
  expect(await blocks({ deployer, kind: 'token' })).toEqual([1]);
  expect(await blocks({ deployer, kind: 'proxy' })).toEqual([]);
});

test.each([
  [{ kind: 'nft' }, 'one of token, proxy, other'],
  [{ cursor: '7' }, 'the nextCursor of an earlier answer'],
  [{ cursor: `7-${'0'.repeat(64)}` }, 'the nextCursor of an earlier answer'],
  [{ deployer: '0x12' }, '0x address'],
])('%j is a bad parameter', (query, message) => {
  const parse = () => parseParams(deploysHistory, query);
  expect(parse).toThrow(BadParameter);
  try {
    parse();
  } catch (error) {
    expect(JSON.stringify(error)).toContain(message);
  }
});

test('says from when on nothing is missing', async () => {
  const { db } = given();
  putBlocks(db, [{ number: 8, at: UNTIL - 100 }]);
  putCoverage(db, 'full', [
    [1, 3],
    [8, 20],
  ]);
  expect((await ask()).completeSince).toEqual({ block: 8, at: UNTIL - 100 });
});
