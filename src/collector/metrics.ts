import { Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import type { CollectorStatus, CollectorView } from './store/facts.ts';
import type { ProbeReads } from './store/probes.ts';

/** Older probes say nothing about the present. */
const RECENT_MS = 60_000;

const GAUGES: readonly { name: string; help: string; read: (status: CollectorStatus) => number | null }[] = [
  { name: 'chain_head_block', help: 'Newest block that a provider showed', read: ({ head }) => head?.number ?? null },
  {
    name: 'collector_block',
    help: 'Newest block that is stored whole',
    read: ({ collected }) => collected?.number ?? null,
  },
  {
    name: 'collector_lag_blocks',
    help: 'Blocks between the two',
    read: ({ head, collected }) => head && collected && Math.max(head.number - collected.number, 0),
  },
  {
    name: 'collector_head_moved_timestamp_seconds',
    help: 'When the head was last seen to move',
    read: ({ headAdvancedMs }) => headAdvancedMs && headAdvancedMs / 1000,
  },
  {
    name: 'collector_backfill_share',
    help: 'Share of the window of past blocks that is stored, 0 to 1',
    read: ({ backfill }) => backfill.share,
  },
];

const COUNTERS: readonly { name: string; help: string; read: (counters: CollectorStatus['counters']) => number }[] = [
  { name: 'collector_requests_total', help: 'HTTP requests to providers', read: ({ requests }) => requests },
  { name: 'collector_failures_total', help: 'Requests that no provider answered', read: ({ failures }) => failures },
  {
    name: 'collector_reorgs_total',
    help: 'Parent hashes that did not fit, which deterministic finality rules out',
    read: ({ reorgs }) => reorgs,
  },
  {
    name: 'collector_replaced_blocks_total',
    help: 'Blocks replaced because of them',
    read: (counters) => counters.replacedBlocks,
  },
];

/** The state is read only when metrics are requested. */
export function publishCollector(
  registry: Registry,
  clock: Clock,
  collector: CollectorView,
  reads: ProbeReads,
  endpoints: readonly { readonly name: string }[],
): void {
  const registers = [registry];
  for (const { name, help, read } of GAUGES) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        // No sample, not a zero, for an unknown value.
        const value = read(collector.status());
        this.remove();
        if (value !== null) this.set(value);
      },
    });
  }
  for (const { name, help, read } of COUNTERS) {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read(collector.status().counters));
      },
    });
  }
  new Counter({
    name: 'collector_refused_answers_total',
    help: 'Answers that contradicted themselves',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(collector.status().counters.refused)) this.inc({ reason }, count);
    },
  });
  new Gauge({
    name: 'rpc_probe_up',
    help: 'Whether the last probe of an RPC endpoint was answered',
    labelNames: ['endpoint'],
    registers,
    collect() {
      this.reset();
      for (const { name } of endpoints) {
        const last = reads.probes(name, clock.nowMs() - RECENT_MS).at(-1);
        if (last) this.set({ endpoint: name }, last.ok ? 1 : 0);
      }
    },
  });
}
