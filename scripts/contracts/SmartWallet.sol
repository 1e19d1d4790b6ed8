// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A wallet that is a contract, for tests: one owner's key signs for it (ERC-1271) and controls it.
/// A change of the owner invalidates every earlier signature. Tests use this as a payer that withdraws its consent.
contract SmartWallet {
    address public owner;

    constructor(address firstOwner) payable {
        owner = firstOwner;
    }

    receive() external payable {}

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(digest, uint8(signature[64]), r, s);
        return signer != address(0) && signer == owner ? this.isValidSignature.selector : bytes4(0xffffffff);
    }

    function setOwner(address next) external {
        require(msg.sender == owner, "SmartWallet: only the owner");
        owner = next;
    }

    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory) {
        require(msg.sender == owner, "SmartWallet: only the owner");
        (bool success, bytes memory answer) = target.call{value: value}(data);
        require(success, "SmartWallet: call failed");
        return answer;
    }
}
