"""Buys one call in USDC over x402, and prints the answer and its transaction: python3 buy.py [PATH or URL]

It needs Debian's python3-pycryptodome and python3-ecdsa (elsewhere: pip install pycryptodomex ecdsa). It pays at most
MAX_USDC, 0.005 by default. It keeps the signed payment in a file, and presents the same one when it is run again.
"""
import base64, decimal, hashlib, json, os, secrets, sys, time, urllib.error, urllib.parse, urllib.request
from Cryptodome.Hash import keccak
from ecdsa import SECP256k1, SigningKey, VerifyingKey

NETWORK, USDC = 'eip155:5042', '0x3600000000000000000000000000000000000000'
DOMAIN = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'
TERMS = 'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce'
if missing := [name for name in ('BUYER_PRIVATE_KEY', 'ORIGIN') if not os.environ.get(name)]:
    sys.exit(f'set {" and ".join(missing)}; npm run demo prints both')
key = SigningKey.from_string(bytes.fromhex(os.environ['BUYER_PRIVATE_KEY'].removeprefix('0x')), SECP256k1)
url = urllib.parse.urljoin(os.environ['ORIGIN'], (sys.argv[1:] or [f'/v1/paid/chain/wallet?address={USDC}'])[0])
most = decimal.Decimal(os.environ.get('MAX_USDC', '0.005'))

def ask(headers):
    try: answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=120)
    except urllib.error.HTTPError as error: answer = error
    except OSError as error:
        sys.exit(f'{url}: {error}\nrun the same command again: it never signs a second payment')
    return answer.status, answer.headers, answer.read().decode()

def hashed(*parts): return keccak.new(digest_bits=256, data=b''.join(parts)).digest()
def word(value): return int(str(value), 0).to_bytes(32, 'big')
def low_s(r, s, order): return word(r) + word(min(s, order - s))  # Tokens refuse the other half (EIP-2).

def sign(offer):
    public, now = key.verifying_key.to_string(), int(time.time())
    terms = {'from': '0x' + hashed(public)[-20:].hex(), 'to': offer['payTo'], 'value': offer['amount'],
             'validAfter': str(now - 600), 'validBefore': str(now + 600), 'nonce': '0x' + secrets.token_hex(32)}
    token = [hashed(offer['extra'][name].encode()) for name in ('name', 'version')]
    domain = hashed(hashed(DOMAIN.encode()), *token, word(NETWORK.split(':')[1]), word(USDC))
    transfer = hashed(hashed(f'TransferWithAuthorization({TERMS})'.encode()), *map(word, terms.values()))
    digest = hashed(b'\x19\x01', domain, transfer)
    signature = key.sign_digest_deterministic(digest, hashfunc=hashlib.sha256, sigencode=low_s)
    signers = VerifyingKey.from_public_key_recovery_with_digest(signature, digest, SECP256k1)
    signature += bytes([27 + [signer.to_string() for signer in signers].index(public)])
    secret = {'info': {'id': secrets.token_hex(16)}}  # It brings the answer again, from any address.
    payload = {'signature': '0x' + signature.hex(), 'authorization': terms}
    payment = {'x402Version': 2, 'accepted': offer, 'payload': payload, 'extensions': {'payment-identifier': secret}}
    return base64.b64encode(json.dumps(payment).encode()).decode()

file = f'x402-payment-{hashed(url.encode(), key.verifying_key.to_string()).hex()[:16]}'
if not os.path.exists(file):
    status, headers, body = ask({})
    if status != 402 or 'would be a 400' in body: sys.exit(f'nothing was signed: the answer is {status}: {body}')
    asked = json.loads(base64.b64decode(headers['PAYMENT-REQUIRED']))['accepts']
    offers = [o for o in asked if (o['scheme'], o['network'], o['asset'].lower()) == ('exact', NETWORK, USDC)
              and o.get('extra', {}).get('assetTransferMethod') == 'eip3009' and int(o['amount']) <= most * 10**6]
    if not offers: sys.exit(f'nothing was signed: no offer is in USDC on {NETWORK} and at most {most} USDC: {body}')
    payment = sign(offers[0])
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), 'w') as kept: kept.write(payment)
status, headers, body = ask({'PAYMENT-SIGNATURE': open(file).read()})
say = 'nothing was charged: you may' if '"charged":false' in body else 'run it again; only to sign another payment,'
if status != 200: sys.exit(f'{status}: {body}\n{say} delete {file}')
print(body, json.loads(base64.b64decode(headers['PAYMENT-RESPONSE']))['transaction'], sep='\n')
print(f'run again, it prints the same answer; delete {file} to buy another', file=sys.stderr)
