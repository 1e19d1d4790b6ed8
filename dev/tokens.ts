import { decodeFunctionResult, encodeFunctionData, type Hex, type Log, parseEventLogs } from 'viem';
import { artifacts, send } from './contracts.ts';
import type { EmbeddedNetwork } from './network.ts';

const { abi } = artifacts.Usdc;

/** The balance of the USDC contract, in base units, at the end of a block. */
export async function balanceOf(
  { rpc, usdc }: Pick<EmbeddedNetwork, 'rpc' | 'usdc'>,
  address: Hex,
  block: Hex | 'latest' = 'latest',
): Promise<bigint> {
  const data = encodeFunctionData({ abi, functionName: 'balanceOf', args: [address] });
  const answer = await rpc<Hex>('eth_call', [{ to: usdc, data }, block]);
  return BigInt(decodeFunctionResult({ abi, functionName: 'balanceOf', data: answer }) as bigint);
}

/** A transfer from the token's own log; addresses in lower case. */
interface UsdcTransfer {
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
}

/** The token's own transfers in a successful transaction. The system log of each has another emitter and does not count. */
export async function transfersIn(
  { rpc, usdc }: Pick<EmbeddedNetwork, 'rpc' | 'usdc'>,
  hash: Hex,
): Promise<UsdcTransfer[]> {
  const receipt = await rpc<{ status: Hex; logs: Log[] } | null>('eth_getTransactionReceipt', [hash]);
  if (receipt === null) throw new Error(`the chain holds no transaction ${hash}`);
  if (receipt.status !== '0x1') throw new Error(`the transaction ${hash} reverted`);
  const own = receipt.logs.filter((log) => log.address.toLowerCase() === usdc);
  return parseEventLogs({ abi, logs: own, eventName: 'Transfer' }).map((log) => {
    const { from, to, value } = (log as unknown as { args: { from: Hex; to: Hex; value: bigint } }).args;
    return { from: from.toLowerCase(), to: to.toLowerCase(), value };
  });
}

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
