import secp256k1 from 'secp256k1';
import { recoverKey } from '../world/chain/recovered-keys.ts';

/** What the service gets for `secp256k1`: the real thing, which recovers each key once for the service and the world together. */
export default { ...secp256k1, ecdsaRecover: recoverKey };
