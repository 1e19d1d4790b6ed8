import { toFunctionSelector } from 'viem';
import { beforeEach, describe, expect, test } from 'vitest';
import { SELECTORS } from '../../../src/chain/contracts.ts';
import { ORACLE_SELECTORS } from '../../../src/chain/oracle.ts';
import { chainUsyc } from '../../../src/endpoints/chain/usyc.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { address, NOW_SECONDS, number, useFixture } from './fixture.ts';

const DAY = 86_400;
const E18 = 10n ** 18n;
const TOKEN = address('e9');
const ORACLE = address('0c');
const usyc = {
  token: '0x00000000000000000000000000000000000000E9',
  oracle: '0x000000000000000000000000000000000000000C',
} as const;

interface Answered {
  id: bigint;
  answer: bigint;
  at: number;
}

const given = useFixture();
/** The rounds that the oracle has published, the newest last. */
let rounds: Answered[];
/** Replaces the answer about a round by bytes, or by an error of the node. */
let special: Map<bigint, string | RpcFault>;
/** The two contracts' own values, by selector. `latest` replaces the newest round. */
let views: { oracleDecimals: string | RpcFault; decimals: string; totalSupply: string; latest?: string | RpcFault };

const encode = ({ id, answer, at }: Answered) =>
  `0x${[id, BigInt.asUintN(256, answer), BigInt(at), BigInt(at), id].map((word) => number(word).slice(2)).join('')}`;
const say = (answer: string | RpcFault) => {
  if (answer instanceof RpcFault) throw answer;
  return answer;
};
const noData = () => new RpcFault(3, 'execution reverted: No data present');

beforeEach(() => {
  special = new Map();
  views = { oracleDecimals: number(18n), decimals: number(6n), totalSupply: number(18_250_433_120_977n) };
  rounds = [1n, 2n, 3n].map((id) => ({ id, answer: E18 + id, at: NOW_SECONDS - 10 * DAY + Number(id) * DAY }));
  given().node.methods.eth_call = (params) => {
    const [{ to, data }, block] = params as [{ to: string; data: string }, string];
    expect(block).toBe('0x3e8');
    const selector = data.slice(0, 10);
    if (to.toLowerCase() === TOKEN) return selector === SELECTORS['decimals()'] ? views.decimals : views.totalSupply;
    expect(to.toLowerCase()).toBe(ORACLE);
    if (selector === SELECTORS['decimals()']) return say(views.oracleDecimals);
    if (selector === ORACLE_SELECTORS['latestRoundData()']) return say(views.latest ?? encode(rounds.at(-1)!));
    expect(selector).toBe(ORACLE_SELECTORS['getRoundData(uint80)']);
    const id = BigInt(`0x${data.slice(10)}`);
    const round = rounds.find((candidate) => candidate.id === id);
    return say(special.get(id) ?? (round ? encode(round) : noData()));
  };
});

/** As on the routes, the reply must match its own schema. */
const read = async (contracts: typeof usyc | null = usyc) => {
  const { chain, clock } = given().sources;
  return chainUsyc.result.parse(
    await chainUsyc.run({}, { chain, clock, usyc: contracts }, AbortSignal.timeout(60_000)),
  );
};
interface Reply {
  history: { round: string; at: number; usd: string }[];
}
const reply = async () => (await read()) as unknown as Reply;
const roundsOf = async () => (await reply()).history.map(({ round }) => round);
const asked = () =>
  given()
    .node.bodies.flat()
    .filter((call) => JSON.stringify(call).includes(ORACLE_SELECTORS['getRoundData(uint80)'])).length;

test.each(Object.entries(ORACLE_SELECTORS))('the selector of %s follows from its signature', (signature, selector) => {
  expect(toFunctionSelector(`function ${signature}`)).toBe(selector);
});

test('price, round, supply, history and contracts, exact and at one block', async () => {
  expect(await read()).toEqual({
    priceUsd: '1.000000000000000003',
    round: '3',
    updatedAt: NOW_SECONDS - 7 * DAY,
    growth: { annualised7dPercent: null, annualised30dPercent: null, annualised7d: null, annualised30d: null },
    supplyOnChain: '18250433.120977',
    supplyUnit: 'USYC',
    history: [
      { round: '3', at: NOW_SECONDS - 7 * DAY, usd: '1.000000000000000003' },
      { round: '2', at: NOW_SECONDS - 8 * DAY, usd: '1.000000000000000002' },
      { round: '1', at: NOW_SECONDS - 9 * DAY, usd: '1.000000000000000001' },
    ],
    contracts: { token: TOKEN, oracle: ORACLE },
    asOfBlock: 1000,
    source: given().source,
  });
});

test('decimals are the oracle’s own', async () => {
  views.oracleDecimals = number(8n);
  rounds = [{ id: 1n, answer: 113_826_451n, at: NOW_SECONDS }];
  expect(await read()).toMatchObject({ priceUsd: '1.13826451', history: [{ usd: '1.13826451' }] });
});

