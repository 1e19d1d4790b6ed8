import { randomBytes } from 'node:crypto';
import { keccak256, parseTransaction } from 'viem';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { transferCalldata } from '../../../src/payment/usdc/token.ts';
import type { Fate, ProxiedCall } from '../chain/fault-proxy.ts';
import { cancelCalldata, newOutsider } from './outsider.ts';
import { newKey, signAuthorization } from './payments.ts';
import type { Sale, Stage } from './relayer-stage.ts';

type Random = () => number;

/** How each sale must end. A sale that is not listed may have any end. */
export type Endings = ReadonlyMap<Sale, RegExp>;

/** A fault during settlement. `run` sells, causes the fault and ends it. When it returns, every buyer has the last answer. */
export interface RelayerFault {
  /** The share of the seeds that it gets; 1 by default. */
  readonly weight?: number;
  /** With two, the second is the node itself, without faults. */
  readonly providers?: 1 | 3;
  /** Two seeds with numbers that follow each other have the fault on either side of what it disturbs. */
  readonly hasSides?: true;
  run(stage: Stage, random: Random, number: number): Promise<Endings>;
}

/** The number of payments in the fault whose payers move their balances. */
const MANY = process.env.SLOW ? 500 : 30;
const SERVED = /^served$/;
const USED_ELSEWHERE = /^402 invalid_exact_evm_nonce_already_used$/;
/** Contract code that uses up all its gas. */
const ENDLESS = '0x5b600056';
/**
 * Contract code that uses all but 62,000 gas and then accepts any signature (ERC-1271). It passes every check, and each payment has the highest
 * possible cost. 62,000 are left, because the transfer itself takes 59,000 where the seller had no balance before, and 42,000 where it had one, of a
 * limit of 300,000.
 */
const WASTEFUL = '0x5b6200f2305a11600057631626ba7e60e01b60005260206000f3';
const AMPLE = { gas: 300_000n, maxFeePerGas: 400n * 10n ** 9n, maxPriorityFeePerGas: 5n * 10n ** 9n };

const sleep = (ms: number) => new Promise((next) => setTimeout(next, ms));
const between = (random: Random, from: number, to: number) => from + Math.floor(random() * (to - from + 1));
const pick = <T>(random: Random, choices: readonly T[]): T => choices[between(random, 0, choices.length - 1)] as T;
/** About half of the sales, the first one always. */
const aHalf = (random: Random, sales: readonly Sale[]) => sales.filter((_, at) => random() < 0.5 || at === 0);
const all = (sales: readonly Sale[], ending: RegExp): Endings => new Map(sales.map((sale) => [sale, ending]));

async function somePayments(stage: Stage, random: Random): Promise<Sale[]> {
  const payers = await Promise.all(
    Array.from({ length: between(random, 1, 5) }, () => stage.newPayer(between(random, 1, 3))),
  );
  return payers.flatMap(({ sales }) => sales);
}

/**
 * Presents all payments until they end. Calls `act` when the handler of each that has not ended runs: after the checks, before any settlement. Not after
 * some time: where a busy machine delays the checks, `act` would come before the payments are known.
 */
async function whileServed(stage: Stage, sales: readonly Sale[], act: () => unknown): Promise<void> {
  stage.latch.close();
  const before = stage.latch.runs();
  let ended = 0;
  const ends = Promise.all(sales.map((sale) => stage.untilEnded(sale).finally(() => ended++)));
  // Awaited below. Until then, a failure would be an unhandled rejection.
  ends.catch(() => {});
  while (stage.latch.runs() - before + ended < sales.length) await sleep(10);
  await act();
  stage.latch.open();
  await ends;
}

/** Applies fates to calls for a while, once every handler runs. */
function whileSettling(fate: (random: Random) => (call: ProxiedCall) => Fate, providers: 1 | 3 = 1): RelayerFault {
  return {
    providers,
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const forMs = between(random, 200, 2500);
      await whileServed(stage, sales, () => {
        stage.proxy.play({ fate: fate(random) });
        setTimeout(() => stage.proxy.play({}), forMs);
      });
      return all(sales, SERVED);
    },
  };
}

const onSend =
  (fate: () => Fate) =>
  ({ method }: ProxiedCall): Fate =>
    method === 'eth_sendRawTransaction' ? fate() : 'pass';

const REFUSALS = [
  'txpool is full',
  'nonce too low',
  'replacement transaction underpriced',
  'insufficient funds for gas * price + value',
  'an unknown error',
];
const NONSENSE = ['not json', '[]', '{}', 'null', '{"jsonrpc":"2.0","id":1}', '[{"jsonrpc":"2.0"}]', ''];
const NO_RESULTS = [null, 42, '0x', '0xzz', {}, [], true, `0x${'f'.repeat(70)}`, [{}], { logs: [], status: '0x1' }];

