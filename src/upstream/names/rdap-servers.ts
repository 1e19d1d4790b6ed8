/**
 * RDAP servers by the top-level domains that they answer for, as IANA's bootstrap file (https://data.iana.org/rdap/dns.json) named them on 2025-11-06:
 * every country code of that file and its most used generic names. It is used only until the file itself has been read, so it is not complete.
 */
const OF_IANA: Readonly<Record<string, string>> = {
  'https://rdap.verisign.com/com/v1/': 'com',
  'https://rdap.verisign.com/net/v1/': 'net',
  'https://rdap.publicinterestregistry.org/rdap/': 'org',
  'https://rdap.identitydigital.services/rdap/': 'info mobi pro live life world today asia travel aero ai bm mu',
  'https://rdap.nic.biz/': 'biz',
  'https://tld-rdap.verisign.com/name/v1/': 'name',
  'https://rdap.centralnic.com/xyz/': 'xyz',
  'https://rdap.centralnic.com/online/': 'online',
  'https://rdap.centralnic.com/site/': 'site',
  'https://rdap.gmoregistry.net/rdap/': 'shop',
  'https://rdap.centralnic.com/store/': 'store',
  'https://rdap.zdnsgtld.com/top/': 'top',
  'https://pubapi.registry.google/rdap/': 'app dev page new',
  'https://rdap.registry.cloud/rdap/': 'cloud',
  'https://rdap.centralnic.com/tech/': 'tech',
  'https://rdap.nic.club/': 'club',
  'https://rdap.nic.vip/': 'vip',
  'https://rdap.centralnic.com/icu/': 'icu',
  'https://rdap.centralnic.com/fun/': 'fun',
  'https://rdap.centralnic.com/space/': 'space',
  'https://rdap.centralnic.com/website/': 'website',
  'https://rdap.tucowsregistry.net/rdap/': 'link click',
  'https://rdap.blog.fury.ca/rdap/': 'blog',
  'https://rdap.centralnic.com/art/': 'art',
  'https://rdap.flexireg.net/': 'moscow',
  'https://rdap.centralnic.com/london/': 'london',
  'https://rdap.nic.berlin/v1/': 'berlin',
  'https://rdap.nic.paris/': 'paris',
  'https://rdap.nic.cat/': 'cat',
  'https://rdap.nominet.uk/jobs/': 'jobs',
  'https://rdap.nic.tel/': 'tel',
  'https://rdap.registry.coop/rdap/': 'coop',
  'https://rdap.nic.museum/': 'museum',
  'https://rdap.iana.org/': 'int',
  'https://rdap.eco.fury.ca/rdap/': 'eco',
  'https://rdap.nic.bank/': 'bank',
  'https://api.rdap.nic.xn--p1acf/': 'xn--p1acf',
  'https://rdap.nic.ad/': 'ad',
  'https://rdap.nic.ar/': 'ar',
  'https://rdap.registro.br/': 'br',
  'https://rdap.ca.fury.ca/rdap/': 'ca',
  'https://tld-rdap.verisign.com/cc/v1/': 'cc',
  'https://rdap.nic.cm/': 'cm',
  'https://rdap.nic.cr/': 'cr',
  'https://rdap.nic.cv/': 'cv',
  'https://rdap.nic.cx/': 'cx',
  'https://rdap.nic.cz/': 'cz',
  'https://rdap.registry.ec/': 'ec',
  'https://rdap.fi/rdap/rdap/': 'fi',
  'https://www.rdap.fj/': 'fj',
  'https://rdap.centralnic.com/fm/': 'fm',
  'https://rdap.centralnic.com/fo/': 'fo',
  'https://rdap.nic.fr/': 'fr',
  'https://rdap.centralnic.com/gd/': 'gd',
  'https://rdap.nic.gs/': 'gs',
  'https://rdap.registry.gy/': 'gy',
  'https://rdap.nic.hn/': 'hn',
  'https://rdap.nic.ht/': 'ht',
  'https://rdap.pandi.id/rdap/': 'id',
  'https://rdap.nixiregistry.in/rdap/': 'in',
  'https://rdap.isnic.is/rdap/': 'is',
  'https://rdap.kenic.or.ke/': 'ke',
  'http://rdap.cctld.kg/': 'kg',
  'https://whois.kyregistry.ky/rdap/': 'ky',
  'https://rdap.lbdr.org.lb/': 'lb',
  'https://rdap.nic.ly/': 'ly',
  'http://rdap.nic.mg/': 'mg',
  'https://rdap.nic.ml/': 'ml',
  'https://rdap.nic.ms/': 'ms',
  'https://keetmans.omadhina.co.na/': 'na',
  'https://rdap.nic.nf/': 'nf',
  'https://rdap.sidn.nl/': 'nl',
  'https://rdap.norid.no/': 'no',
  'https://rdap.nic.pg/': 'pg',
  'https://rdap.dns.pl/': 'pl',
  'https://rdap.nic.pm/': 'pm',
  'https://rdap.nominet.uk/pn/': 'pn',
  'https://rdap.centralnic.com/pw/': 'pw',
  'https://rdap.nic.re/': 're',
  'https://rdap.ricta.org.rw/': 'rw',
  'https://rdap.nic.sd/': 'sd',
  'https://rdap.register.si/': 'si',
  'https://whois.sr/rdap/': 'sr',
  'https://rdap.nic.ss/': 'ss',
  'https://rdap.nic.tf/': 'tf',
  'https://rdap.thains.co.th/': 'th',
  'https://rdap.tonicregistry.to/rdap/': 'to',
  'https://rdap.nic.tv/': 'tv',
  'https://ccrdap.twnic.tw/tw/': 'tw',
  'https://whois.tznic.or.tz/rdap/': 'tz',
  'https://rdap.hostmaster.ua/': 'ua',
  'https://rdap.nominet.uk/uk/': 'uk',
  'https://rdap.cctld.uz/': 'uz',
  'https://rdap.centralnic.com/vg/': 'vg',
  'https://rdap.nic.vi/': 'vi',
  'https://rdap.nic.wf/': 'wf',
  'https://rdap.y.net.ye/': 'ye',
  'https://rdap.nic.yt/': 'yt',
  'https://rdap.nic.zm/': 'zm',
};

/**
 * Registries that answer RDAP but are not in IANA's file (lists of the whoisit project, 2026-01, and of case/rdap-cctld-ts, 2025-11).
 * They may no longer be responsible, so "no such name" from them proves nothing.
 */
const UNLISTED: Readonly<Record<string, string>> = {
  'https://rdap.identitydigital.services/rdap/': 'ac ag bz io lc me mn pr sc sh vc',
  'https://rdap.centralnic.com/bh/': 'bh',
  'https://rdap.centralnic.com/gl/': 'gl',
  'https://rdap.nic.ch/': 'ch',
  'https://rdap.nic.li/': 'li',
  'https://rdap.registry.co/co/': 'co',
  'https://rdap.denic.de/': 'de',
  'https://rdap.mynic.my/rdap/': 'my',
  'https://rdap.nic.us/': 'us',
};

/** Base URL by top-level domain. */
export type ServersByTld = ReadonlyMap<string, string>;

/** The shipped copy of IANA's list. */
export const SHIPPED_SERVERS: ServersByTld = invert(OF_IANA);

/** Servers beside IANA's list. */
export const UNLISTED_SERVERS: ServersByTld = invert(UNLISTED);

function invert(servers: Readonly<Record<string, string>>): ServersByTld {
  return new Map(Object.entries(servers).flatMap(([url, tlds]) => tlds.split(' ').map((tld) => [tld, url] as const)));
}
