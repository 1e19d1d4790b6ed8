import { beforeEach, expect, test } from 'vitest';
import { chainBusy } from '../../../../../src/chain/rpc/failover.ts';
import { createSharedChannelReads } from '../../../../../src/payment/channels/channel.ts';
import { createContractStandIn } from '../../../../support/channels/contract-stand-in.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';

/** Reads that may wait here at once. */
const PLACES = 400;
const { signal } = new AbortController();

let contract: ReturnType<typeof createContractStandIn>;
let clock: ManualClock;
/** Lets the requests go. */
let open: () => void;
let read: ReturnType<typeof createSharedChannelReads>;
beforeEach(() => {
  contract = createContractStandIn();
  clock = createManualClock(1_800_000_000_000);
  const allowed = Promise.withResolvers<void>();
  open = allowed.resolve;
  read = createSharedChannelReads({ ...contract.chain, ready: () => allowed.promise }, clock);
});

const idOf = (name: string) => hash32(name);
const ask = (name: string, hasFailed: boolean) => read(idOf(name), { client: name, hasFailed, signal });
const outcome = (asked: Promise<unknown>) =>
  asked.then(
    () => 'read',
    (error: { code: string }) => error.code,
  );

test('clients that have failed in this minute leave a quarter of the places to those that have not', async () => {
  const failed = Array.from({ length: PLACES }, (_, at) => outcome(ask(`failed ${at}`, true)));
  const honest = Array.from({ length: PLACES / 4 }, (_, at) => outcome(ask(`honest ${at}`, false)));
  open();
  await clock.advance(100);
  for (let round = 0; round < 20; round++) await clock.advance(100);
  expect(new Set(await Promise.all(honest))).toEqual(new Set(['read']));
  const answers = await Promise.all(failed);
  expect(answers.filter((one) => one === 'chain_busy')).toHaveLength(PLACES / 4);
});

test('a request that the providers’ limits refuse is made again, and its clients wait on', async () => {
  contract.put(idOf('a'), { balance: 7n });
  let refusals = 1;
  contract.before = () => {
    if (refusals-- > 0) throw chainBusy();
  };
  open();
  const asked = ask('a', false);
  for (let round = 0; round < 10; round++) await clock.advance(100);
  expect((await asked).balance).toBe(7n);
  expect(contract.asked.map(({ method }) => method)).toEqual([
    'eth_getBlockByNumber',
    'eth_getBlockByNumber',
    'eth_call',
  ]);
});
