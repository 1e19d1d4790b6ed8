/** Makes the EIP-3009 authorization that a wallet signs. Pure, so that it can be tested without a browser. */

/** @typedef {{ from: string, to: string, value: string, validAfter: string, validBefore: string, nonce: string }} Authorization */
/** @typedef {import('./payers.js').Requirement} Requirement */

/** Seconds a payment is valid. A settlement takes far less; a payment that bought nothing is then soon worthless. */
const VALID_SECONDS = 600;
/** The contract requires `validAfter` before its own time, which may be behind this clock. */
const BEFORE_SECONDS = 600;

const DOMAIN = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
];
const TRANSFER = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
];

// The authorization of exactly the required amount, and what the wallet signs (EIP-712). `now` is in Unix seconds.
/** @param {Requirement} requirement @param {string} from @param {number} [now] */
export function typedDataOf(
  { network, amount, asset, payTo, maxTimeoutSeconds, extra },
  from,
  now = Math.floor(Date.now() / 1000),
) {
  const nonce = [...crypto.getRandomValues(new Uint8Array(32))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
  const authorization = {
    from,
    to: payTo,
    value: amount,
    nonce: `0x${nonce}`,
    validAfter: String(now - BEFORE_SECONDS),
    validBefore: String(now + Math.min(VALID_SECONDS, maxTimeoutSeconds)),
  };
  const domain = {
    name: extra?.name,
    version: extra?.version,
    chainId: Number(network.split(':')[1]),
    verifyingContract: asset,
  };
  const types = { EIP712Domain: DOMAIN, TransferWithAuthorization: TRANSFER };
  return {
    authorization,
    typedData: { types, primaryType: 'TransferWithAuthorization', domain, message: authorization },
  };
}
