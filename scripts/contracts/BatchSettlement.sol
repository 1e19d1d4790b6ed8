// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
}

interface ICollector {
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external;
}

interface ISigner {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// The settlement contract of x402's `batch-settlement` scheme, as its binding for EVM chains describes it: payers escrow tokens in a channel,
/// sign cumulative vouchers, and the receiver records vouchers (claim) and is paid for all of its channels at once (settle).
/// The embedded network places this code at the scheme's canonical address. It has no constructor and no immutables, because it is placed by
/// code alone; everything that depends on the chain or on the address is computed. Storage has its own layout. What callers see is the
/// scheme's: functions, events, errors, the order of the checks, and the calls that do nothing.
contract BatchSettlement {
    struct ChannelConfig {
        address payer;
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct ChannelState {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct WithdrawalState {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct ReceiverState {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    mapping(bytes32 => ChannelState) public channels;
    mapping(bytes32 => WithdrawalState) public pendingWithdrawals;
    mapping(bytes32 => uint256) public refundNonce;
    mapping(address => mapping(address => ReceiverState)) public receivers;
    bool private transient entered;

    uint40 public constant MIN_WITHDRAW_DELAY = 900;
    uint40 public constant MAX_WITHDRAW_DELAY = 2_592_000;

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH =
        keccak256(
            "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
        );
    bytes32 public constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 public constant REFUND_TYPEHASH = keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 public constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 public constant CLAIM_BATCH_TYPEHASH =
        keccak256(
            "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
        );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    string private constant NAME = "x402 Batch Settlement";
    string private constant VERSION = "1";

    /// Half the order of secp256k1: above it a signature is the mirror image of another (EIP-2).
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    event ChannelCreated(bytes32 indexed channelId, ChannelConfig config);
    event ChannelClosed(bytes32 indexed channelId, ChannelConfig config);
    event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance);
    event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed);
    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);
    event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount);
    event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter);
    event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount);

    error InvalidChannel();
    error ZeroDeposit();
    error DepositOverflow();
    error InvalidSignature();
    error NotReceiverAuthorizer();
    error NotAuthorizedToClaim();
    error NotAuthorizedToRefund();
    error ClaimExceedsCeiling();
    error ClaimExceedsBalance();
    error WithdrawalAlreadyPending();
    error WithdrawalNotPending();
    error NotAuthorizedToFinalizeWithdraw();
    error WithdrawDelayNotElapsed();
    error NothingToWithdraw();
    error WithdrawAmountExceedsAvailable();
    error WithdrawDelayOutOfRange();
    error EmptyBatch();
    error DepositCollectionFailed();
    error InvalidCollector();
    error InvalidRefundNonce();
    error ZeroRefund();
    error ECDSAInvalidSignature();
    error ECDSAInvalidSignatureLength(uint256 length);
    error ECDSAInvalidSignatureS(bytes32 s);
    error ReentrancyGuardReentrantCall();
    error SafeERC20FailedOperation(address token);
    error FailedCall();

    modifier guarded() {
        require(!entered, ReentrancyGuardReentrantCall());
        entered = true;
        _;
        entered = false;
    }

    // Deposits

    function deposit(
        ChannelConfig calldata config,
        uint128 amount,
        address collector,
        bytes calldata collectorData
    ) external guarded {
        require(
            config.payer != address(0) &&
                config.receiver != address(0) &&
                config.receiverAuthorizer != address(0) &&
                config.token != address(0),
            InvalidChannel()
        );
        require(
            config.withdrawDelay >= MIN_WITHDRAW_DELAY && config.withdrawDelay <= MAX_WITHDRAW_DELAY,
            WithdrawDelayOutOfRange()
        );
        require(amount != 0, ZeroDeposit());
        require(collector != address(0), InvalidCollector());
        bytes32 channelId = getChannelId(config);
        ChannelState storage channel = channels[channelId];
        require(amount <= type(uint128).max - channel.balance, DepositOverflow());
        channel.balance += amount;
        IToken token = IToken(config.token);
        uint256 before = token.balanceOf(address(this));
        ICollector(collector).collect(config.payer, config.token, amount, channelId, collectorData);
        require(token.balanceOf(address(this)) == before + amount, DepositCollectionFailed());
        if (channel.balance == amount && channel.totalClaimed == 0) emit ChannelCreated(channelId, config);
        emit Deposited(channelId, msg.sender, amount, channel.balance);
    }

    // Claims

    function claim(VoucherClaim[] calldata claims) external guarded {
        require(claims.length != 0, EmptyBatch());
        for (uint256 i = 0; i < claims.length; i++) {
            ChannelConfig calldata config = claims[i].voucher.channel;
            require(msg.sender == config.receiver || msg.sender == config.receiverAuthorizer, NotAuthorizedToClaim());
        }
        bytes32 separator = domainSeparator();
        for (uint256 i = 0; i < claims.length; i++)
            _claim(claims[i], _typed(separator, _hashConfig(claims[i].voucher.channel)), separator);
    }

    function claimWithSignature(VoucherClaim[] calldata claims, bytes calldata signature) external guarded {
        require(claims.length != 0, EmptyBatch());
        address authorizer = claims[0].voucher.channel.receiverAuthorizer;
        bytes32 separator = domainSeparator();
        bytes32[] memory ids = new bytes32[](claims.length);
        bytes32[] memory entries = new bytes32[](claims.length);
        for (uint256 i = 0; i < claims.length; i++) {
            require(claims[i].voucher.channel.receiverAuthorizer == authorizer, NotReceiverAuthorizer());
            ids[i] = _typed(separator, _hashConfig(claims[i].voucher.channel));
            entries[i] = _hashEntry(ids[i], claims[i]);
        }
        bytes32 digest = _typed(separator, _hashBatch(entries));
        require(_signedBy(authorizer, digest, signature), InvalidSignature());
        for (uint256 i = 0; i < claims.length; i++) _claim(claims[i], ids[i], separator);
    }

    /// A row that records nothing new is passed over without a look at its signature.
    function _claim(VoucherClaim calldata row, bytes32 channelId, bytes32 separator) private {
        ChannelState storage channel = channels[channelId];
        uint128 recorded = channel.totalClaimed;
        if (row.totalClaimed <= recorded) return;
        require(row.totalClaimed <= row.voucher.maxClaimableAmount, ClaimExceedsCeiling());
        require(row.totalClaimed <= channel.balance, ClaimExceedsBalance());
        _requireVoucher(row, _typed(separator, _hashVoucher(channelId, row.voucher.maxClaimableAmount)));
        uint128 added = row.totalClaimed - recorded;
        channel.totalClaimed = row.totalClaimed;
        receivers[row.voucher.channel.receiver][row.voucher.channel.token].totalClaimed += added;
        emit Claimed(channelId, msg.sender, added, row.totalClaimed);
    }

    /// A channel with a payer's authorizer takes that key's signatures alone; without one the payer signs, by key or as a contract.
    function _requireVoucher(VoucherClaim calldata row, bytes32 digest) private view {
        ChannelConfig calldata config = row.voucher.channel;
        bool valid = config.payerAuthorizer == address(0)
            ? _signedBy(config.payer, digest, row.signature)
            : _recover(digest, row.signature) == config.payerAuthorizer;
        require(valid, InvalidSignature());
    }

    function settle(address receiver, address token) external guarded {
        ReceiverState storage state = receivers[receiver][token];
        uint128 due = state.totalClaimed - state.totalSettled;
        if (due == 0) return;
        state.totalSettled = state.totalClaimed;
        emit Settled(receiver, token, msg.sender, due);
        _pay(token, receiver, due);
    }

    // Refunds

    function refund(ChannelConfig calldata config, uint128 amount) external guarded {
        require(msg.sender == config.receiver || msg.sender == config.receiverAuthorizer, NotAuthorizedToRefund());
        _refund(getChannelId(config), config, amount);
    }

    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata signature
    ) external guarded {
        bytes32 channelId = getChannelId(config);
        require(nonce == refundNonce[channelId], InvalidRefundNonce());
        require(
            _signedBy(config.receiverAuthorizer, getRefundDigest(channelId, nonce, amount), signature),
            InvalidSignature()
        );
        _refund(channelId, config, amount);
    }

    /// The nonce moves even where nothing is left to refund.
    function _refund(bytes32 channelId, ChannelConfig calldata config, uint128 amount) private {
        require(amount != 0, ZeroRefund());
        refundNonce[channelId] += 1;
        ChannelState storage channel = channels[channelId];
        uint128 refunded = _least(amount, channel.balance - channel.totalClaimed);
        if (refunded == 0) return;
        channel.balance -= refunded;
        WithdrawalState storage pending = pendingWithdrawals[channelId];
        if (refunded >= pending.amount) delete pendingWithdrawals[channelId];
        else pending.amount -= refunded;
        emit Refunded(channelId, msg.sender, refunded);
        _noteClosed(channelId, channel, config);
        _pay(config.token, config.payer, refunded);
    }

    // Withdrawals

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external guarded {
        require(_isPayer(config), InvalidChannel());
        require(amount != 0, NothingToWithdraw());
        bytes32 channelId = getChannelId(config);
        require(pendingWithdrawals[channelId].initiatedAt == 0, WithdrawalAlreadyPending());
        ChannelState storage channel = channels[channelId];
        require(amount <= channel.balance - channel.totalClaimed, WithdrawAmountExceedsAvailable());
        pendingWithdrawals[channelId] = WithdrawalState(amount, uint40(block.timestamp));
        emit WithdrawInitiated(channelId, amount, uint40(block.timestamp) + config.withdrawDelay);
    }

    function finalizeWithdraw(ChannelConfig calldata config) external guarded {
        require(_isPayer(config), NotAuthorizedToFinalizeWithdraw());
        bytes32 channelId = getChannelId(config);
        WithdrawalState memory pending = pendingWithdrawals[channelId];
        require(pending.initiatedAt != 0, WithdrawalNotPending());
        require(block.timestamp >= uint256(pending.initiatedAt) + config.withdrawDelay, WithdrawDelayNotElapsed());
        delete pendingWithdrawals[channelId];
        ChannelState storage channel = channels[channelId];
        uint128 amount = _least(pending.amount, channel.balance - channel.totalClaimed);
        channel.balance -= amount;
        emit WithdrawFinalized(channelId, msg.sender, amount);
        _noteClosed(channelId, channel, config);
        if (amount != 0) _pay(config.token, config.payer, amount);
    }

    function multicall(bytes[] calldata calls) external returns (bytes[] memory answers) {
        answers = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory answer) = address(this).delegatecall(calls[i]);
            if (!success) {
                require(answer.length != 0, FailedCall());
                assembly {
                    revert(add(answer, 0x20), mload(answer))
                }
            }
            answers[i] = answer;
        }
    }

    // Digests

    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (hex"0f", NAME, VERSION, block.chainid, address(this), bytes32(0), new uint256[](0));
    }

    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return _typed(domainSeparator(), _hashConfig(config));
    }

    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) external view returns (bytes32) {
        return _typed(domainSeparator(), _hashVoucher(channelId, maxClaimableAmount));
    }

    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return _typed(domainSeparator(), keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    function getClaimBatchDigest(VoucherClaim[] calldata claims) external view returns (bytes32) {
        bytes32 separator = domainSeparator();
        bytes32[] memory entries = new bytes32[](claims.length);
        for (uint256 i = 0; i < claims.length; i++)
            entries[i] = _hashEntry(_typed(separator, _hashConfig(claims[i].voucher.channel)), claims[i]);
        return _typed(separator, _hashBatch(entries));
    }

    function domainSeparator() private view returns (bytes32) {
        return
            keccak256(
                abi.encode(DOMAIN_TYPEHASH, keccak256(bytes(NAME)), keccak256(bytes(VERSION)), block.chainid, address(this))
            );
    }

    function _typed(bytes32 separator, bytes32 structHash) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", separator, structHash));
    }

    function _hashConfig(ChannelConfig calldata config) private pure returns (bytes32) {
        return keccak256(abi.encode(CHANNEL_CONFIG_TYPEHASH, config));
    }

    function _hashVoucher(bytes32 channelId, uint128 maxClaimableAmount) private pure returns (bytes32) {
        return keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount));
    }

    function _hashEntry(bytes32 channelId, VoucherClaim calldata row) private pure returns (bytes32) {
        return
            keccak256(abi.encode(CLAIM_ENTRY_TYPEHASH, channelId, row.voucher.maxClaimableAmount, row.totalClaimed));
    }

    function _hashBatch(bytes32[] memory entries) private pure returns (bytes32) {
        return keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(abi.encodePacked(entries))));
    }

    // Signatures and payments

    /// By key for an account without code, by ERC-1271 for one with code.
    function _signedBy(address signer, bytes32 digest, bytes calldata signature) private view returns (bool) {
        if (signer.code.length == 0) {
            (address recovered, ) = _tryRecover(digest, signature);
            return recovered != address(0) && recovered == signer;
        }
        (bool success, bytes memory answer) = signer.staticcall(
            abi.encodeCall(ISigner.isValidSignature, (digest, signature))
        );
        return
            success &&
            answer.length >= 32 &&
            abi.decode(answer, (bytes32)) == bytes32(ISigner.isValidSignature.selector);
    }

    function _recover(bytes32 digest, bytes calldata signature) private pure returns (address signer) {
        require(signature.length == 65, ECDSAInvalidSignatureLength(signature.length));
        bytes32 s;
        (signer, s) = _tryRecover(digest, signature);
        require(uint256(s) <= HALF_ORDER, ECDSAInvalidSignatureS(s));
        require(signer != address(0), ECDSAInvalidSignature());
    }

    /// The zero address for a signature of another form. `v` must be 27 or 28: the precompile takes no other.
    function _tryRecover(bytes32 digest, bytes calldata signature) private pure returns (address signer, bytes32 s) {
        if (signature.length != 65) return (address(0), bytes32(0));
        s = bytes32(signature[32:64]);
        if (uint256(s) > HALF_ORDER) return (address(0), s);
        signer = ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), s);
    }

    function _pay(address token, address to, uint256 amount) private {
        (bool success, bytes memory answer) = token.call(abi.encodeCall(IToken.transfer, (to, amount)));
        bool paid = success && (answer.length == 0 ? token.code.length != 0 : abi.decode(answer, (bool)));
        require(paid, SafeERC20FailedOperation(token));
    }

    function _noteClosed(bytes32 channelId, ChannelState storage channel, ChannelConfig calldata config) private {
        if (channel.balance == 0 && channel.totalClaimed == 0) emit ChannelClosed(channelId, config);
    }

    function _isPayer(ChannelConfig calldata config) private view returns (bool) {
        return msg.sender == config.payer || (msg.sender == config.payerAuthorizer && msg.sender != address(0));
    }

    function _least(uint128 a, uint128 b) private pure returns (uint128) {
        return a < b ? a : b;
    }
}
