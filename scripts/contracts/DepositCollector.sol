// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IAuthorizedToken {
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
    function transfer(address to, uint256 value) external returns (bool);
}

/// Collects a channel's deposit by the payer's EIP-3009 authorization, as x402's `batch-settlement` scheme wants it: what the payer signs names
/// this contract as recipient, and the nonce binds the authorization to one channel. The settlement contract stands at a fixed address, so this
/// one has no constructor and no immutables either.
contract DepositCollector {
    address public constant x402BatchSettlement = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    error OnlyX402BatchSettlement();
    error SafeERC20FailedOperation(address token);

    function collect(
        address payer,
        address token,
        uint256 amount,
        bytes32 channelId,
        bytes calldata collectorData
    ) external {
        require(msg.sender == x402BatchSettlement, OnlyX402BatchSettlement());
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) = abi.decode(
            collectorData,
            (uint256, uint256, uint256, bytes)
        );
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        IAuthorizedToken(token).receiveWithAuthorization(
            payer,
            address(this),
            amount,
            validAfter,
            validBefore,
            nonce,
            signature
        );
        require(IAuthorizedToken(token).transfer(msg.sender, amount), SafeERC20FailedOperation(token));
    }
}
