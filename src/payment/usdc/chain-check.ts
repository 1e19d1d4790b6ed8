import { type ChainClient, RpcError } from '../../chain/client.ts';
import { toQuantity } from '../../chain/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { PaymentRefused } from '../refusal.ts';
import type { Authorization } from './authorization.ts';
import { createPayerReader } from './payer-reader.ts';
import { isValidSignatureCalldata, SETTLE_GAS, transferCalldata } from './token.ts';

const GAS = toQuantity(SETTLE_GAS);
/** ERC-1271's "yes": the selector of isValidSignature, padded to a word. */
const ERC1271_MAGIC = '0x1626ba7e';
/**
 * The head and the state may come from providers of different height: the search for a payment starts ten minutes earlier (half-second
 * blocks), which costs nothing, because one log query spans 10,000 blocks.
 */
const HEAD_SLACK_BLOCKS = 1200;
/** What nodes call a call that the contract itself ended; any other error says nothing about the signature. */
const REVERTED_CALL = /revert|out of gas|invalid opcode|stack|bad jump/i;

/** What the chain said of a payer in one round trip, before the handler runs. */
export interface ChainReading {
  readonly used: boolean;
  readonly balance: bigint;
  /** The payer has code (a smart wallet, or a key delegated by EIP-7702): the chain alone can judge its signature. */
  readonly hasCode: boolean;
  /** The authorization was unused up to here, if it is unused. */
  readonly block: number;
}

/** The chain's side of verifying: one read that payers of the same time share, one more call for accounts with code. */
export function createChainCheck(chain: ChainClient, usdc: `0x${string}`, relayer: `0x${string}`) {
  const readPayer = createPayerReader(chain, usdc);

  async function read(authorization: Authorization, signal: AbortSignal): Promise<ChainReading> {
    const reading = await readPayer(authorization, signal);
    return { ...reading, block: Math.max(0, reading.block - HEAD_SLACK_BLOCKS) };
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
      const answer = await chain.request<string>('eth_call', [call, 'latest'], { signal });
      return answer.length === 66 && answer.startsWith(ERC1271_MAGIC);
    } catch (error) {
      if (isRevert(error)) return false;
      throw unreadable(error);
    }
  }

  /** Runs the transfer without sending it; refuses when it would not move the money. */
  async function simulate(authorization: Authorization, signal: AbortSignal): Promise<void> {
    const call = { from: relayer, to: usdc, data: transferCalldata(authorization), gas: GAS };
    try {
      await chain.request('eth_call', [call, 'latest'], { signal });
    } catch (error) {
      if (isRevert(error)) throw new PaymentRefused('invalid_exact_evm_transaction_simulation_failed');
      throw unreadable(error);
    }
  }

  return { read, contractSigned, simulate };
}

export type ChainCheck = ReturnType<typeof createChainCheck>;

function isRevert(error: unknown): boolean {
  return error instanceof RpcError && (error.code === 3 || REVERTED_CALL.test(error.message));
}

/** A node's own trouble is an upstream failure, never the buyer's. */
function unreadable(error: unknown): unknown {
  return error instanceof RpcError ? new UpstreamFailed('chain', 'a node refused the call', error) : error;
}
