import { randomBytes } from 'node:crypto';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { depositCalldata } from '../../../src/payment/channels/calldata.ts';
import { DEPOSIT_COLLECTOR, depositNonce, SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import type { Intent } from '../../../src/payment/settler.ts';
import {
  addressWord,
  domainSeparator,
  typedDigest,
  typeHash,
  USDC_DOMAIN,
  word,
} from '../../../src/payment/usdc/token.ts';
import type { ChannelConfig } from '../../../src/store/ports/channel-state.ts';
import { newKey } from '../usdc/payments.ts';
import { randomIntent } from '../usdc/token-node.ts';
import { channelOf, scheme } from './channel-payment.ts';

const RECEIVE = typeHash(
  'ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);
/** A time far in the future, in Unix seconds: the tests move the chain's clock. */
const VALID_BEFORE = 2n ** 40n;

/** A payer's channel on an embedded network, and what its payer signs. */
export interface ChainChannel {
  readonly id: Uint8Array;
  readonly config: ChannelConfig;
  readonly privateKey: Uint8Array;
  signVoucher(max: bigint): Uint8Array;
  /** The intent of a deposit, as a row of the ledger gives it. */
  deposit(amount: bigint): Intent;
}

/** Makes channels to one receiver, with one authorizer, on an embedded network. */
export function createChainChannels(network: EmbeddedNetwork, { withdrawDelay = 86_400 } = {}) {
  const authorizer = newKey();
  const receiver = hexToBytes(createAccount().address);
  const token = hexToBytes(network.usdc);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, network.chainId, token);
  const receiverAuthorizer = hexToBytes(authorizer.address);

  return {
    authorizer,
    receiver,
    token,
    /** A channel of a new payer who holds this much USDC, in base units. */
    async open(funds: bigint): Promise<ChainChannel> {
      const { privateKey, address } = newKey();
      await network.fundUsdc(address, funds);
      const config = channelOf(privateKey, { receiver, receiverAuthorizer, token, withdrawDelay });
      const id = scheme.channelId(config);

      function deposit(value: bigint): Intent {
        const salt = BigInt(`0x${randomBytes(32).toString('hex')}`);
        const nonce = depositNonce(id, salt);
        const to = hexToBytes(DEPOSIT_COLLECTOR);
        const words = [addressWord(config.payer), addressWord(to), word(value), word(0n), word(VALID_BEFORE), nonce];
        const signature = signRecoverable(typedDigest(separator, [RECEIVE, ...words]), privateKey);
        const terms = { validAfter: 0n, validBefore: VALID_BEFORE, signature };
        const data = depositCalldata(config, value, DEPOSIT_COLLECTOR, { ...terms, salt });
        const authorization = { from: config.payer, to, value, nonce, ...terms };
        return randomIntent({ authorization, call: { to: hexToBytes(SETTLEMENT), data } });
      }

      const signVoucher = (max: bigint): Uint8Array => signRecoverable(scheme.voucherDigest(id, max), privateKey);
      return { id, config, privateKey, signVoucher, deposit };
    },
  };
}
