import { encodeAbiParameters, encodeFunctionData, parseAbi } from 'viem';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import type { Deposit } from './payload.ts';
import { DEPOSIT_COLLECTOR } from './scheme.ts';

/** The contract's struct, in its order. */
export const CONFIG_STRUCT =
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }';

const abi = parseAbi([
  CONFIG_STRUCT,
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
]);
const COLLECTOR_DATA = [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }] as const;

/** A channel's config as the contract's struct. */
export function abiConfig(config: ChannelConfig) {
  return {
    payer: bytesToHex(config.payer),
    payerAuthorizer: bytesToHex(config.payerAuthorizer),
    receiver: bytesToHex(config.receiver),
    receiverAuthorizer: bytesToHex(config.receiverAuthorizer),
    token: bytesToHex(config.token),
    withdrawDelay: config.withdrawDelay,
    salt: bytesToHex(config.salt),
  };
}

/** The settlement contract's `deposit`, which anybody may send. */
export function depositCalldata(config: ChannelConfig, deposit: Deposit): Uint8Array {
  const { amount, validAfter, validBefore, salt, signature } = deposit;
  const data = encodeAbiParameters(COLLECTOR_DATA, [validAfter, validBefore, salt, bytesToHex(signature)]);
  const args = [abiConfig(config), amount, DEPOSIT_COLLECTOR, data] as const;
  return hexToBytes(encodeFunctionData({ abi, functionName: 'deposit', args }));
}