/** Sends another transaction with the relayer's key. */
async function foreign(stage: Stage, nonce: number, dear: boolean): Promise<void> {
  const fees = dear ? AMPLE : { gas: 100_000n, maxFeePerGas: 45n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n };
  const { raw } = stage.relayer.wallet.sign({ to: stage.relayer.address, data: '0x', nonce, ...fees });
  await stage.network.rpc('eth_sendRawTransaction', [raw]).catch(() => {});
}

const nonceOf = ({ params }: ProxiedCall): number => parseTransaction(params[0] as `0x${string}`).nonce ?? 0;

/** Acts on the first transactions, before or after the node has them. */
function onFirstSends(act: (stage: Stage, call: ProxiedCall) => Promise<unknown>): RelayerFault {
  return {
    hasSides: true,
    run: async (stage, random, number) => {
      const sales = await somePayments(stage, random);
      let left = between(random, 1, 3);
      const hook = async (call: ProxiedCall): Promise<void> => {
        if (call.method === 'eth_sendRawTransaction' && left-- > 0) await act(stage, call);
      };
      stage.proxy.play(number % 2 === 0 ? { before: hook } : { after: hook });
      await whileServed(stage, sales, () => {});
      return all(sales, SERVED);
    },
  };
}

/** Sends calldata as a third party. Its higher tip gets it mined before ours. */
async function hurl(stage: Stage, calldata: readonly `0x${string}`[]): Promise<void> {
  const outsider = await newOutsider(stage.network);
  await Promise.all(calldata.map((data) => outsider.send(data)));
}

/** Acts on some of the payments, while they are served or when the first transaction is being sent. */
async function against(stage: Stage, number: number, sales: readonly Sale[], act: () => Promise<unknown>) {
  if (number % 2 === 0) return whileServed(stage, sales, act);
  let acted: Promise<unknown> | null = null;
  stage.proxy.play({
    before: async ({ method }) => {
      if (method === 'eth_sendRawTransaction') acted ??= act();
      // A short head start. It need not be mined.
      if (method === 'eth_sendRawTransaction') await Promise.race([acted, sleep(50)]);
    },
  });
  await whileServed(stage, sales, () => {});
  await acted;
}

