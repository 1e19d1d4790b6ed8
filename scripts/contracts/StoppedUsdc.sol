// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Usdc} from "./Usdc.sol";

/// USDC while its owner has paused it, or has blocklisted one account: put at the token's address by tests, over the same storage.
/// One storage slot holds the account; zero means that the token is paused for all.
contract StoppedUsdc is Usdc {
    /// Set by tests; far from the slots of the token itself.
    bytes32 private constant BLOCKED = keccak256("percall.test.blocked");

    function _transfer(address from, address to, uint256 value) internal override {
        address blocked;
        bytes32 slot = BLOCKED;
        assembly {
            blocked := sload(slot)
        }
        require(blocked != address(0), "Pausable: paused");
        require(from != blocked && to != blocked, "Blacklistable: account is blacklisted");
        super._transfer(from, to, value);
    }
}
