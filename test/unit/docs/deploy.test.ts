import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { type Alert, readAlerts, readPanels, readYaml, secondsOf } from '../../support/deploy/files.ts';
import { namesIn } from '../../support/deploy/promql.ts';
import { inRepository, readText } from '../../support/documents.ts';

// The files of docs/deploy as text: they fit each other, the Dockerfile, `npm start` and .env.example. test/conformance/deploy gives them to the programs
// that read them.

const FOLDER = 'docs/deploy';
const KEYS = [...readText('.env.example').matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map(([, key]) => String(key));
/** Keys that a program of somebody else reads, or glibc. */
const OTHERS = [
  'MALLOC_TRIM_THRESHOLD_',
  'POSTGRES_USER',
  'POSTGRES_DB',
  'POSTGRES_PASSWORD',
  'GF_SECURITY_ADMIN_PASSWORD',
];
/** What the cluster asks its operator for, beside our own keys. */
const ASKED = ['LEDGER_PASSWORD', 'GRAFANA_PASSWORD', 'METRICS_TOKEN'];

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly env_file?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly configs?: readonly { readonly source: string; readonly target: string }[];
  readonly depends_on?: Readonly<Record<string, object>>;
  readonly stop_grace_period?: string;
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: object;
  readonly secrets?: object;
  readonly configs?: Readonly<Record<string, { readonly content: string }>>;
}

const COMPOSED = ['compose.yaml', 'compose.cluster.yaml'] as const;
const servicesOf = (name: string) => Object.entries(readYaml<Compose>(name).services);
const unitLines = readText(`${FOLDER}/percall.service`).split('\n');
/** The values of a key of the unit, in their order. */
const unit = (key: string): string[] =>
  unitLines.flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));

test('the folder has these files and no others', () => {
  expect(
    inRepository(`${FOLDER}/*`)
      .map((path) => posix.basename(path))
      .sort(),
  ).toEqual([
    'alerts.yml',
    'compose.cluster.yaml',
    'compose.yaml',
    'grafana.json',
    'haproxy.cfg',
    'percall.service',
    'prometheus.yml',
  ]);
});

test.each(inRepository(`${FOLDER}/*.{yml,yaml}`))('%s is YAML without a fault or a key that stands twice', (path) => {
  const { errors, warnings } = parseDocument(readText(path), { merge: true, uniqueKeys: true });
  expect([...errors, ...warnings]).toEqual([]);
});

describe.each(COMPOSED)('%s', (name) => {
  const { services, volumes, secrets = {}, configs = {} } = readYaml<Compose>(name);
  const all = Object.entries(services);

  test('sets keys that the service, its database or Grafana reads, and asks for those that it explains', () => {
    const keys = all.flatMap(([, { environment = {} }]) => Object.keys(environment));
    expect(keys).toContain('DATA_DIR');
    expect(keys.filter((key) => ![...KEYS, ...OTHERS].includes(key))).toEqual([]);
    const text = readText(`${FOLDER}/${name}`);
    const asked = [...text.matchAll(/\$\{(\w+)(:\?[^}]*)?\}/g)];
    for (const [whole, key = '', otherwise] of asked) {
      expect(ASKED, whole).toContain(key);
      // An empty password is none.
      expect(otherwise, whole).toBeDefined();
      expect(text.match(new RegExp(`^#.*\\b${key}\\b`, 'm')), key).not.toBeNull();
    }
  });

  test('names keys in its comments that exist', () => {
    const comments =
      readText(`${FOLDER}/${name}`)
        .match(/^\s*#.*$/gm)
        ?.join('\n') ?? '';
    const named = comments.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [];
    expect(named.filter((key) => ![...KEYS, ...ASKED].includes(key))).toEqual([]);
  });

  test('declares every volume, secret and config that it uses, and uses every one that it declares', () => {
    const mounts = all.flatMap(([, service]) => (service.volumes ?? []).map((mount) => mount.split(':')[0] ?? ''));
    const named = mounts.filter((mount) => !mount.startsWith('.'));
    expect([...new Set(named)].sort()).toEqual(Object.keys(volumes).sort());
    expect(all.flatMap(([, service]) => service.secrets ?? [])).toEqual(Object.keys(secrets));
    expect(all.flatMap(([, service]) => (service.configs ?? []).map(({ source }) => source))).toEqual(
      Object.keys(configs),
    );
    for (const mount of mounts.filter((one) => one.startsWith('./'))) {
      expect(inRepository(posix.join(FOLDER, mount)), mount).toHaveLength(1);
    }
    for (const { content } of Object.values(configs)) expect(parseDocument(content).errors).toEqual([]);
  });

  test('builds the image from the Dockerfile, and pins each of the others to a version', () => {
    for (const [service, { build, image = '', depends_on = {} }] of all) {
      if (build === undefined) expect(image, service).toMatch(/^[\w/-]+:v?\d+(\.\d+)*$/);
      else expect(inRepository(posix.join(FOLDER, build, 'Dockerfile'))).toEqual(['Dockerfile']);
      for (const other of Object.keys(depends_on)) expect(Object.keys(services)).toContain(other);
    }
  });

  test('runs the service in production, on the data and the port of its image, and lets it stop in time', () => {
    const ours = all.filter(([, { image }]) => image === 'percall');
    expect(ours.length).toBeGreaterThan(0);
    const dockerfile = readText('Dockerfile');
    for (const [, { environment, volumes: mounts = [], env_file, stop_grace_period }] of ours) {
      expect(environment).toMatchObject({ NODE_ENV: 'production', HOST: '0.0.0.0', DATA_DIR: '/data', PORT: '4021' });
      for (const [key, value] of Object.entries({ DATA_DIR: '/data', PORT: '4021' }))
        expect(dockerfile).toContain(`${key}=${value}`);
      expect(mounts).toEqual([expect.stringMatching(/:\/data$/)]);
      expect([env_file, stop_grace_period]).toEqual(['percall.env', '15s']);
    }
    // It holds keys.
    expect(readText('.gitignore').split('\n')).toContain(`${FOLDER}/*.env`);
  });

  test('shows the world the balancer alone', () => {
    const open = all.flatMap(([service, { ports = [] }]) =>
      ports.filter((port) => !port.startsWith('127.0.0.1:')).map((port) => [service, port]),
    );
    expect(open).toEqual(name === 'compose.yaml' ? [] : [['balancer', '80:80']]);
  });
});