export const RELAYER_FAULTS: Record<string, RelayerFault> = {
  'refuses transactions': whileSettling((random) =>
    onSend(() => (random() < 0.8 ? { error: { code: -32000, message: pick(random, REFUSALS) } } : 'pass')),
  ),
  'answers with HTTP errors': whileSettling(
    (random) => () => (random() < 0.5 ? { http: pick(random, [429, 500, 502, 503]) } : 'pass'),
  ),
  'hangs before a transaction has arrived': whileSettling(() => onSend(() => 'drop')),
  'hangs after a transaction has arrived': whileSettling(() => onSend(() => 'deaf')),
  'answers nonsense': whileSettling((random) => () => {
    const dice = random();
    if (dice < 0.2) return { garbage: pick(random, NONSENSE) };
    return dice < 0.45 ? { result: pick(random, NO_RESULTS) } : 'pass';
  }),
  'turns to another chain': whileSettling(
    () =>
      ({ method }) =>
        method === 'eth_chainId' ? { result: '0x1' } : { http: 500 },
    3,
  ),
  'is slow': whileSettling((random) => () => (random() < 0.6 ? { delayMs: between(random, 50, 1200) } : 'pass')),
  'keeps transactions to itself': whileSettling(
    () =>
      ({ method, params }) =>
        method === 'eth_sendRawTransaction' ? { result: keccak256(params[0] as `0x${string}`) } : 'pass',
    3,
  ),
  'tells wrong hashes': whileSettling(() => onSend(() => ({ result: bytesToHex(randomBytes(32)) }))),
  'shows receipts and hides them again': whileSettling(
    (random) =>
      ({ method }) =>
        method === 'eth_getTransactionReceipt' && random() < 0.6 ? { result: null } : 'pass',
  ),
  'drops transactions': onFirstSends(async (stage, { params }) => {
    // Drops it once the node has it. Before that there is nothing to drop.
    setTimeout(
      () => void stage.network.rpc('anvil_dropTransaction', [keccak256(params[0] as `0x${string}`)]).catch(() => {}),
      5,
    );
  }),
  'has dearer transactions of the relayer’s own key in place of ours': onFirstSends((stage, call) =>
    foreign(stage, nonceOf(call), true),
  ),
  'has cheaper transactions of the relayer’s own key in the way': {
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const nonce = Number(await stage.network.rpc('eth_getTransactionCount', [stage.relayer.address, 'latest']));
      await whileServed(stage, sales, async () => {
        for (let ahead = 0; ahead < between(random, 1, 3); ahead++) await foreign(stage, nonce + ahead, false);
      });
      return all(sales, SERVED);
    },
  },
  'is started again': {
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const [afterMs, forMs] = [between(random, 0, 300), between(random, 300, 2000)];
      let away: Promise<void> | undefined;
      await whileServed(stage, sales, () => {
        setTimeout(() => {
          away = stage.proxy.away(forMs);
        }, afterMs);
      });
      await away;
      return all(sales, SERVED);
    },
  },
  'finds no gas with the relayer for a while': {
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const setBalance = (wei: bigint) =>
        stage.network.rpc('anvil_setBalance', [stage.relayer.address, `0x${wei.toString(16)}`]);
      await whileServed(stage, sales, async () => {
        await setBalance(pick(random, [0n, 10n ** 15n, 2n * 10n ** 16n]));
        setTimeout(() => void setBalance(10n ** 20n), between(random, 300, 2000));
      });
      return all(sales, SERVED);
    },
  },
  'meets authorizations that were cancelled': {
    hasSides: true,
    run: async (stage, random, number) => {
      const sales = await somePayments(stage, random);
      const cancelled = aHalf(random, sales);
      const calls = cancelled.map((sale) => cancelCalldata(stage.network, sale.privateKey, sale.authorization));
      await against(stage, number, sales, () => hurl(stage, calls));
      // A payment that was mined before its cancellation is paid.
      return new Map(sales.map((sale) => [sale, cancelled.includes(sale) ? /^served$|^402/ : SERVED]));
    },
  },
  'meets authorizations that a third party has sent': {
    hasSides: true,
    run: async (stage, random, number) => {
      const sales = await somePayments(stage, random);
      const sent = aHalf(random, sales);
      await against(stage, number, sales, () =>
        hurl(
          stage,
          sent.map(({ authorization }) => transferCalldata(authorization)),
        ),
      );
      return all(sales, SERVED);
    },
  },
  'meets nonces that their payers used elsewhere': {
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const elsewhere = aHalf(random, sales);
      const calls = elsewhere.map(({ privateKey, requirement, authorization: { nonce } }) =>
        transferCalldata(signAuthorization(privateKey, requirement, { nonce, to: `0x${'ee'.repeat(20)}` })),
      );
      await whileServed(stage, sales, () => hurl(stage, calls));
      return new Map(sales.map((sale) => [sale, elsewhere.includes(sale) ? USED_ELSEWHERE : SERVED]));
    },
  },
  'meets a balance that moved away under many authorizations': {
    weight: MANY / 50,
    hasSides: true,
    run: async (stage, random, number) => {
      const count = pick(random, [1, 3, 10]);
      const payers = await Promise.all(Array.from({ length: count }, () => stage.newPayer(Math.ceil(MANY / count))));
      const sales = payers.flatMap((payer) => payer.sales);
      const moves = payers.map(({ privateKey, sales: [first, ...rest] }) => {
        const value = 1000n * BigInt(rest.length + 1);
        const { requirement } = first as Sale;
        return transferCalldata(signAuthorization(privateKey, requirement, { to: `0x${'ee'.repeat(20)}`, value }));
      });
      await against(stage, number, sales, () => hurl(stage, moves));
      return new Map();
    },
  },
  'meets a wallet that burns gas': {
    run: async (stage, random) => {
      const sales = await somePayments(stage, random);
      const [wallet, owner] = [newKey(), newKey()];
      await stage.network.rpc('anvil_setCode', [wallet.address, WASTEFUL]);
      await stage.network.fundUsdc(wallet.address, 10_000n);
      const griefer = stage.newSale(owner.privateKey, hexToBytes(wallet.address));
      await whileServed(stage, [...sales, griefer], () => {});
      // Beside other payments nobody can tell whose gas was burnt. The wallet is refused once it was alone, which its second payment is.
      const refused = /^429 payer_refused$/;
      let last = stage.newSale(owner.privateKey, hexToBytes(wallet.address));
      if (!refused.test(await stage.untilEnded(last))) {
        last = stage.newSale(owner.privateKey, hexToBytes(wallet.address));
        await stage.untilEnded(last);
      }
      return new Map([...all([...sales, griefer], SERVED), [last, refused]]);
    },
  },
  'meets payers that grow code': {
    hasSides: true,
    run: async (stage, random, number) => {
      const sales = await somePayments(stage, random);
      const grown = await Promise.all(Array.from({ length: between(random, 1, 2) }, () => stage.newPayer()));
      const late = grown.flatMap((payer) => payer.sales);
      const grow = () =>
        Promise.all(grown.map(({ address }) => stage.network.rpc('anvil_setCode', [address, ENDLESS])));
      const order = random() < 0.5 ? [...sales, ...late] : [...late, ...sales];
      await against(stage, number, order, grow);
      // A buyer that got 503 asks again. By then the payer may be banned, or its payment simulated again.
      const refused = /^402 invalid_exact_evm_transaction_(simulation_)?failed$|^429 payer_refused$/;
      return new Map([...all(sales, SERVED), ...all(late, refused)]);
    },
  },
};
