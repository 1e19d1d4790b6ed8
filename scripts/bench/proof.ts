import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { recoverPublicKey, signDigest } from '../../src/lib/secp256k1.ts';
import { checkProof } from '../../src/payment/lightning/proof.ts';
import { lightningProof } from '../lib/lightning/lightning-proofs.ts';
import { median } from './lib.ts';

const ROUNDS = 15;
/** Proofs per round. The next constant is smaller, because a recovery in JavaScript is slow. */
const PROOFS = 2000;
const PURE = 100;
const GOAL = 15;

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** Mean microseconds per call, over all items. */
function microseconds<T>(items: readonly T[], call: (item: T) => boolean): number {
  const started = performance.now();
  let right = 0;
  for (const item of items) right += call(item) ? 1 : 0;
  const tookMs = performance.now() - started;
  if (right !== items.length) throw new Error(`${items.length - right} of ${items.length} had a wrong result`);
  return (tookMs * 1000) / items.length;
}

/**
 * Measures proofs a second and core, each of another payment.
 * It computes the same figure for recovery in JavaScript: without the native recovery's time, with the other's. Each round measures all three.
 */
export async function benchProof(): Promise<void> {
  const createdAt = Math.floor(Date.now() / 1000);
  const bodies = Array.from({ length: PROOFS }, () => lightningProof({ createdAt }).body);
  const key = sha256('a seller');
  const signed = Array.from({ length: PROOFS }, (_, n) => {
    const digest = sha256(`digest ${n}`);
    return { digest, ...signDigest(digest, key) };
  });
  const few = signed.slice(0, PURE);
  const payee = Buffer.from(secp256k1.getPublicKey(key));

  const rounds = Array.from({ length: ROUNDS }, () => {
    const check = microseconds(
      bodies,
      ({ paymentPayload, paymentRequirements }) =>
        checkProof(paymentPayload, paymentRequirements, { now: createdAt }).ok,
    );
    const native = microseconds(signed, ({ digest, signature, recovery }) => {
      const found = recoverPublicKey(digest, signature, recovery);
      return found !== null && payee.equals(found);
    });
    const pure = microseconds(few, ({ digest, signature, recovery }) => {
      const recovered = secp256k1.Signature.fromBytes(signature, 'compact').addRecoveryBit(recovery);
      return payee.equals(recovered.recoverPublicKey(digest).toBytes(true));
    });
    return { check, native, pure, pureCheck: check - native + pure };
  });
  const of = (name: 'check' | 'native' | 'pure' | 'pureCheck') => median(rounds.map((round) => round[name]));
  const ratio = median(rounds.map(({ check, pureCheck }) => pureCheck / check));
  const perSecond = (micros: number) => Math.round(1e6 / micros).toLocaleString('en');
  console.log(`${ROUNDS} rounds of ${PROOFS} proofs, medians:`);
  console.log(`a proof's checks: ${of('check').toFixed(1)} µs, ${perSecond(of('check'))} proofs/s`);
  console.log(
    `with the key recovered in JavaScript: ${of('pureCheck').toFixed(1)} µs, ${perSecond(of('pureCheck'))} proofs/s`,
  );
  console.log(`recovery alone: native ${of('native').toFixed(1)} µs, JavaScript ${of('pure').toFixed(1)} µs`);
  console.log(`${ratio.toFixed(1)} times as many proofs (goal ${GOAL}: ${ratio < GOAL ? 'missed' : 'met'})`);
}
