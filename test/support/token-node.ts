import { randomBytes } from 'node:crypto';
import { bytesToHex } from '../../src/lib/hex.ts';
import type { Authorization } from '../../src/payment/usdc/authorization.ts';
import type { Receipt } from '../../src/payment/usdc/evidence.ts';
import type { Job } from '../../src/payment/usdc/job.ts';
import { newJob } from '../../src/payment/usdc/job.ts';
import type { Intent, Outcome } from '../../src/payment/usdc/settler.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, TRANSFER } from '../../src/payment/usdc/token.ts';
import { USDC } from './payments.ts';
import { RpcFault, startRpcServer } from './rpc-server.ts';

const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
const amount = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`;

/** An authorization of a stranger's, good for a long time. */
export function randomAuthorization(): Authorization {
  const terms = { value: 1000n, validAfter: 0n, validBefore: 2n ** 60n, signature: randomBytes(65) };
  return { ...terms, from: randomBytes(20), to: randomBytes(20), nonce: randomBytes(32) };
}

/** A job as the relayer admits it, with the outcomes that it was given. */
export function randomJob(changes: Partial<Intent> = {}): Job & { outcomes: Outcome[] } {
  const outcomes: Outcome[] = [];
  const intent = {
    ...{ id: bytesToHex(randomBytes(8)), authorization: randomAuthorization(), fromBlock: 1, broadcast: false },
    ...changes,
  };
  return Object.assign(
    newJob(intent, 0, (outcome) => outcomes.push(outcome)),
    { outcomes },
  );
}

/** A receipt of the token's logs for these authorizations, each used and paid. */
export function paidReceipt(authorizations: readonly Authorization[], changes: Partial<Receipt> = {}): Receipt {
  const logs = authorizations.flatMap(({ from, to, nonce, value }) => [
    { address: USDC, topics: [AUTHORIZATION_USED, topic(from), topic(nonce)], data: '0x' },
    { address: USDC, topics: [TRANSFER, topic(from), topic(to)], data: amount(value) },
  ]);
  return {
    ...{ transactionHash: bytesToHex(randomBytes(32)), blockNumber: '0x64', status: '0x1', gasUsed: '0x186a0' },
    ...{ effectiveGasPrice: '0x4a817c800', logs },
    ...changes,
  };
}

/** A node that knows the token's authorizations and nothing else; what became of each is the test's to say. */
export async function startTokenNode() {
  const ends = new Map<string, Receipt>();
  const end = (authorization: Authorization, receipt: Receipt): void =>
    void ends.set(topic(authorization.nonce), receipt);
  const server = await startRpcServer({
    eth_blockNumber: () => '0x64',
    eth_getBlockByNumber: () => ({
      ...{ number: '0x64', timestamp: `0x${Math.floor(Date.now() / 1000).toString(16)}` },
      ...{ baseFeePerGas: '0x4a817c800', gasLimit: '0x1c9c380' },
    }),
    eth_getCode: () => '0x',
    eth_call: ([call]) => {
      const { to, data } = call as { to?: string; data: string };
      if (!to) throw new RpcFault(-32000, 'no call without a recipient');
      if (data.startsWith('0x70a08231')) return amount(10n ** 9n);
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
  return {
    server,
    /** Used and paid, in one transaction of somebody's. */
    pay: (...authorizations: Authorization[]): Receipt => {
      const receipt = paidReceipt(authorizations);
      for (const authorization of authorizations) end(authorization, receipt);
      return receipt;
    },
    cancel: (authorization: Authorization): void => {
      const topics = [AUTHORIZATION_CANCELED, topic(authorization.from), topic(authorization.nonce)];
      end(authorization, paidReceipt([], { logs: [{ address: USDC, topics, data: '0x' }] }));
    },
    /** Used, but no log says how. */
    hide: (authorization: Authorization): void => end(authorization, paidReceipt([])),
    end,
  };
}
