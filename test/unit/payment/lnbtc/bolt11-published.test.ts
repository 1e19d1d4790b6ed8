import { bech32 } from '@scure/base';
import { describe, expect, test } from 'vitest';
import {
  bytesField,
  encodeInvoice,
  integerField,
  type TaggedField,
} from '../../../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../../../src/payment/lightning/bolt11.ts';
import { BOLT11_KEY, BOLT11_PAYEE, reworded } from '../../../support/lightning/invoice.ts';

/** What most of BOLT11's examples have in common. */
const PAYMENT_HASH = '0001020304050607080900010203040506070809000102030405060708090102';
const LIST_HASH = '3925b6f67e2c340036ed12093dd44e0368df1b6ea26c53dbe4811f58fd5db8c1';
const CREATED_AT = 1_496_314_658;

/** BOLT11's examples, byte for byte: their checksums and the key that they recover prove the copy. */
const PUBLISHED = {
  coffee:
    'lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh',
  nonsense:
    'lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpquwpc4curk03c9wlrswe78q4eyqc7d8d0xqzpu9qrsgqhtjpauu9ur7fw2thcl4y9vfvh4m9wlfyz2gem29g5ghe2aak2pm3ps8fdhtceqsaagty2vph7utlgj48u0ged6a337aewvraedendscp573dxr',
  list: 'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqs9qrsgq7ea976txfraylvgzuxs8kgcw23ezlrszfnh8r6qtfpr6cxga50aj6txm9rxrydzd06dfeawfk6swupvz4erwnyutnjq7x39ymw6j38gp7ynn44',
  testnet:
    'lntb20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqfpp3x9et2e20v6pu37c5d9vax37wxq72un989qrsgqdj545axuxtnfemtpwkc45hx9d2ft7x04mt8q7y6t0k2dge9e7h8kpy9p34ytyslj3yu569aalz2xdk8xkd7ltxqld94u8h2esmsmacgpghe9k8',
  routes:
    'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqsfpp3qjmp7lwpagxun9pygexvgpjdc4jdj85fr9yq20q82gphp2nflc7jtzrcazrra7wwgzxqc8u7754cdlpfrmccae92qgzqvzq2ps8pqqqqqqpqqqqq9qqqvpeuqafqxu92d8lr6fvg0r5gv0heeeqgcrqlnm6jhphu9y00rrhy4grqszsvpcgpy9qqqqqqgqqqqq7qqzq9qrsgqdfjcdk6w3ak5pca9hwfwfh63zrrz06wwfya0ydlzpgzxkn5xagsqz7x9j4jwe7yj7vaf2k9lqsdk45kts2fd0fkr28am0u4w95tt2nsq76cqw0',
  p2sh: 'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqfppj3a24vwu6r8ejrss3axul8rxldph2q7z99qrsgqz6qsgww34xlatfj6e3sngrwfy3ytkt29d2qttr8qz2mnedfqysuqypgqex4haa2h8fx3wnypranf3pdwyluftwe680jjcfp438u82xqphf75ym',
  p2wpkh:
    'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqfppqw508d6qejxtdg4y5r3zarvary0c5xw7k9qrsgqt29a0wturnys2hhxpner2e3plp6jyj8qx7548zr2z7ptgjjc7hljm98xhjym0dg52sdrvqamxdezkmqg4gdrvwwnf0kv2jdfnl4xatsqmrnsse',
  p2wsh:
    'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqfp4qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q9qrsgq9vlvyj8cqvq6ggvpwd53jncp9nwc47xlrsnenq2zp70fq83qlgesn4u3uyf4tesfkkwwfg3qs54qe426hp3tz7z6sweqdjg05axsrjqp9yrrwc',
  pico: 'lnbc9678785340p1pwmna7lpp5gc3xfm08u9qy06djf8dfflhugl6p7lgza6dsjxq454gxhj9t7a0sd8dgfkx7cmtwd68yetpd5s9xar0wfjn5gpc8qhrsdfq24f5ggrxdaezqsnvda3kkum5wfjkzmfqf3jkgem9wgsyuctwdus9xgrcyqcjcgpzgfskx6eqf9hzqnteypzxz7fzypfhg6trddjhygrcyqezcgpzfysywmm5ypxxjemgw3hxjmn8yptk7untd9hxwg3q2d6xjcmtv4ezq7pqxgsxzmnyyqcjqmt0wfjjq6t5v4khxsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygsxqyjw5qcqp2rzjq0gxwkzc8w6323m55m4jyxcjwmy7stt9hwkwe2qxmy8zpsgg7jcuwz87fcqqeuqqqyqqqqlgqqqqn3qq9q9qrsgqrvgkpnmps664wgkp43l22qsgdw4ve24aca4nymnxddlnp8vh9v2sdxlu5ywdxefsfvm0fq3sesf08uf6q9a2ke0hc9j6z6wlxg5z5kqpu2v9wz',
  beans:
    'lnbc25m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5vdhkven9v5sxyetpdeessp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q5sqqqqqqqqqqqqqqqqsgq2a25dxl5hrntdtn6zvydt7d66hyzsyhqs4wdynavys42xgl6sgx9c4g7me86a27t07mdtfry458rtjr0v92cnmswpsjscgt2vcse3sgpz3uapa',
  metadata:
    'lnbc10m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdp9wpshjmt9de6zqmt9w3skgct5vysxjmnnd9jx2mq8q8a04uqsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q2gqqqqqqsgq7hf8he7ecf7n4ffphs6awl9t6676rrclv9ckg3d3ncn7fct63p6s365duk5wrk202cfy3aj5xnnp5gs3vrdvruverwwq7yzhkf5a3xqpd05wjc',
} as const;

