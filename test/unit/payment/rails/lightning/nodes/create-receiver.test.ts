import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../../src/lib/clock.ts';
import { createReceiver } from '../../../../../../src/payment/lightning/open.ts';
import { createUpstreams } from '../../../../../../src/upstream/client/client.ts';
import {
  type NodeKind,
  type NodeServer,
  startNodeServer,
} from '../../../../../support/lightning/lightning-node-servers.ts';
import { everythingOf, openReceiver } from '../../../../../support/lightning/receiver-bench.ts';
import { TEST_CA } from '../../../../../support/upstream/replay.ts';

const signal = new AbortController().signal;
const dir = mkdtempSync(join(tmpdir(), 'percall-receiver-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** A file with the text. */
const fileOf = (name: string, text: string) => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};

describe.each(['lnd', 'cln'] as const)("a node's own certificate (%s)", (kind: NodeKind) => {
  let node: NodeServer;
  beforeEach(async () => {
    node = await startNodeServer(kind, systemClock, { tls: true });
  });
  afterEach(() => node.stop());

  const keyWith = async (tlsCertFile: string | null) => {
    const bench = openReceiver({ ...node.config, tlsCertFile } as Parameters<typeof openReceiver>[0]);
    return bench.receiver.nodeKey(signal).finally(bench.close);
  };

  test('is accepted when its authority is the pinned one', async () => {
    expect(await keyWith(fileOf('ca.pem', TEST_CA))).toBe(node.key);
  });

  test('is refused under another authority, and under the public ones, before anything was sent', async () => {
    const other = fileOf('other.pem', rootCertificates[0] ?? '');
    await expect(keyWith(other)).rejects.toThrow(/TLS certificate is not valid/);
    await expect(keyWith(null)).rejects.toThrow(/TLS certificate is not valid/);
    expect(node.received).toEqual([]);
  });
});

test.each(['lnd', 'cln', 'phoenixd'] as const)('a receiver reports its kind as %s', async (kind) => {
  const node = await startNodeServer(kind, systemClock);
  const bench = openReceiver(node.config);
  expect(bench.receiver.kind).toBe(kind);
  await bench.close();
  await node.stop();
});

describe('the certificate file', () => {
  const open = (tlsCertFile: string) => () =>
    openReceiver({ kind: 'lnd', url: 'https://127.0.0.1:1', macaroon: '00', tlsCertFile });

  test('that does not exist stops the start, and the message names its configuration key', () => {
    expect(open(join(dir, 'gone.pem'))).toThrow(/^LIGHTNING_NODE_TLS_CERT: .*gone\.pem \(ENOENT\)$/);
    expect(open(join(dir, 'gone.pem'))).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ code: 'ENOENT' }) }),
    );
  });

  test('that holds no certificate stops the start, and the message does not repeat its text', () => {
    const path = fileOf('key.pem', '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n');
    let thrown: unknown;
    try {
      open(path)();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ message: expect.stringMatching(/^LIGHTNING_NODE_TLS_CERT: /) });
    expect(everythingOf(thrown)).not.toContain('c2VjcmV0');
  });
});

test('without a node there is no receiver, and no connection is made for one', async () => {
  const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
  const invoicesPerMinute = { client: 0, total: 0 };
  const config = {
    network: 'mainnet',
    receiver: null,
    nodeKey: null,
    shared: false,
    invoicesPerMinute,
    timeoutMs: 1,
  } as const;
  expect(createReceiver(config, upstreams)).toBeNull();
  const nwc = {
    kind: 'nwc',
    connection: `nostr+walletconnect://${'ab'.repeat(32)}?relay=ws://127.0.0.1:1&secret=${'cd'.repeat(32)}`,
  } as const;
  expect(createReceiver({ ...config, receiver: nwc }, upstreams)?.kind).toBe('nwc');
  await upstreams.close();
});
