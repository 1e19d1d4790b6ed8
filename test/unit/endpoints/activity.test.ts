import { expect, test } from 'vitest';
import { deploys, deploysHistory } from '../../../src/endpoints/deploys.ts';
import { activity } from '../../../src/endpoints/network.ts';
import { account, hash, putBlocks, putCoverage, toHex } from '../../support/chain/chain-rows.ts';
import { HOUR, PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const THIS_HOUR = UNTIL - 1800;

function fill() {
  const { db } = given();
  putBlocks(db, [
    { number: 100, at: THIS_HOUR - 24 * HOUR, counts: [9, 9, 9, 9] },
    { number: 198, at: THIS_HOUR - 2 * HOUR + 5, exact: 0 },
    { number: 199, at: THIS_HOUR - HOUR - 1, exact: 0 },
    { number: 200, at: THIS_HOUR - HOUR, counts: [1, 2, 3, 4] },
    { number: 201, at: THIS_HOUR - 1, counts: [2, 0, 1, 0] },
    { number: 202, at: THIS_HOUR, counts: [0, 1, 0, 0] },
  ]);
  putCoverage(db, 'full', [[200, 202]]);
  const insert = db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, ?, NULL, ?, NULL, NULL)');
  insert.run(200, THIS_HOUR - HOUR, account(1), account(0xa), hash(1), 100, 'token "A"');
  // Of the two creations that block 201 tried, one failed.
  insert.run(201, THIS_HOUR - 1, account(2), account(0xa), hash(2), null, null);
}

test('activity: counted hours of the last day, with their operations', async () => {
  fill();
  expect(await run(activity, given().sources)).toEqual({
    hours: [
      {
        at: THIS_HOUR - HOUR,
        blocks: 2,
        transactions: 13,
        complete: false,
        operations: { deploy: 3, nativeTransfer: 2, tokenTransfer: 4, contractCall: 4 },
      },
      {
        at: THIS_HOUR,
        blocks: 1,
        transactions: 1,
        complete: false,
        operations: { deploy: 0, nativeTransfer: 1, tokenTransfer: 0, contractCall: 0 },
      },
    ],
    ...PROVENANCE,
  });
});

test('deploys: the newest, in the requested number', async () => {
  fill();
  expect(await run(deploys, given().sources, { limit: 1 })).toEqual({
    deploys: [
      {
        address: toHex(account(2)),
        deployer: toHex(account(0xa)),
        transaction: toHex(hash(2)),
        block: 201,
        at: THIS_HOUR - 1,
        codeBytes: null,
        label: null,
      },
    ],
    detail: expect.any(Object),
    ...PROVENANCE,
  });
});

test('deploys/history: the number of contracts and of deployers in each counted hour', async () => {
  fill();
  const reply = await run(deploysHistory, given().sources, { limit: 200 });
  expect(reply).toMatchObject({
    deploys: [{ block: 201 }, { block: 200, codeBytes: 100, label: 'token "A"' }],
    hours: [
      { at: THIS_HOUR - HOUR, deploys: 2, deployers: 1 },
      { at: THIS_HOUR, deploys: 0, deployers: 0 },
    ],
    ...PROVENANCE,
  });
});