/** Valid by BOLT11, but not for the scheme. */
const REFUSED = {
  donation:
    'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql',
  highS:
    'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap2r09nt4ndd0unm3z9u5t48y6ucv4r5sg7lk98c77ctvjczkspk5qprc90gx',
  withoutSecret:
    'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpuaztrnwngzn3kdzw5hydlzf03qdgm2hdq27cqv3agm2awhz5se903vruatfhq77w3ls4evs3ch9zw97j25emudupq63nyw24cg27h2rspfj9srp',
} as const;

/** Invalid by BOLT11. */
const INVALID = {
  checksum:
    'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpquwpc4curk03c9wlrswe78q4eyqc7d8d0xqzpuyk0sg5g70me25alkluzd2x62aysf2pyy8edtjeevuv4p2d5p76r4zkmneet7uvyakky2zr4cusd45tftc9c5fh0nnqpnl2jfll544esqchsrnt',
  unrecoverable:
    'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpusp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9qrsgqwgt7mcn5yqw3yx0w94pswkpq6j9uh6xfqqqtsk4tnarugeektd4hg5975x9am52rz4qskukxdmjemg92vvqz8nvmsye63r5ykel43pgz7zq0g2',
  short:
    'lnbc1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6na6hlh',
  multiplier:
    'lnbc2500x1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpusp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9qrsgqrrzc4cvfue4zp3hggxp47ag7xnrlr8vgcmkjxk3j5jqethnumgkpqp23z9jclu3v0a7e0aruz366e9wqdykw6dxhdzcjjhldxq0w6wgqcnu43j',
  subMillisatoshi:
    'lnbc2500000001p1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpusp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9qrsgq0lzc236j96a95uv0m3umg28gclm5lqxtqqwk32uuk4k6673k6n5kfvx3d2h8s295fad45fdhmusm8sjudfhlf6dcsxmfvkeywmjdkxcp99202x',
  withoutSecret:
    'lnbc20m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqs9qrsgq7ea976txfraylvgzuxs8kgcw23ezlrszfnh8r6qtfpr6cxga50aj6txm9rxrydzd06dfeawfk6swupvz4erwnyutnjq7x39ymw6j38gp49qdkj',
} as const;

/** Invalid for a BOLT11 payer, who must understand bit 100 or not pay. */
const FEATURE_100 =
  'lnbc25m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5vdhkven9v5sxyetpdeessp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q4psqqqqqqqqqqqqqqqqsgqtqyx5vggfcsll4wu246hz02kp85x4katwsk9639we5n5yngc3yhqkm35jnjw4len8vrnqnf5ejh0mzj9n3vz2px97evektfm2l6wqccp3y7372';

