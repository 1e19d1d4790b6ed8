import { randomBytes } from 'node:crypto';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { type Job, newJob } from '../../../src/payment/relayer/transactions.ts';
import type { Authorization, Intent, Operation } from '../../../src/payment/settler.ts';
import type { TransactionReceipt } from '../../../src/payment/usdc/evidence.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, TRANSFER } from '../../../src/payment/usdc/token.ts';
import { RpcFault, startRpcServer } from '../chain/rpc-server.ts';
import { USDC } from './payments.ts';

const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
/** Selectors of the token's own `balanceOf(address)` and `transfer(address,uint256)`. */
const [BALANCE_OF, TRANSFER_SELECTOR] = ['0x70a08231', '0xa9059cbb'];
const amount = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`;

/** An authorization of a random payer, valid for a long time. */
export function randomAuthorization(): Authorization {
  const terms = { value: 1000n, validAfter: 0n, validBefore: 2n ** 60n, signature: randomBytes(65) };
  return { ...terms, from: randomBytes(20), to: randomBytes(20), nonce: randomBytes(32) };
}

/** An intent of a random payer without code that was never sent to the chain. */
export function randomIntent(changes: Partial<Intent> = {}): Intent {
  return {
    id: bytesToHex(randomBytes(8)),
    authorization: randomAuthorization(),
    call: null,
    fromBlock: 1,
    broadcast: false,
    hasCode: false,
    ...changes,
  };
}

/** An operation that no node has seen. A transaction that did not revert shows its end, and the chain shows none elsewhere. */
export function randomOperation(changes: Partial<Operation> = {}): Operation {
  return {
    id: bytesToHex(randomBytes(8)),
    to: randomBytes(20),
    data: randomBytes(36),
    gas: 500_000n,
    broadcast: false,
    readReceipt: ({ status, transactionHash, blockNumber }) =>
      status === '0x1'
        ? { kind: 'done', transaction: hexToBytes(transactionHash), block: Number(blockNumber), amount: 7n }
        : null,
    lookUp: async () => null,
    note: async () => true,
    ...changes,
  };
}

/** A new job of the relayer. */
export function randomJob(changes: Partial<Intent> = {}): Job {
  return newJob(randomIntent(changes), 0);
}

/** A receipt with the token's logs of these authorizations, each used and paid. */
export function paidReceipt(
  authorizations: readonly Authorization[],
  changes: Partial<TransactionReceipt> = {},
): TransactionReceipt {
  const logs = authorizations.flatMap(({ from, to, nonce, value }) => [
    { address: USDC, topics: [AUTHORIZATION_USED, topic(from), topic(nonce)], data: '0x' },
    { address: USDC, topics: [TRANSFER, topic(from), topic(to)], data: amount(value) },
  ]);
  return {
    transactionHash: bytesToHex(randomBytes(32)),
    blockNumber: '0x64',
    status: '0x1',
    gasUsed: '0x186a0',
    effectiveGasPrice: '0x4a817c800',
    logs,
    ...changes,
  };
}

/** A node that knows only the token's authorizations. The test sets the end of each. */
export async function startTokenNode() {
  const ends = new Map<string, TransactionReceipt>();
  const end = (authorization: Authorization, receipt: TransactionReceipt): void =>
    void ends.set(topic(authorization.nonce), receipt);
  const server = await startRpcServer({
    eth_blockNumber: () => '0x64',
    eth_getBlockByNumber: () => ({
      number: '0x64',
      timestamp: `0x${Math.floor(Date.now() / 1000).toString(16)}`,
      baseFeePerGas: '0x4a817c800',
      gasLimit: '0x1c9c380',
    }),
    eth_getCode: () => '0x',
    eth_call: ([call, block]) => {
      const { to, data } = call as { to?: string; data: string };
      if (!to) throw new RpcFault(-32000, 'no call without a recipient');
      if (data.startsWith(BALANCE_OF)) return amount(self.balanceAt(String(block)));
      if (data.startsWith(TRANSFER_SELECTOR)) {
        if (self.shut) throw new RpcFault(3, 'execution reverted: Pausable: paused');
        return amount(1n);
      }
      return amount(ends.has(`0x${data.slice(-64)}`) ? 1n : 0n);
    },
    eth_getLogs: ([filter]) => {
      const [, , nonce] = (filter as { topics: string[] }).topics;
      const receipt = ends.get(String(nonce));
      const log = receipt?.logs.find(({ topics }) => topics[2] === nonce);
      return log ? [{ ...log, transactionHash: receipt?.transactionHash }] : [];
    },
    eth_getTransactionReceipt: ([hash]) =>
      [...ends.values()].find(({ transactionHash }) => transactionHash === hash) ?? null,
  });
  const self = {
    server,
    /** The balance of every account at a block. */
    balanceAt: (_block: string): bigint => 10n ** 9n,
    /** Whether the token refuses every transfer, as while it is paused. */
    shut: false,
    /** How often the node was asked for a balance at a numbered block, or for a transfer of zero. */
    calls: (what: 'balance at' | 'try the token'): number =>
      server.bodies.flat().filter((body) => {
        const { method, params } = body as { method: string; params: [{ data?: string }, string] };
        if (method !== 'eth_call') return false;
        if (what === 'try the token') return params[0].data?.startsWith(TRANSFER_SELECTOR) ?? false;
        return params[1] !== 'latest' && (params[0].data?.startsWith(BALANCE_OF) ?? false);
      }).length,
    /** A third party uses and pays these, in one transaction. */
    pay: (...authorizations: Authorization[]): TransactionReceipt => {
      const receipt = paidReceipt(authorizations);
      for (const authorization of authorizations) end(authorization, receipt);
      return receipt;
    },
    cancel: (authorization: Authorization): void => {
      const topics = [AUTHORIZATION_CANCELED, topic(authorization.from), topic(authorization.nonce)];
      end(authorization, paidReceipt([], { logs: [{ address: USDC, topics, data: '0x' }] }));
    },
    /** Used, but no log shows how. */
    hide: (authorization: Authorization): void => end(authorization, paidReceipt([])),
    end,
  };
  return self;
}

export type TokenNode = Awaited<ReturnType<typeof startTokenNode>>;
