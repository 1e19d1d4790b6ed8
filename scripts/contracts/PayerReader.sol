// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IAuthorizations {
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);

    function balanceOf(address account) external view returns (uint256);
}

/// Reads many payers in one call. It is never deployed: its creation code runs inside an `eth_call` without `to`,
/// and what it returns as the code of a contract is the answer: the block's number, then one word a payer in the order of the question.
/// The word's last byte: 1 the token answered both questions (without it the rest says nothing), 2 the authorization is used or
/// cancelled, 4 the payer has code. The 31 bytes before it: the balance, or all ones if it is larger.
/// The first byte is thus never 0xEF, which no code may begin with (EIP-3541).
contract PayerReader {
    struct Payer {
        address account;
        bytes32 nonce;
    }

    /// Each question's own gas, so that a token which burns all of it for one payer leaves the others theirs.
    /// FiatToken behind its proxy takes about 10,000; 150 payers who all burn it stay within 30M.
    uint256 private constant QUESTION_GAS = 90_000;
    uint256 private constant LARGEST_BALANCE = type(uint248).max;

    constructor(address token, Payer[] memory payers) {
        uint256[] memory words = new uint256[](payers.length + 1);
        words[0] = block.number;
        for (uint256 i = 0; i < payers.length; i++) {
            words[i + 1] = _read(token, payers[i]);
        }
        assembly ("memory-safe") {
            return(add(words, 0x20), mul(mload(words), 0x20))
        }
    }

    function _read(address token, Payer memory payer) private view returns (uint256 word) {
        (bool knowsState, uint256 used) = _ask(
            token,
            abi.encodeCall(IAuthorizations.authorizationState, (payer.account, payer.nonce))
        );
        (bool knowsBalance, uint256 balance) = _ask(token, abi.encodeCall(IAuthorizations.balanceOf, (payer.account)));
        word = (balance > LARGEST_BALANCE ? LARGEST_BALANCE : balance) << 8;
        if (knowsState && knowsBalance) word |= 1;
        if (used != 0) word |= 2;
        if (payer.account.code.length != 0) word |= 4;
    }

    /// A question that fails, or whose answer is shorter than a word, answers nothing; it never ends the call.
    function _ask(address token, bytes memory question) private view returns (bool answered, uint256 answer) {
        assembly ("memory-safe") {
            answered := staticcall(QUESTION_GAS, token, add(question, 0x20), mload(question), 0x00, 0x20)
            answered := and(answered, gt(returndatasize(), 0x1f))
            if answered {
                answer := mload(0x00)
            }
        }
    }
}
