import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGuarded } from '../../../dev/child.ts';
import { ownPort } from '../service/own-port.ts';
import { until } from '../service/workers.ts';
import { readYaml } from './files.ts';
import { programPath } from './programs.ts';

/** A series of an answer: its labels, and its value now. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: { metric: Record<string, string>; value?: [number, string]; values?: unknown[] }[];
  };
}

interface Configuration {
  readonly global: object;
  readonly scrape_configs: readonly [{ readonly job_name: string }];
}

const RULES = join(import.meta.dirname, '../../../docs/deploy/alerts.yml');

/** The configuration of docs/deploy for these targets. The interval is its only other change: a test waits for every reading. */
export function configurationFor(targets: readonly string[], tokenFile: string): object {
  const { scrape_configs: jobs, ...rest } = readYaml<Configuration>('prometheus.yml');
  const [job] = jobs;
  return {
    ...rest,
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      { ...job, authorization: { credentials_file: tokenFile }, static_configs: [{ targets: [...targets] }] },
    ],
  };
}

/** Debian's Prometheus with this project's configuration and alerts, reading real services each second. */
export async function startPrometheus(origins: readonly string[], token: string) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-prometheus-'));
  const [config, tokenFile] = [join(folder, 'prometheus.yml'), join(folder, 'token')];
  writeFileSync(tokenFile, token);
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify(
      configurationFor(
        origins.map((origin) => new URL(origin).host),
        tokenFile,
      ),
    ),
  );
  const address = `127.0.0.1:${await ownPort()}`;
  const child = await startGuarded(programPath('prometheus'), [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
  ]);
  const stop = async (): Promise<void> => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };

  async function ask(path: string, values: Record<string, string>): Promise<Answer['data']['result']> {
    const answer = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(values)}`);
    const { status, error, data } = (await answer.json()) as Answer;
    if (status !== 'success') throw new Error(`${values.query}: ${error}`);
    return data.result;
  }
  await until(`Prometheus is ready: ${child.tail()}`, async () => {
    if (child.ended() !== null) throw new Error(`Prometheus ended (${child.ended()}): ${child.tail()}`);
    return (await fetch(`http://${address}/-/ready`).catch(() => null))?.status === 200;
  });

  return {
    /** An expression's series now. */
    query: async (query: string): Promise<Series[]> =>
      (await ask('query', { query })).map(({ metric, value }) => ({ labels: metric, value: Number(value?.[1]) })),
    /** Whether an expression was true at some second between two times (in Unix milliseconds). */
    wasTrue: async (query: string, fromMs: number, toMs: number): Promise<boolean> => {
      const [start, end] = [fromMs, toMs].map((ms) => String(ms / 1000)) as [string, string];
      return (await ask('query_range', { query, start, end, step: '1' })).length > 0;
    },
    /** The alerts' names that Prometheus has loaded. */
    rules: async (): Promise<string[]> => {
      const answer = await fetch(`http://${address}/api/v1/rules`);
      const { data } = (await answer.json()) as { data: { groups: { rules: { name: string; health: string }[] }[] } };
      return data.groups.flatMap(({ rules }) => rules.map(({ name }) => name));
    },
    stop,
  };
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;