const hex = (value: Uint8Array | undefined) => value && Buffer.from(value).toString('hex');
const bytes = (value: string) => Buffer.from(value, 'hex');
const wordsOf = (invoice: string) => bech32.decode(invoice as `${string}1${string}`, false).words;
const same = (words: number[]) => words;
const secret = bytesField('s', Buffer.alloc(32, 0x11));

describe("BOLT11's valid examples", () => {
  test.each<[keyof typeof PUBLISHED, bigint, object]>([
    ['coffee', 250_000_000n, { expirySeconds: 60, hasDescription: true }],
    ['nonsense', 250_000_000n, { expirySeconds: 60, hasDescription: true }],
    ['list', 2_000_000_000n, {}],
    ['testnet', 2_000_000_000n, { currency: 'tb' }],
    ['routes', 2_000_000_000n, {}],
    ['p2sh', 2_000_000_000n, {}],
    ['p2wpkh', 2_000_000_000n, {}],
    ['p2wsh', 2_000_000_000n, {}],
    ['beans', 2_500_000_000n, { hasDescription: true }],
    ['metadata', 1_000_000_000n, { hasDescription: true }],
    [
      'pico',
      967_878_534n,
      {
        createdAt: 1_572_468_703,
        expirySeconds: 604_800,
        hasDescription: true,
        paymentHash: '462264ede7e14047e9b249da94fefc47f41f7d02ee9b091815a5506bc8abf75f',
      },
    ],
  ])('%s is read', (name, amountMsat, more) => {
    const invoice = decodeInvoice(PUBLISHED[name]);
    expect({
      ...invoice,
      paymentHash: hex(invoice?.paymentHash),
      descriptionHashes: invoice?.descriptionHashes.map(hex),
      payee: hex(invoice?.payee),
    }).toEqual({
      currency: 'bc',
      amountMsat,
      createdAt: CREATED_AT,
      expirySeconds: 3600,
      paymentHash: PAYMENT_HASH,
      descriptionHashes: 'hasDescription' in more ? [] : [LIST_HASH],
      hasDescription: false,
      payee: BOLT11_PAYEE,
      ...more,
    });
  });

  test('read the same in capitals', () => {
    expect(decodeInvoice(PUBLISHED.beans.toUpperCase())).toEqual(decodeInvoice(PUBLISHED.beans));
  });

  test.each(Object.entries(PUBLISHED))('%s is what our encoder signs, byte for byte', (_, published) => {
    const prefix = published.slice(0, published.lastIndexOf('1'));
    const createdAt = decodeInvoice(published)?.createdAt ?? Number.NaN;
    const parts = { prefix, amountMsat: null, createdAt, fields: [], tail: wordsOf(published).slice(7, -104) };
    expect(encodeInvoice(parts, BOLT11_KEY)).toBe(published);
  });

  test('the coffee is written from its documented fields', () => {
    const fields = [
      secret,
      bytesField('p', bytes(PAYMENT_HASH)),
      bytesField('d', Buffer.from('1 cup coffee')),
      integerField('x', 60),
      { tag: '9', words: [16, 8, 0] },
    ];
    const parts = { amountMsat: 250_000_000n, createdAt: CREATED_AT, fields };
    expect(encodeInvoice(parts, BOLT11_KEY)).toBe(PUBLISHED.coffee);
  });
});

