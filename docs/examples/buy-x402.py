# Buys a call with the official package: pip install 'x402[evm,requests]'
import os, eth_account, x402, x402.http
from x402.http.clients import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import ExactEvmScheme
usdc, account = '0x3600000000000000000000000000000000000000', eth_account.Account.from_key(os.environ['BUYER_PRIVATE_KEY'])
client = x402.x402ClientSync().register('eip155:5042', ExactEvmScheme(EthAccountSigner(account)))
client.register_policy(lambda version, offers: [offer for offer in offers if offer.asset == usdc and int(offer.amount) <= 5000])
answer = x402_requests(client).get(os.environ['ORIGIN'] + '/v1/paid/chain/wallet?address=' + usdc)
print(answer.json(), x402.http.x402HTTPClientSync(client).get_payment_settle_response(answer.headers.get).transaction)