test('HAProxy sends to the instances of the cluster, and asks a route that says whether they are ready', () => {
  const config = readText(`${FOLDER}/haproxy.cfg`);
  const servers = [...config.matchAll(/^ {2}server (\w+) (\S+)$/gm)].map(([, name, address]) => [name, address]);
  const instances = servicesOf('compose.cluster.yaml').filter(([, { image }]) => image === 'percall');
  expect(servers).toEqual(instances.map(([name]) => [name, `${name}:4021`]));
  expect(config).toContain('option httpchk GET /readyz');
  const { paths } = JSON.parse(readText('openapi/openapi.json')) as { paths: object };
  expect(Object.keys(paths)).toContain('/readyz');
});

test('Prometheus reads the instances of the cluster by the job that the alerts name, with the token of its secret', () => {
  const { rule_files, scrape_configs } = readYaml<{
    rule_files: string[];
    scrape_configs: { job_name: string; authorization: object; static_configs: { targets: string[] }[] }[];
  }>('prometheus.yml');
  expect(rule_files).toEqual(['alerts.yml']);
  const [job, ...others] = scrape_configs;
  expect([job?.job_name, others]).toEqual(['percall', []]);
  const { services, secrets } = readYaml<Compose>('compose.cluster.yaml');
  const instances = Object.entries(services).filter(([, { image }]) => image === 'percall');
  expect(job?.static_configs).toEqual([{ targets: instances.map(([name]) => `${name}:4021`) }]);
  expect(job?.authorization).toEqual({ credentials_file: '/run/secrets/metrics_token' });
  expect(secrets).toEqual({ metrics_token: { environment: 'METRICS_TOKEN' } });
});

describe('percall.service', () => {
  test('starts the build as `npm start` and the image do', () => {
    const { start } = (JSON.parse(readText('package.json')) as { scripts: { start: string } }).scripts;
    const [, options] = /node (--.*)$/.exec(start) ?? [];
    expect(unit('ExecStart')).toEqual([`/opt/percall/node_modules/.bin/node ${options}`]);
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(readText('Dockerfile')) ?? [];
    expect((JSON.parse(command) as string[]).slice(1).join(' ')).toBe(options);
    expect(start).toContain(`env ${unit('Environment').at(-1)} node`);
  });

  test('sets keys that are read, before the operator’s files, which come from root alone', () => {
    const set = unit('Environment').map((pair) => pair.split('=')[0]);
    expect(set).toEqual(['NODE_ENV', 'DATA_DIR', 'MALLOC_TRIM_THRESHOLD_']);
    expect(set.filter((key) => ![...KEYS, ...OTHERS].includes(String(key)))).toEqual([]);
    expect(unit('EnvironmentFile')).toEqual(['/etc/percall/percall.env', '-/etc/percall/%i.env']);
  });

  test('is started again after each end, and has more time to stop than the service takes', () => {
    expect([unit('Restart'), unit('StartLimitIntervalSec')]).toEqual([['always'], ['0']]);
    expect(Number(unit('TimeoutStopSec'))).toBeGreaterThan(10);
  });

  test('writes where its data is, and nowhere else', () => {
    expect(unit('Environment')).toContain(`DATA_DIR=/var/lib/${unit('StateDirectory')}/%i`);
    expect([unit('ProtectSystem'), unit('StateDirectoryMode'), unit('ReadWritePaths')]).toEqual([
      ['strict'],
      ['0700'],
      [],
    ]);
  });
});

