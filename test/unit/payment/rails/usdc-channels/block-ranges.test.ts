import { beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { createBlockRanges } from '../../../../../src/payment/channels/calldata.ts';

const MOST = 100;
let asked: string[];
/** The most blocks that the node takes. */
let takes: number;
let failure: Error | null;
let read: (head: number) => Promise<void>;
beforeEach(() => {
  [asked, takes, failure] = [[], 1000, null];
  read = createBlockRanges(async (from, to) => {
    asked.push(`${from}-${to}`);
    if (failure) throw failure;
    if (to - from + 1 > takes) throw new RpcError(-32005, 'too many blocks');
  }, MOST);
});
const askedNow = () => asked.splice(0);

describe('the reading of block ranges', () => {
  test('begins with the head alone and leaves no block out afterwards', async () => {
    await read(500);
    await read(500);
    await read(501);
    await read(601);
    await read(750);
    expect(askedNow()).toEqual(['500-500', '501-501', '502-601', '602-701', '702-750']);
  });

  test('halves a range that the node refuses, and doubles it again once it is taken', async () => {
    await read(0);
    takes = 30;
    await read(100);
    expect(askedNow()).toEqual(['0-0', '1-100', '1-50', '1-25', '26-75', '26-50', '51-100', '51-75', '76-100']);
    takes = 1000;
    await read(400);
    expect(askedNow()).toEqual(['101-200', '201-300', '301-400']);
  });

  test('gives up at a single block that the node refuses, and goes on there', async () => {
    await read(0);
    takes = 0;
    await expect(read(3)).rejects.toThrow('too many blocks');
    expect(askedNow()).toEqual(['0-0', '1-3', '1-1']);
    takes = 1000;
    await read(3);
    expect(askedNow()).toEqual(['1-1', '2-3']);
  });

  test('ends with a failure that is no refusal, and goes on there with half of the range', async () => {
    await read(0);
    failure = new Error('no provider answers');
    await expect(read(90)).rejects.toThrow('no provider answers');
    expect(askedNow()).toEqual(['0-0', '1-90']);
    failure = null;
    await read(90);
    expect(askedNow()).toEqual(['1-45', '46-90']);
  });
});
