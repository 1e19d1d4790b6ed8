/** The chain as people know it. */
export interface NamedChain {
  readonly name: string;
  /** Whether its coins are worth nothing, as on the embedded network. */
  readonly isPlayMoney: boolean;
}

/** The chain's name for a text. Play money is named wherever the chain is: `Arc`, `Arc (demo, play money)`. */
export function chainTitle({ name, isPlayMoney }: NamedChain): string {
  return isPlayMoney ? `${name} (demo, play money)` : name;
}
