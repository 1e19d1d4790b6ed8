import type { Evidence } from '../../evm/evidence.ts';
import type { RailSettling, SettlingTerms } from '../../settler.ts';
import { exactInfo } from './describe.ts';

/** The plain rail, settled by our relayer. Throws when no relayer is configured. */
export function openRelayed(evidence: Pick<Evidence, 'lookup'>, { relaying }: SettlingTerms): RailSettling {
  return { settler: relaying(exactInfo.name).settler, evidence, ownOnly: false };
}
