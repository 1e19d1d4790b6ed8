import { createHash } from 'node:crypto';
import { exchange } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import type { Shop } from './shop.ts';

/** The documents that machines read before they pay. */
export async function recordDocuments(t: Transcript, { origin }: Shop): Promise<void> {
  await t.ask('the price list', origin, '/v1/paid');
  await t.ask('llms.txt', origin, '/llms.txt');
  await t.ask('the descriptor of the Lightning routes', origin, '/v1/lightning');
  await t.ask('the descriptor of the facilitator', origin, '/facilitator');
  await t.ask('what the facilitator supports', origin, '/facilitator/supported');
}

/** The manifest repeats the challenges, so each of its routes is recorded as one line with a hash. */
export async function recordManifest(t: Transcript, { origin }: Shop): Promise<void> {
  await t.ask('its head', origin, '/.well-known/x402', { method: 'HEAD' });
  const { body } = await exchange(origin, '/.well-known/x402');
  const { items, ...rest } = JSON.parse(body) as { items: { resource: string }[] };
  const lines = items.map((item) => `${item.resource} ${sha256(JSON.stringify(item))}`);
  t.note('its items: resource, SHA-256', lines.join('\n'));
  t.noteJson('its first item', items[0]);
  t.noteJson('all but its items', rest);
  t.note('all of it: SHA-256', sha256(body));
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** The names of the checks of `/readyz` and of their members, sorted. */
export async function recordReadiness(t: Transcript, { origin }: Shop): Promise<void> {
  const { status, body } = await exchange(origin, '/readyz');
  const { checks, ...rest } = JSON.parse(body) as { checks: Record<string, object> };
  const lines = Object.entries(checks).map(([name, check]) => `${name}: ${Object.keys(check).sort().join(' ')}`);
  t.note('the members of /readyz', `${status}\n${Object.keys(rest).join(' ')}`);
  t.note('the members of its checks', lines.sort().join('\n'));
}

const OF_THE_RUNTIME = /^(nodejs|process)_/;
/** Counts events that no test causes, so its labels are usually missing. */
const WITHOUT_LABELS = ['collector_refused_answers_total'];
/** Labels whose values exist from the start, but for these: their rails are those that are on, or have sold. */
const WITH_VALUES = /^(rail|state)="/;
const BY_USE = ['payment_answers_total', 'payment_answer_duration_seconds'];

/** The service's own metrics, sorted: type, name and label names; for rails and states the values too. Metrics of the runtime are left out. */
export async function recordMetrics(t: Transcript, { origin }: Shop): Promise<void> {
  const { body } = await exchange(origin, '/metrics');
  const kinds = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => ({ name, kind }));
  const own = kinds.filter(({ name }) => !OF_THE_RUNTIME.test(name));
  const lines = own.map(({ name, kind }) => [kind, name, ...labelsOf(name, body)].join(' '));
  t.note('metrics: kind, name, labels', lines.sort().join('\n'));
}

function labelsOf(name: string, body: string): string[] {
  if (WITHOUT_LABELS.includes(name)) return [];
  const samples = body.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'));
  const labels = [...samples].flatMap(([, given = '']) => given.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? []);
  return [
    ...new Set(
      labels.map((label) => (WITH_VALUES.test(label) && !BY_USE.includes(name) ? label : label.split('=')[0])),
    ),
  ]
    .map(String)
    .sort();
}