test('the supply of a token that does not answer is null, and the price is still given', async () => {
  views.totalSupply = '0x';
  expect(await read()).toMatchObject({ supplyOnChain: null, round: '3' });
  views = { ...views, totalSupply: number(1n), decimals: '0x' };
  expect(await read()).toMatchObject({ supplyOnChain: null, round: '3' });
});

describe('past rounds', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      id: BigInt(at + 1),
      answer: E18,
      at: NOW_SECONDS - (count - at) * DAY,
    }));

  test('at most 35 are listed, read in one batch, with two requests in total', async () => {
    rounds = many(60);
    await given().sources.chain.request('eth_blockNumber', []);
    const before = given().node.requests.length;
    const listed = await roundsOf();
    expect([listed.length, listed[0], listed.at(-1)]).toEqual([35, '60', '26']);
    expect(given().node.requests.length - before).toBe(3);
    expect(asked()).toBe(34);
  });

  test('known rounds are not read again, and the newest always is', async () => {
    rounds = many(40);
    await read();
    expect(asked()).toBe(34);
    rounds.at(-1)!.answer = 2n * E18;
    expect(await read()).toMatchObject({ priceUsd: '2' });
    expect(asked()).toBe(34);
    rounds.push({ id: 41n, answer: 3n * E18, at: NOW_SECONDS });
    const { history } = await reply();
    expect(history.slice(0, 2).map(({ usd }) => usd)).toEqual(['3', '2']);
    expect(asked()).toBe(35);
  });

  test('a proxy’s rounds end with the phase, and keep their ids exact', async () => {
    const phase = 5n << 64n;
    rounds = [1n, 2n, 3n].map((id) => ({ id: phase | id, answer: E18, at: NOW_SECONDS + Number(id) }));
    expect(await roundsOf()).toEqual(['92233720368547758083', '92233720368547758082', '92233720368547758081']);
    expect(asked()).toBe(2);
  });

  test.each<[string, string | RpcFault]>([
    ['a round that the oracle refuses', noData()],
    ['one that is listed without code', new RpcFault(-32000, 'execution reverted')],
    ['nothing', '0x'],
    ['too little', number(2n)],
    ['a price of zero', encode({ id: 2n, answer: 0n, at: NOW_SECONDS })],
    ['a negative price', encode({ id: 2n, answer: -1n, at: NOW_SECONDS })],
    ['no time', encode({ id: 2n, answer: E18, at: 0 })],
    ['another round', encode({ id: 1n, answer: E18, at: NOW_SECONDS })],
  ])('%s ends the list', async (_what, answer) => {
    special.set(2n, answer);
    expect(await roundsOf()).toEqual(['3']);
    // Not for ever, because nothing of it was cached.
    special.clear();
    expect(await roundsOf()).toEqual(['3', '2', '1']);
  });

  test('a failing node does not end the list: the answer fails, uncharged', async () => {
    special.set(2n, new RpcFault(-32603, 'internal error'));
    await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('no answer is sold', () => {
  test.each<[string, () => void]>([
    [
      'there is no round',
      () => {
        views.latest = noData();
      },
    ],
    [
      'nothing answers',
      () => {
        views.latest = '0x';
      },
    ],
    [
      'the newest price is zero',
      () => {
        views.latest = encode({ id: 3n, answer: 0n, at: NOW_SECONDS });
      },
    ],
    [
      'the newest price is negative',
      () => {
        views.latest = encode({ id: 3n, answer: -E18, at: NOW_SECONDS });
      },
    ],
    [
      'the decimals are not listed',
      () => {
        views.oracleDecimals = '0x';
      },
    ],
    [
      'the decimals cannot be',
      () => {
        views.oracleDecimals = number(256n);
      },
    ],
    [
      'the decimals are refused',
      () => {
        views.oracleDecimals = noData();
      },
    ],
  ])('when %s: 502', async (_what, spoil) => {
    spoil();
    await expect(read()).rejects.toMatchObject({ status: 502, charged: false });
  });

  test('on a chain without USYC: 503', async () => {
    await expect(read(null)).rejects.toMatchObject({ status: 503, code: 'usyc_unavailable', charged: false });
    expect(given().node.bodies).toEqual([]);
  });
});

test('growth is annualised over 7 and 30 days by the rounds that were read', async () => {
  rounds = [30, 7, 0].map((days, at) => ({
    id: BigInt(at + 1),
    answer: E18 + BigInt(at) * 10n ** 15n,
    at: NOW_SECONDS - days * DAY,
  }));
  const [week, month] = [(1.002 / 1.001) ** (365 / 7), 1.002 ** (365 / 30)].map((times) =>
    ((times - 1) * 100).toFixed(4),
  );
  expect(await reply()).toMatchObject({
    growth: {
      annualised7dPercent: week,
      annualised30dPercent: month,
      annualised7d: week,
      annualised30d: month,
    },
  });
});