describe('alerts.yml', () => {
  const alerts = readAlerts();
  const scripts = Object.keys((JSON.parse(readText('package.json')) as { scripts: object }).scripts);
  const { paths } = JSON.parse(readText('openapi/openapi.json')) as { paths: object };

  test('has each alert once, with its time, its severity, and what is wrong', () => {
    expect(alerts.length).toBeGreaterThan(23);
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
    for (const one of alerts) {
      expect(['page', 'ticket'], one.alert).toContain(one.labels.severity);
      expect(secondsOf(one.for)).toBeGreaterThanOrEqual(0);
      expect(one.annotations.summary, one.alert).toMatch(/^[A-Z].*\.$/);
    }
  });

  const named = (pattern: RegExp, { annotations }: Alert): string[] =>
    [...annotations.action.matchAll(pattern)].map(([, name]) => String(name));

  test.each(alerts.map((one) => [one.alert, one] as const))('%s says what to do, in names that exist', (_name, one) => {
    expect(one.annotations.action).toMatch(/\.$/);
    expect(named(/`npm run (\S+)/g, one).filter((script) => !scripts.includes(script))).toEqual([]);
    expect(named(/`(?:GET )?(\/[\w/]+)`/g, one).filter((path) => !Object.keys(paths).includes(path))).toEqual([]);
    const keys = named(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g, one);
    expect(keys.filter((key) => !KEYS.includes(key))).toEqual([]);
    // `docs/x.md, Heading`: what the text sends its reader to.
    for (const [, path = '', heading] of one.annotations.action.matchAll(/(docs\/[\w.]+\.md)(?:, ([^.]+))?/g)) {
      expect(inRepository(path)).toEqual([path]);
      if (heading) expect(readText(path)).toMatch(new RegExp(`^#+ ${heading}$`, 'm'));
    }
  });
});

describe('grafana.json', () => {
  const panels = readPanels();

  test('answers an operator’s questions in this order', () => {
    expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
      'Is money coming in?',
      'Is anybody refused, and why?',
      'What does a call cost us?',
      'How long do buyers wait?',
      'Is the chain followed?',
      'Do the sources answer?',
      'Is the machine well?',
    ]);
    // Each question has an answer.
    expect(panels[0]?.type).toBe('row');
    for (const [at, { type }] of panels.entries()) if (type === 'row') expect(panels[at + 1]?.type).not.toBe('row');
    expect(panels.at(-1)?.type).not.toBe('row');
  });

  test('has each panel once, in a place of its own, with a query for the source that the reader chooses', () => {
    type Placed = { id: number; gridPos: { x: number; y: number; w: number; h: number }; datasource?: object };
    const placed = panels as unknown as Placed[];
    expect(new Set(placed.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)}:${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...placed.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
    for (const [at, { type, targets = [] }] of panels.entries()) {
      if (type === 'row') continue;
      expect(targets.length).toBeGreaterThan(0);
      expect(placed[at]?.datasource).toEqual({ type: 'prometheus', uid: '$' + '{datasource}' });
    }
  });
});

describe('the reader of expressions', () => {
  test('finds metrics, the labels of selectors, and what is grouped by', () => {
    expect(
      namesIn('histogram_quantile(0.99, sum by (rail, le) (rate(a_bucket{x="by (y) {z=1}",s=~"5.."}[5m]))) > 1e3'),
    ).toEqual({
      metrics: ['a_bucket'],
      selected: [
        { metric: 'a_bucket', label: 'x' },
        { metric: 'a_bucket', label: 's' },
      ],
      grouped: ['rail', 'le'],
    });
    expect(namesIn('time() - a_b > 0.8 * c or up == 1 unless on (job) d').metrics).toEqual(['a_b', 'c', 'up', 'd']);
  });
});
