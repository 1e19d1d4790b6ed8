import { availableParallelism } from 'node:os';
import { textTable } from '../../lib/text-table.ts';
import { percentile } from '../lib.ts';
import type { Played } from './play.ts';
import type { Met } from './providers.ts';

/** What one line of the table says; times in milliseconds. */
export interface Row {
  readonly flood: string;
  readonly buyer: string;
  readonly calls: number;
  /** Within three tries. */
  readonly served: number;
  readonly servedAtFirst: number;
  /** Payments of the honest buyer that moved; null where that is unknown. */
  readonly paid: number | null;
  /** Of served calls, from the first try to the answer; null without any. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** What the honest buyer was refused with, by status and code. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly providersPassed: Readonly<Record<string, number>>;
  readonly providersRefused: Readonly<Record<string, number>>;
  readonly floodSent: number;
  readonly floodAnswers: Readonly<Record<string, number>>;
  readonly serviceCores: number;
  readonly ownDelayMs: number;
  readonly machineLoad: number;
}

/** Sums up one line. */
export function sumUp(played: Played): Row {
  const { flood, line, calls, paid, met, load } = played;
  const served = calls.filter((call) => call.served);
  const times = served.map(({ ms }) => ms);
  const refused = calls.flatMap(({ tries }) => tries).filter(({ status }) => status !== 200);
  return {
    flood,
    buyer: line,
    calls: calls.length,
    served: served.length,
    servedAtFirst: served.filter(({ tries }) => tries.length === 1).length,
    paid,
    p50: times.length > 0 ? Math.round(percentile(times, 0.5)) : null,
    p99: times.length > 0 ? Math.round(percentile(times, 0.99)) : null,
    refusals: countBy(refused, ({ status, code }) => (status === 0 ? code : `${status} ${code}`)),
    providersPassed: byMethods(met, true),
    providersRefused: byMethods(met, false),
    floodSent: load?.sent ?? 0,
    floodAnswers: load?.answers ?? {},
    serviceCores: Number(played.serviceCores.toFixed(2)),
    ownDelayMs: Math.round(played.ownDelayMs),
    machineLoad: Number(played.machineLoad.toFixed(1)),
  };
}

function byMethods(met: readonly Met[], passed: boolean): Record<string, number> {
  return countBy(
    met.filter((one) => one.passed === passed),
    ({ methods }) => methods,
  );
}

/** How often each, the most frequent first. */
function countBy<T>(things: readonly T[], nameOf: (thing: T) => string): Record<string, number> {
  const counts = [...Map.groupBy(things, nameOf)].map(([name, some]) => [name, some.length] as const);
  return Object.fromEntries(counts.sort(([, a], [, b]) => b - a));
}

/** How busy the machine was, beside its cores: what is measured on a busy one says little about times. */
export function machineOf(rows: readonly Row[]): string {
  const loads = rows.map(({ machineLoad }) => machineLoad);
  return `load average ${Math.min(...loads)} to ${Math.max(...loads)} on ${availableParallelism()} cores`;
}

/** The table, a line each. */
export function tableOf(rows: readonly Row[]): string[] {
  const head = [
    'flood',
    'buyer',
    'calls',
    'served',
    'first try',
    'paid',
    'p50 ms',
    'p99 ms',
    'providers refused',
    'refusals',
  ];
  const cells = rows.map((row) => [
    row.flood,
    row.buyer,
    String(row.calls),
    String(row.served),
    `${Math.round((100 * row.servedAtFirst) / row.calls)} %`,
    String(row.paid ?? '-'),
    String(row.p50 ?? '-'),
    String(row.p99 ?? '-'),
    `${sum(row.providersRefused)} of ${sum(row.providersRefused) + sum(row.providersPassed)}`,
    Object.entries(row.refusals)
      .map(([code, times]) => `${times} × ${code}`)
      .join(', ') || '-',
  ]);
  return textTable([head, ...cells]);
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
