import { RpcError } from '../../../src/chain/rpc/wire.ts';
import type { Log } from '../../../src/lib/common.ts';
import { createChannelReader } from '../../../src/payment/channels/channel.ts';
import { createWithdrawalAlarms } from '../../../src/payment/channels/claim-health.ts';
import { createClaims } from '../../../src/payment/channels/claims.ts';
import { createWithdrawalWatch } from '../../../src/payment/channels/withdrawals.ts';
import type { Operation, OperationOutcome } from '../../../src/payment/settler.ts';
import { openClient } from '../chain/client.ts';
import { RpcFault, startRpcServer } from '../chain/rpc-server.ts';
import { NETWORK } from '../ledger/channel-rows.ts';
import { newKey } from '../usdc/payments.ts';
import { openChannelLedger } from './channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from './channel-payment.ts';
import { type ContractStandIn, createContractStandIn } from './contract-stand-in.ts';

const METHODS = ['eth_blockNumber', 'eth_getBlockByNumber', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt'];
const DELAY_SECONDS = 1200;

/**
 * Channels over a real ledger and real HTTP providers. The honest ones answer from the bed's contract, the liar from
 * one of its own: both have the same blocks. `places`: who stands where.
 */
export async function openLyingWorld(places: readonly ('honest' | 'liar')[]) {
  const bed = await openChannelLedger();
  const lie = createContractStandIn();
  const servers = await Promise.all(
    places.map((who) => startRpcServer(answersOf(who === 'liar' ? lie : bed.contract))),
  );
  const errors: string[] = [];
  const log: Log = { info: () => {}, warn: () => {}, error: (_, message) => void errors.push(message) };
  const rpcUrls = servers.map(({ url }) => url);
  const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, clock: bed.clock, log });
  const reader = createChannelReader(chain);
  const alarms = createWithdrawalAlarms(bed.clock);
  const operations: Operation[] = [];
  const relayer = {
    operate: (operation: Operation): Promise<OperationOutcome> => {
      operations.push(operation);
      return self.end ? Promise.resolve(self.end) : bed.contract.operate(operation);
    },
  };
  const { store, clock } = bed;
  const liar = servers[places.indexOf('liar')];

  const self = {
    /** How the relayer ends each operation, where it mines none. */
    end: null as OperationOutcome | null,
    bed: { ...bed, reader },
    lie,
    chain,
    reader,
    alarms,
    operations,
    servers,
    errors,
    isLiarApart: () => liar !== undefined && chain.trust.isApart(new URL(liar.url).host),
    watch: createWithdrawalWatch({
      store,
      reader,
      chain,
      alarms,
      network: NETWORK,
      withdrawDelaySeconds: DELAY_SECONDS,
      clock,
      log: bed.log,
    }),
    claims: createClaims({
      store,
      relayer,
      reader,
      chain,
      alarms,
      scheme,
      clock,
      log: bed.log,
      network: NETWORK,
      bounds: { threshold: 100_000n, ageMs: 3_600_000 },
      sender: `0x${'77'.repeat(20)}`,
      receiver: CHANNEL_TERMS.receiver,
      token: CHANNEL_TERMS.token,
      authorizerKey: newKey().privateKey,
    }),
    async close(): Promise<void> {
      await chain.close();
      for (const server of servers) await server.stop();
      await bed.close();
    },
  };
  return self;
}

function answersOf(contract: ContractStandIn) {
  const answer = (method: string) => (params: unknown[]) => {
    try {
      return contract.answer(method, params);
    } catch (error) {
      throw error instanceof RpcError ? new RpcFault(error.code, error.message, error.data) : error;
    }
  };
  return Object.fromEntries(METHODS.map((method) => [method, answer(method)]));
}
