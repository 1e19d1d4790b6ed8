import { encodeFunctionData, type Hex } from 'viem';
import { artifacts } from './contracts/artifacts.ts';
import { send } from './contracts.ts';
import type { EmbeddedNetwork } from './network.ts';

const DAY_SECONDS = 86_400;
/** Nine weeks. */
const ROUNDS = 45;
/** USYC's price at its start on Arc, in 10^-18 USD, and its gain on a business day: some 3.5 % a year. */
const FIRST_PRICE = 1_132_000_000_000_000_000n;
const GAIN_PPM = 137n;
const SUPPLY = 18_250_433_120_977n;
/** The account that mints the supply. Its key is unknown. */
const ISSUER: Hex = `0x${'15'.repeat(20)}`;

/** USYC and its price oracle (18 decimals) on the embedded network, with a price for each weekday of the last nine weeks. */
export async function deployUsyc(network: EmbeddedNetwork, nowMs = Date.now()): Promise<{ token: Hex; oracle: Hex }> {
  const token = await network.deploy('Token', ['US Yield Coin', 'USYC', 6]);
  const times = weekdaysUntil(Math.floor(nowMs / 1000) - 3600, ROUNDS);
  const answers = times.reduce<bigint[]>((prices) => {
    const before = prices.at(-1);
    return [...prices, before === undefined ? FIRST_PRICE : before + (before * GAIN_PPM) / 1_000_000n];
  }, []);
  const oracle = await network.deploy('Oracle', [18, 0, answers, times.map(BigInt)]);
  await network.rpc('anvil_impersonateAccount', [ISSUER]);
  await network.fundNative(ISSUER, 10n ** 18n);
  const mint = { abi: artifacts.Token.abi, functionName: 'mint', args: [ISSUER, SUPPLY] };
  await send(network.rpc, { from: ISSUER, to: token, data: encodeFunctionData(mint) });
  await network.mine();
  return { token, oracle };
}

/** One time for each weekday, oldest first; the last at or before `until`. */
function weekdaysUntil(until: number, count: number): number[] {
  const times: number[] = [];
  for (let at = until; times.length < count; at -= DAY_SECONDS) {
    const day = new Date(at * 1000).getUTCDay();
    if (day >= 1 && day <= 5) times.unshift(at);
  }
  return times;
}
