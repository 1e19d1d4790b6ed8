import { expect, test } from 'vitest';
import { ownPort } from '../../support/service/own-port.ts';

test('no port is given twice, although none of them is listened on', async () => {
  // Of 600 free draws among 12,768 ports at least two are the same, but for one time in a million.
  const ports: number[] = [];
  while (ports.length < 600) ports.push(await ownPort());
  expect(new Set(ports).size).toBe(600);
});
