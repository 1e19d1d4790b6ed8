import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Binding } from '../../../../../src/payment/lightning/binding.ts';
import { openReply, sealReply } from '../../../../../src/payment/lightning/kept-replies.ts';

const bindingOf = (canonical: string): Binding => ({
  canonical,
  hash: createHash('sha256').update(canonical).digest(),
});
const asked = bindingOf('{"url":"https://api.example.com/a"}');
const paymentHash = randomBytes(32);
const body = Buffer.from('{"answer":"42 and then some more of it"}');

describe('a sealed reply', () => {
  it('opens for the request and the invoice that it was made for', () => {
    expect(openReply(sealReply(body, asked, paymentHash), asked, paymentHash)).toEqual(body);
    expect(openReply(sealReply(Buffer.alloc(0), asked, paymentHash), asked, paymentHash)).toEqual(Buffer.alloc(0));
  });

  it('opens where an earlier version has sealed it: buyers come back after an upgrade', () => {
    const sealed = '5745fa8c2af14044bdf83cd07bd744044a62783a38e41bc77f44b4bdc857102c0757769b7bb72c4022';
    const opened = openReply(Buffer.from(sealed, 'hex'), asked, Buffer.alloc(32, 7));
    expect(opened?.toString()).toBe('{"answer":42}');
  });

  it('opens for no other request and no other invoice', () => {
    const sealed = sealReply(body, asked, paymentHash);
    expect(openReply(sealed, bindingOf('{"url":"https://api.example.com/b"}'), paymentHash)).toBeNull();
    expect(openReply(sealed, asked, randomBytes(32))).toBeNull();
  });

  it('shows nothing of the reply, and is another each time', () => {
    const [one, two] = [sealReply(body, asked, paymentHash), sealReply(body, asked, paymentHash)];
    expect(one.includes('answer')).toBe(false);
    expect(one.equals(two)).toBe(false);
  });

  it('is null when a single bit of it is not what was sealed, or it is cut short', () => {
    const sealed = sealReply(body, asked, paymentHash);
    for (let at = 0; at < sealed.length; at++) {
      const damaged = Buffer.from(sealed);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      expect(openReply(damaged, asked, paymentHash)).toBeNull();
      expect(openReply(sealed.subarray(0, at), asked, paymentHash)).toBeNull();
    }
  });
});
