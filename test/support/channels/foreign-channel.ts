import { randomBytes } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { headerOf, newKey, type Requirement } from '../usdc/payments.ts';
import { channelBuyer } from './channel-buyer.ts';
import type { createChannelStage } from './channel-contract.ts';
import { configJson, scheme } from './channel-payment.ts';

/**
 * A contract that answers every call with a transfer of the asked amount of the asked token, from its own balance, to its caller. The settlement contract
 * takes a deposit from it.
 */
const OWN_MONEY_COLLECTOR =
  '0x6025600c60003960256000f363a9059cbb60e01b60005233600452604435602452602060006044600060006024355af100';

/**
 * A channel that a third party has funded on the chain in the name of another payer, with a voucher key of its own. The named payer has signed nothing.
 * `units`: what the channel holds, in base units.
 */
export async function foreignChannel(
  network: EmbeddedNetwork,
  stage: ReturnType<typeof createChannelStage>,
  { payer, entry, units }: { payer: `0x${string}`; entry: Requirement; units: bigint },
) {
  const { privateKey } = newKey();
  const config = { ...channelBuyer(privateKey, entry, randomBytes(32)).config, payer: hexToBytes(payer) };
  const id = scheme.channelId(config);
  const wallet = await stage.walletOf(privateKeyToAccount(createAccount().privateKey));
  const hash = await wallet.deployContract({ abi: [], bytecode: OWN_MONEY_COLLECTOR });
  const { contractAddress } = await stage.chain.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error('the collector was not deployed');
  await network.fundUsdc(contractAddress, units);
  await stage.call('deposit', [configJson(config), units, contractAddress, '0x'], wallet);
  const header = (type: 'voucher' | 'refund', max: bigint): string => {
    const signature = bytesToHex(signRecoverable(scheme.voucherDigest(id, max), privateKey));
    const voucher = { channelId: bytesToHex(id), maxClaimableAmount: String(max), signature };
    return headerOf({ x402Version: 2, accepted: entry, payload: { type, channelConfig: configJson(config), voucher } });
  };
  return {
    id,
    voucher: (max: bigint) => header('voucher', max),
    refund: (charged: bigint) => header('refund', charged),
  };
}
