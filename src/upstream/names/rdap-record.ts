import { domainToASCII } from 'node:url';
import { z } from 'zod';

const event = z.object({ eventAction: z.string(), eventDate: z.string() });
const link = z.object({ href: z.string().optional() });
/** A jCard property: name, parameters, type, value. */
const property = z.tuple([z.string(), z.unknown(), z.string(), z.unknown()], z.unknown());

/**
 * The used fields of RFC 9083's domain object. Contacts of persons are left out, because we do not publish them.
 * Most fields accept the variants that registries send. The object class must be `domain`.
 */
export const rdapDomainSchema = z.object({
  objectClassName: z.string().regex(/^domain$/i),
  ldhName: z.string().optional(),
  unicodeName: z.string().optional(),
  status: z.array(z.string()).optional(),
  events: z.array(event).optional(),
  nameservers: z.array(z.object({ ldhName: z.string().optional() })).optional(),
  secureDNS: z.object({ delegationSigned: z.boolean().optional() }).optional(),
  entities: z
    .array(
      z.object({
        roles: z.array(z.string()).optional(),
        publicIds: z.array(z.object({ type: z.string(), identifier: z.string() })).optional(),
        vcardArray: z
          .tuple([z.string(), z.array(property)])
          .optional()
          .catch(undefined),
      }),
    )
    .optional(),
  notices: z.array(z.object({ title: z.string().optional(), links: z.array(link).optional() })).optional(),
});
type RdapDomain = z.output<typeof rdapDomainSchema>;

/** A registration as the registry reports it. A field that it omits or redacts is null. Times are Unix seconds. */
export interface Registration {
  readonly registrar: { readonly name: string | null; readonly ianaId: string | null } | null;
  readonly createdAt: number | null;
  readonly updatedAt: number | null;
  readonly expiresAt: number | null;
  readonly status: string[] | null;
  readonly nameServers: string[] | null;
  readonly dnssecSigned: boolean | null;
  /** URL of the registry's terms of use. */
  readonly termsUrl: string | null;
}

/** Whether the record is of the given domain (ASCII). Registries write names in any letter case. */
export function isRecordOf(domain: string, { ldhName, unicodeName }: RdapDomain): boolean {
  const name = ldhName ?? unicodeName;
  return name !== undefined && domainToASCII(name.toLowerCase()).replace(/\.$/, '') === domain;
}

/** The facts of a record that a buyer asks for. */
export function registrationOf(record: RdapDomain): Registration {
  return {
    registrar: registrarOf(record),
    createdAt: eventAt(record, 'registration'),
    updatedAt: eventAt(record, 'last changed'),
    expiresAt: eventAt(record, 'expiration'),
    status: filled(record.status),
    nameServers: filled(record.nameservers?.map(({ ldhName = '' }) => ldhName.toLowerCase().replace(/\.$/, ''))),
    dnssecSigned: record.secureDNS?.delegationSigned ?? null,
    termsUrl: termsOf(record),
  };
}

/** The value as text. Null when it is empty or says that it is redacted, as RFC 9537 allows. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !/\bredacted\b/i.test(value) ? value.trim() : null;
}

function filled(values: readonly string[] | undefined): string[] | null {
  const kept = values?.map(textOf).filter((value) => value !== null) ?? [];
  return kept.length > 0 ? [...new Set(kept)] : null;
}

function registrarOf({ entities = [] }: RdapDomain): Registration['registrar'] {
  const entity = entities.find(({ roles }) => roles?.includes('registrar'));
  if (!entity) return null;
  const properties = entity.vcardArray?.[1] ?? [];
  const property = (name: string) => textOf(properties.find(([key]) => key === name)?.[3]);
  const id = entity.publicIds?.find(({ type }) => /^iana registrar id$/i.test(type));
  return { name: property('fn') ?? property('org'), ianaId: textOf(id?.identifier) };
}

/** RFC 3339. Some registries leave out the offset; the time is then read as UTC, as RDAP's dates are. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?([Zz]|[+-]\d{2}:?\d{2})?$/;

/** The time of the newest event of that name: registries list one, or a history. */
function eventAt({ events = [] }: RdapDomain, action: string): number | null {
  const times = events
    .filter(({ eventAction }) => eventAction.toLowerCase() === action)
    .map(({ eventDate }) => {
      const match = DATE_TIME.exec(eventDate);
      const ms = match ? Date.parse(match[1] || eventDate.length === 10 ? eventDate : `${eventDate}Z`) : Number.NaN;
      return Math.floor(ms / 1000);
    });
  const known = times.filter((time) => Number.isFinite(time) && time >= 0);
  return known.length > 0 ? Math.max(...known) : null;
}

function termsOf({ notices = [] }: RdapDomain): string | null {
  const notice = notices.find(({ title = '' }) => /\b(terms|legal|copyright)\b/i.test(title));
  const href = notice?.links?.find((candidate) => /^https?:\/\/\S+$/.test(candidate.href ?? ''))?.href;
  return href ?? null;
}
