import { parse } from 'yaml';
import { readText } from '../documents.ts';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  /** How long the expression is true before it fires, as Prometheus writes it. */
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string; readonly action: string };
}

export interface Panel {
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** A file of docs/deploy. A key that stands twice throws. */
export const readYaml = <T>(name: string): T => parse(readText(`docs/deploy/${name}`), { merge: true }) as T;

/** The alerts of docs/deploy/alerts.yml in their order. */
export function readAlerts(): readonly Alert[] {
  return readYaml<{ groups: { rules: Alert[] }[] }>('alerts.yml').groups.flatMap(({ rules }) => rules);
}

/** The panels of docs/deploy/grafana.json in their order, headings (`row`) included. */
export function readPanels(): readonly Panel[] {
  return (JSON.parse(readText('docs/deploy/grafana.json')) as { panels: Panel[] }).panels;
}

/** Prometheus's way to write a time, such as `90s` or `5m`, in seconds. */
export function secondsOf(duration: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(duration) ?? [];
  const seconds = { s: 1, m: 60, h: 3600, d: 86_400 }[unit];
  if (seconds === undefined) throw new Error(`${duration} is no time`);
  return Number(count) * seconds;
}
