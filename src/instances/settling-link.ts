import { z } from 'zod';
import type { Refusals } from '../payment/settling-local.ts';
import type { SettlingProcess } from '../payment/settling-remote.ts';
import type { Words } from '../store/ports/instances.ts';
import type { Membership } from './membership.ts';
import { createToldRefusals } from './told-refusals.ts';

const refusalsShape = z.object({
  unavailable: z.string().nullable(),
  // A leader of the version before does not say it.
  codeRefused: z.string().nullable().default(null),
  payers: z.array(z.tuple([z.string(), z.string()])),
  gatewayUnavailable: z.string().nullable(),
  rails: z.record(
    z.string(),
    z.object({ ok: z.boolean(), detail: z.string().optional(), sender: z.string().optional() }),
  ),
});

const NOBODY = 'no instance settles just now';

/** What a leader tells the others before they sell, and how they read it: as text in the ledger, from an instance of another version perhaps. */
export const refusalsText = (refusals: Refusals): string => JSON.stringify(refusals);

/** The instance that leads, as the others hand over to it: asked by word, and known by what it last told all. */
export function createSettlingLink(membership: Pick<Membership, 'said'>, words: Words): SettlingProcess {
  let text: string | null = null;
  let read: Refusals | null = null;

  /** Read once for each word: it is asked for every call that is sold. */
  function known(): Refusals | null {
    const said = membership.said();
    if (said === text) return read;
    text = said;
    read = said === null ? null : readRefusals(said);
    return read;
  }

  return {
    ask: words.ask,
    onEnded: words.onTold,
    ...createToldRefusals(known, () => (known() ? null : NOBODY)),
  };
}

function readRefusals(said: string): Refusals | null {
  try {
    const parsed = refusalsShape.safeParse(JSON.parse(said));
    return parsed.success ? (parsed.data as Refusals) : null;
  } catch {
    return null;
  }
}
