import { type ChainClient, RpcError } from '../../chain/rpc/client.ts';
import { ranked } from '../../chain/rpc/ranked.ts';
import { parseAnswer, quantity, toQuantity } from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import type { Asker, Look } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import { isRevert } from './is-revert.ts';
import { createAdmissionReader, createPayerReader, type PayerReading, WITHOUT_FAILURE } from './payer-reader.ts';
import { balanceOfCalldata, isValidSignatureCalldata, SETTLE_GAS, transferCalldata } from './token.ts';

const GAS = toQuantity(SETTLE_GAS);
/** ERC-1271's "yes": the selector of isValidSignature, padded to a word. */
const ERC1271_MAGIC = '0x1626ba7e';
/**
 * The head and the state may come from providers of different height: the search for a payment starts ten minutes earlier (half-second
 * blocks), which costs nothing, because one log query spans 10,000 blocks.
 */
const HEAD_SLACK_BLOCKS = 1200;
/** What they call a sender who could not pay for the gas. */
const CANNOT_PAY = /insufficient (funds|balance)/i;
/** A price that contracts see in a trial: it moves by 2 % a block at the most on Arc, and need not be exact. */
const GAS_PRICE_MS = 10_000;

/**
 * The chain's side of verifying: one read that payers of the same time share, one more call for accounts with code. `sender` tells who will send
 * the settlement, as far as that is known.
 */
export function createChainCheck(
  chain: ChainClient,
  usdc: `0x${string}`,
  sender: () => `0x${string}`,
  clock: Clock = systemClock,
) {
  const readPayer = createPayerReader(ranked(chain, 'settle'), usdc, clock);
  const admitPayer = createAdmissionReader(chain, usdc, clock);
  let price: { readonly text: string; readonly untilMs: number } | null = null;

  const withSlack = (reading: PayerReading): Look => ({
    ...reading,
    block: Math.max(0, reading.block - HEAD_SLACK_BLOCKS),
  });

  async function gasPrice(signal: AbortSignal): Promise<string> {
    if (price && price.untilMs > clock.nowMs()) return price.text;
    const wei = parseAnswer(quantity, await chain.request('eth_gasPrice', [], { signal }), 'gas price');
    price = { text: toQuantity(wei), untilMs: clock.nowMs() + GAS_PRICE_MS };
    return price.text;
  }

  /** Asks the payer's own contract whether it signed (ERC-1271); an account without code answers nothing, which is no. */
  async function contractSigned(
    authorization: Authorization,
    digest: Uint8Array,
    signal: AbortSignal,
  ): Promise<boolean> {
    const data = isValidSignatureCalldata(digest, authorization.signature);
    const call = { to: bytesToHex(authorization.from), data, gas: GAS };
    try {
      const answer = await chain.request<string>('eth_call', [call, 'latest'], { signal, rank: 'admit' });
      return answer.length === 66 && answer.startsWith(ERC1271_MAGIC);
    } catch (error) {
      if (isRevert(error)) return false;
      throw unreadable(error);
    }
  }

  /**
   * Runs the transfer without sending it; refuses when it would not move the money. With the real sender and a real gas price, because a
   * contract that sees neither knows that it is tried out.
   */
  async function simulate(authorization: Authorization, signal: AbortSignal): Promise<void> {
    const call = { from: sender(), to: usdc, data: transferCalldata(authorization), gas: GAS };
    const tryOut = (given: object) => chain.request('eth_call', [given, 'latest'], { signal });
    const gasPriceNow = await gasPrice(signal);
    try {
      // Where the settlement's sender is not known to us, ours may hold no gas.
      await tryOut({ ...call, gasPrice: gasPriceNow }).catch((error) => {
        if (error instanceof RpcError && CANNOT_PAY.test(error.message)) return tryOut(call);
        throw error;
      });
    } catch (error) {
      if (isRevert(error)) throw new PaymentRefused('invalid_exact_evm_transaction_simulation_failed');
      throw unreadable(error);
    }
  }

  return {
    /** For what is owed: waits for no other client's turn. */
    read: async (authorization: Authorization, signal: AbortSignal): Promise<Look> =>
      withSlack(await readPayer(authorization, signal)),
    /** For a payment of which nothing is known yet: in its client's turn, within what the providers bear (`precedenceOf`). */
    admit: async (authorization: Authorization, asker: Asker, isSigned: boolean): Promise<Look> =>
      withSlack(await admitPayer(authorization, asker.signal, asker.client, precedenceOf(asker, isSigned))),
    /** What an account held at the end of a block, in USDC base units. */
    balanceAt: async (account: Uint8Array, block: number, signal: AbortSignal): Promise<bigint> => {
      const call = { to: usdc, data: balanceOfCalldata(account) };
      const answer = await chain.request('eth_call', [call, toQuantity(block)], { signal, rank: 'settle' });
      return parseAnswer(quantity, answer, 'balance');
    },
    contractSigned,
    simulate,
  };
}

export type ChainCheck = ReturnType<typeof createChainCheck>;

/** Clients without a failed call in this minute come first, and among equals those whose payer is known to have signed. */
function precedenceOf({ hasFailed }: Asker, isSigned: boolean): number {
  return (hasFailed ? 0 : WITHOUT_FAILURE) + (isSigned ? 1 : 0);
}

/** A node's own trouble is an upstream failure, never the buyer's. */
function unreadable(error: unknown): unknown {
  return error instanceof RpcError ? new UpstreamFailed('chain', 'a node refused the call', error) : error;
}
