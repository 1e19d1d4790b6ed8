import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findUnreadKeys, OWN_WORDS } from '../../../src/config.ts';

const example = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8');
const REAL = [...example.matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1] ?? '');

describe('a key that nobody reads', () => {
  test.each([
    ['CHANELS', 'CHANNELS'],
    ['CHANNEL', 'CHANNELS'],
    ['CHANELS_MIN_DEPOSIT_USDC', 'CHANNELS_MIN_DEPOSIT_USDC'],
    ['RELAYER_DAILY_GAS', 'RELAYER_DAILY_GAS_USDC'],
    ['RELAYER_KEY', 'RELAYER_PRIVATE_KEY'],
    ['LIGHTNING_RECIEVER', 'LIGHTNING_RECEIVER'],
    ['LIGTHNING_RECEIVER', 'LIGHTNING_RECEIVER'],
    ['PUBLIC_ORIGN', 'PUBLIC_ORIGIN'],
    ['LOG_LEVELS', 'LOG_LEVEL'],
    ['SELLER', 'SELLER_ADDRESS'],
  ])('is named with the nearest real one: %s → %s', (key, nearest) => {
    expect(findUnreadKeys({ [key]: 'a value' })).toEqual([{ key, nearest }]);
  });

  test('is named without its value, which may be a private key', () => {
    const secret = `0x${'ab'.repeat(32)}`;
    const found = findUnreadKeys({ RELAYER_PRIVAT_KEY: secret });
    expect(found).toEqual([{ key: 'RELAYER_PRIVAT_KEY', nearest: 'RELAYER_PRIVATE_KEY' }]);
    expect(JSON.stringify(found)).not.toContain(secret);
  });

  test('is none of ours, of our commands’ or of an empty value', () => {
    expect(REAL.length).toBeGreaterThan(100);
    expect(findUnreadKeys(Object.fromEntries(REAL.map((key) => [key, 'x'])))).toEqual([]);
    const commands = [
      'BUYER_PRIVATE_KEY',
      'RPC_URL',
      'MAX_USDC',
      'MAX_SATS',
      'DISCOVERY_URL',
      'PAYER_URL',
      'NWC_PAYER',
    ];
    const nodes = ['LND_PAYER_URL', 'LND_PAYER_TLS_CERT', 'LND_PAYER_MACAROON'];
    expect(findUnreadKeys(Object.fromEntries([...commands, ...nodes].map((key) => [key, 'x'])))).toEqual([]);
    expect(findUnreadKeys({ CHANELS: '', RELAYER_KEY: undefined })).toEqual([]);
  });

  test.each([
    'PATH HOME USER SHELL PWD OLDPWD TERM LANG LC_ALL TZ TMPDIR HOSTNAME SHLVL EDITOR DISPLAY LOGNAME MAIL',
    'NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_VERSION NODE_PATH NO_COLOR FORCE_COLOR COLORTERM DEBUG NO_PROXY HTTP_PROXY',
    'npm_config_cache npm_lifecycle_event npm_package_name INIT_CWD CI GITHUB_ACTIONS GITHUB_TOKEN RUNNER_OS',
    'XDG_DATA_DIRS XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SUDO_USER',
    'KUBERNETES_SERVICE_HOST KUBERNETES_PORT_443_TCP_ADDR LEDGER_SERVICE_HOST LEDGER_SERVICE_PORT_HTTP LEDGER_PORT',
    'RELAYER_PORT_8080_TCP RELAYER_PORT_8080_TCP_PROTO GATEWAY_SERVICE_PORT DATABASE_URL POSTGRES_PASSWORD PGHOST',
    'WEB_CONCURRENCY PUBLIC_URL REMOTE_ADDR MEMORY_LIMIT HEALTHCHECK_URL CLIENT_ID LOG_FORMAT HOST_IP WATCHPACK_POLLING',
    'AWS_REGION AWS_ACCESS_KEY_ID DOCKER_HOST OTEL_EXPORTER_OTLP_ENDPOINT SYSTEMD_EXEC_PID INVOCATION_ID JOURNAL_STREAM',
  ])('is none of an ordinary environment: %s', (keys) => {
    expect(findUnreadKeys(Object.fromEntries(keys.split(' ').map((key) => [key, 'x'])))).toEqual([]);
  });

  test('begins by a word that real keys begin with', () => {
    for (const word of OWN_WORDS) expect([word, REAL.some((key) => key.split('_')[0] === word)]).toEqual([word, true]);
  });
});