describe("BOLT11's valid examples that the scheme refuses", () => {
  test.each(['donation', 'highS'] as const)('%s: without an amount', (name) => {
    expect(decodeInvoice(REFUSED[name])).toBeNull();
    expect(decodeInvoice(reworded(REFUSED[name], same, 'lnbc1m'))).not.toBeNull();
  });

  test('the coffee of earlier editions: without a payment secret', () => {
    expect(decodeInvoice(REFUSED.withoutSecret)).toBeNull();
    // Nothing else is wrong with it: these fields, signed by that key, are that text.
    const fields = [
      bytesField('p', bytes(PAYMENT_HASH)),
      bytesField('d', Buffer.from('1 cup coffee')),
      integerField('x', 60),
    ];
    const parts = { amountMsat: 250_000_000n, createdAt: CREATED_AT, fields };
    expect(encodeInvoice(parts, BOLT11_KEY)).toBe(REFUSED.withoutSecret);
    expect(decodeInvoice(encodeInvoice({ ...parts, fields: [...fields, secret] }, BOLT11_KEY))).not.toBeNull();
  });

  test('rebuilt: fields of a wrong length beside right ones, which a payer would skip', () => {
    const zeros = (tag: string, length: number): TaggedField => ({ tag, words: new Array<number>(length).fill(0) });
    const right = [bytesField('p', bytes(PAYMENT_HASH)), bytesField('d', Buffer.from('coffee beans')), secret];
    const skipped = [zeros('2', 4), { tag: 'f', words: [19, ...zeros('f', 32).words] }];
    const wrong = ['p', 'h', 's'].flatMap((tag) => [zeros(tag, 51), zeros(tag, 53)]);
    const decode = (fields: TaggedField[]) =>
      decodeInvoice(encodeInvoice({ amountMsat: 2_500_000_000n, createdAt: CREATED_AT, fields }, BOLT11_KEY));
    expect(hex(decode([...right, ...skipped])?.payee)).toBe(BOLT11_PAYEE);
    for (const field of [...wrong, zeros('n', 52), zeros('n', 54)]) {
      expect(decode([...right, ...skipped, field]), `${field.tag} of ${field.words.length}`).toBeNull();
    }
  });
});

describe("BOLT11's invalid examples", () => {
  test('a wrong checksum', () => {
    expect(decodeInvoice(INVALID.checksum)).toBeNull();
  });

  test('no separator', () => {
    expect(decodeInvoice(INVALID.checksum.slice('lnbc2500u1'.length))).toBeNull();
    expect(decodeInvoice(PUBLISHED.coffee.slice('lnbc2500u1'.length))).toBeNull();
  });

  test('mixed case', () => {
    expect(decodeInvoice(PUBLISHED.coffee.replace('lnbc2500u1', 'LNBC2500u1'))).toBeNull();
    expect(decodeInvoice(PUBLISHED.coffee.toUpperCase())).not.toBeNull();
  });

  test('a signature that recovers no key', () => {
    const { unrecoverable } = INVALID;
    expect(decodeInvoice(unrecoverable)).toBeNull();
    const other = wordsOf(PUBLISHED.coffee).slice(-104);
    expect(decodeInvoice(reworded(unrecoverable, (words) => [...words.slice(0, -104), ...other]))).not.toBeNull();
  });

  test('a string too short for a signature', () => {
    expect(decodeInvoice(INVALID.short)).toBeNull();
    expect(decodeInvoice(reworded(INVALID.short, same, 'lnbc1m'))).toBeNull();
  });

  test('an unknown multiplier', () => {
    expect(decodeInvoice(INVALID.multiplier)).toBeNull();
    expect(decodeInvoice(reworded(INVALID.multiplier, same, 'lnbc2500u'))).not.toBeNull();
  });

  test('less than a millisatoshi', () => {
    expect(decodeInvoice(INVALID.subMillisatoshi)).toBeNull();
    expect(decodeInvoice(reworded(INVALID.subMillisatoshi, same, 'lnbc2500000000p'))).not.toBeNull();
  });

  test('no payment secret', () => {
    expect(decodeInvoice(INVALID.withoutSecret)).toBeNull();
    const written = [16, 1, 20, ...secret.words];
    // With the secret back it is the valid example, whose signature it borrows.
    const whole = reworded(INVALID.withoutSecret, (words) => [...words.slice(0, 7), ...written, ...words.slice(7)]);
    expect(whole).toBe(PUBLISHED.list);
  });

  test('rebuilt: a named payee and a high s', () => {
    const fields = [secret, bytesField('n', bytes(BOLT11_PAYEE)), bytesField('p', bytes(PAYMENT_HASH))];
    const parts = { amountMsat: 250_000_000n, createdAt: CREATED_AT, fields };
    expect(decodeInvoice(encodeInvoice({ ...parts, highS: true }, BOLT11_KEY))).toBeNull();
    expect(hex(decodeInvoice(encodeInvoice(parts, BOLT11_KEY))?.payee)).toBe(BOLT11_PAYEE);
  });

  test('an unknown compulsory feature is none of ours: the payer judges it', () => {
    expect(hex(decodeInvoice(FEATURE_100)?.payee)).toBe(BOLT11_PAYEE);
  });
});
