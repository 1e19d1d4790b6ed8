import { expect, test } from 'vitest';
import { createProgress } from '../../../../src/upstream/guard/dial.ts';

const none = { dns: null, connect: null, tls: null, request: null };
const some = expect.any(Number);

test('before the first hop nothing is reached', () => {
  const start = 'https://page.example/';
  expect(createProgress(start).reached()).toEqual({
    url: start,
    phase: null,
    phaseMs: none,
    hops: [],
    totalMs: 0,
    tls: null,
    certificateFault: null,
  });
});

test('a hop that goes on is in its last step, and its steps have times', () => {
  const progress = createProgress('https://page.example/');
  progress.startHop('https://page.example/');
  progress.enter('dns');
  progress.enter('connect');
  expect(progress.reached()).toMatchObject({ phase: 'connect', phaseMs: { ...none, dns: some, connect: some } });
});

test('a hop that has answered fails at no step, and the next one begins anew', () => {
  const progress = createProgress('https://page.example/');
  const tls = { protocol: 'TLSv1.3', issuer: null, subject: null, validFrom: null, validTo: null };
  progress.startHop('https://page.example/');
  progress.enter('request');
  progress.secured(tls, 'CERT_HAS_EXPIRED');
  progress.answered();
  expect(progress.reached()).toMatchObject({ phase: null, tls, certificateFault: 'CERT_HAS_EXPIRED' });
  progress.followed({ url: 'https://page.example/', status: 301, latencyMs: 1 });
  progress.startHop('http://other.example/');
  expect(progress.reached()).toMatchObject({
    url: 'http://other.example/',
    phase: null,
    phaseMs: none,
    tls: null,
    certificateFault: null,
    hops: [{ status: 301 }],
  });
});
