import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import type { Host, WireAnswer, WireFault } from '../network/wire.ts';

const json = (body: object): WireAnswer => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** What goes wrong with a source at present. */
export interface SourceMood {
  fault: WireFault | null;
  /** Added to every answer. */
  slowMs: number;
  /** What a bitcoin costs there, of the true price, in percent. */
  percent: number;
}

interface SourcesOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
}

/** Three exchanges that tell what a bitcoin costs, and one source of data. */
export function createSources({ scheduler, random }: SourcesOptions) {
  let btcUsd = 60_000 + random.int(60_000);
  const rates = { least: btcUsd, most: btcUsd };

  function source(answer: (mood: SourceMood) => WireAnswer) {
    const mood: SourceMood = { fault: null, slowMs: 0, percent: 100 };
    const host: Host = {
      serve: (_request, reply) => {
        if (mood.slowMs === 0) return reply(answer(mood));
        setTimeout(() => reply(answer(mood)), mood.slowMs);
      },
      fault: () => mood.fault,
      latencyMs: [5, 60],
    };
    return { mood, host };
  }

  const price = ({ percent }: SourceMood): string => ((btcUsd * percent) / 100).toFixed(2);
  const coinbase = source((mood) => json({ price: price(mood), time: new Date(scheduler.nowMs()).toISOString() }));
  const kraken = source((mood) => json({ error: [], result: { XXBTZUSD: { c: [price(mood), '0.1'] } } }));
  const bitstamp = source((mood) =>
    json({ last: price(mood), timestamp: String(Math.floor(scheduler.nowMs() / 1000)) }),
  );
  const dns = source(() =>
    json({
      Status: 0,
      TC: false,
      RD: true,
      RA: true,
      AD: false,
      CD: false,
      Question: [{ name: 'example.com.', type: 1 }],
      Answer: [{ name: 'example.com.', type: 1, TTL: 60, data: '192.0.2.7' }],
    }),
  );
  const exchanges = [coinbase, kraken, bitstamp];

  return {
    hosts: [
      ['http://coinbase.test', coinbase.host],
      ['http://kraken.test', kraken.host],
      ['http://bitstamp.test', bitstamp.host],
      ['http://dns.test', dns.host],
    ] as const,
    /** Of the exchanges, and last of the source of data. */
    moods: [...exchanges, dns].map(({ mood }) => mood),
    /** What a bitcoin has cost so far, at any exchange: an honest invoice lies within. */
    rates,
    /** The price moves, by so many percent. */
    move(percent: number): void {
      btcUsd = Math.max(1000, Math.round((btcUsd * (100 + percent)) / 100));
      rates.least = Math.min(rates.least, btcUsd);
      rates.most = Math.max(rates.most, btcUsd);
    },
    heal(): void {
      for (const { mood } of [...exchanges, dns]) Object.assign(mood, { fault: null, slowMs: 0, percent: 100 });
    },
  };
}
