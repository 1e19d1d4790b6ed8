import { chainBusy } from '../../chain/rpc/allowed.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { ranked } from '../../chain/rpc/ranked.ts';
import { parseAnswer, quantity, RpcError, toQuantity } from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import type { Asker, Look } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import type { Intent } from '../settler.ts';
import { isRevert } from './is-revert.ts';
import { createAdmissionReader, createPayerReader, type PayerReading, WITHOUT_FAILURE } from './payer-reader.ts';
import { settleCall } from './settle-call.ts';
import { balanceOfCalldata, isValidSignatureCalldata, SETTLE_GAS } from './token.ts';

const GAS = toQuantity(SETTLE_GAS);
/** ERC-1271's value for a valid signature: the selector of isValidSignature, padded to a word. */
const ERC1271_MAGIC = '0x1626ba7e';
/**
 * The head and the state may come from providers of different heights. So the search for a payment starts ten minutes earlier (half-second blocks).
 * That costs nothing, because one log query spans 10,000 blocks.
 */
const HEAD_SLACK_BLOCKS = 1200;
/** Nodes' error message for a sender that cannot pay for the gas. */
const CANNOT_PAY = /insufficient (funds|balance)/i;
/** How long a gas price is used for simulations, in milliseconds. It moves by at most 2 % per block on Arc and need not be exact. */
const GAS_PRICE_MS = 10_000;

/**
 * The checks of a payment that need the chain: one read that concurrent payers share, and one more call for accounts with code. `sender` returns the
 * address that will send the settlement, as far as it is known.
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

  async function gasPrice(signal: AbortSignal): Promise<string> {
    if (price && price.untilMs > clock.nowMs()) return price.text;
    const wei = parseAnswer(quantity, await chain.request('eth_gasPrice', [], { signal }), 'gas price');
    price = { text: toQuantity(wei), untilMs: clock.nowMs() + GAS_PRICE_MS };
    return price.text;
  }

  /** Asks the payer's own contract whether it signed (ERC-1271). An account without code gives no answer, which counts as no. */
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
   * Simulates the settlement. Throws PaymentRefused when it would not move the money. It uses the real sender and a real gas price, because otherwise a
   * contract could detect the simulation.
   */
  async function simulate(payment: Pick<Intent, 'authorization' | 'call'>, signal: AbortSignal): Promise<void> {
    const call = { from: sender(), ...simulatedCall(usdc, payment) };
    const tryOut = (given: object) => chain.request('eth_call', [given, 'latest'], { signal });
    const gasPriceNow = await gasPrice(signal);
    try {
      // Where we do not know the settlement's sender, our own address may hold no gas. Then the price is left out.
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
    /** Reads the payer of a payment that we owe a settlement. It does not wait for other clients' turns. */
    read: async (authorization: Authorization, signal: AbortSignal): Promise<Look> =>
      withSlack(chain, await readPayer(authorization, signal)),
    /** Reads the payer of an unverified payment, in its client's turn (`precedenceOf`) and within the providers' limits. */
    admit: async (authorization: Authorization, asker: Asker, isSigned: boolean): Promise<Look> =>
      withSlack(chain, await admitPayer(authorization, asker.signal, asker.client, precedenceOf(asker, isSigned))),
    /** The balance of an account at the end of a block, in USDC base units. */
    balanceAt: async (account: Uint8Array, block: number, signal: AbortSignal): Promise<bigint> => {
      const call = { to: usdc, data: balanceOfCalldata(account) };
      const answer = await chain.request('eth_call', [call, toQuantity(block)], { signal, rank: 'settle' });
      return parseAnswer(quantity, answer, 'balance');
    },
    contractSigned,
    simulate,
  };
}

/**
 * The block at which a search for the payment would begin. Where two providers agree on a head, it is theirs: a reading
 * is one provider's word, and a
 * search from its block could find nothing, or take thousands of requests.
 */
function withSlack({ agreed }: ChainClient, reading: PayerReading): Look {
  const head = agreed.witnesses < 2 ? reading.block : agreed.lastHead();
  if (head === null) throw chainBusy();
  return { ...reading, block: Math.max(0, head - HEAD_SLACK_BLOCKS) };
}

function simulatedCall(usdc: `0x${string}`, payment: Pick<Intent, 'authorization' | 'call'>) {
  const { to, data, gas } = settleCall(usdc, payment);
  return { to, data, gas: toQuantity(gas) };
}

export type ChainCheck = ReturnType<typeof createChainCheck>;

/** Clients without a failed call in this minute come first. Among equal clients, payments whose signature is already checked come first. */
function precedenceOf({ hasFailed }: Asker, isSigned: boolean): number {
  return (hasFailed ? 0 : WITHOUT_FAILURE) + (isSigned ? 1 : 0);
}

/** A node's own failure counts as an upstream failure, not as the buyer's. */
function unreadable(error: unknown): unknown {
  return error instanceof RpcError ? new UpstreamFailed('chain', 'a node refused the call', error) : error;
}
