/** How a rail's remote service stands, as its last probe found it; `/readyz` shows it. */
export interface RailProbe {
  readonly ok: boolean;
  readonly detail?: string;
  /** The address that sends the service's settlements, where it names one; lower case. */
  readonly sender?: `0x${string}`;
}
