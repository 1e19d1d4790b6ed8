// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Deployed at 0xff…fe, the address from which Arc itself logs every movement of USDC in 18 decimals.
/// Only the token may call it. Otherwise anyone could forge the system's log.
contract SystemLog {
    address private constant USDC = 0x3600000000000000000000000000000000000000;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function record(address from, address to, uint256 value) external {
        require(msg.sender == USDC, "SystemLog: only the token");
        emit Transfer(from, to, value);
    }
}
