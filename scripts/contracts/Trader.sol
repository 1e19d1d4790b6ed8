// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface ICoin {
    function transfer(address to, uint256 value) external returns (bool);
}

interface IPairV2 {
    function token0() external view returns (address);
    function token1() external view returns (address);
    function getReserves() external view returns (uint112 reserve0, uint112 reserve1, uint32 stamp);
    function mint(address to) external returns (uint256 liquidity);
    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata data) external;
}

interface IPoolV3 {
    function token0() external view returns (address);
    function token1() external view returns (address);
    function mint(address to, int24 lower, int24 upper, uint128 liquidity, bytes calldata data) external;
    function swap(address to, bool zeroForOne, int256 amount, uint160 priceLimit, bytes calldata data) external;
}

/// A v4 pool has no address; its key identifies it.
struct PoolKey {
    address currency0;
    address currency1;
    uint24 fee;
    int24 tickSpacing;
    address hooks;
}

struct ModifyLiquidityParams {
    int24 lower;
    int24 upper;
    int256 liquidity;
    bytes32 salt;
}

struct SwapParams {
    bool zeroForOne;
    int256 amount;
    uint160 priceLimit;
}

interface IPoolManagerV4 {
    function unlock(bytes calldata data) external returns (bytes memory);
    function modifyLiquidity(PoolKey calldata, ModifyLiquidityParams calldata, bytes calldata) external returns (int256, int256);
    function swap(PoolKey calldata, SwapParams calldata, bytes calldata) external returns (int256);
    function sync(address currency) external;
    function settle() external payable returns (uint256);
    function take(address currency, address to, uint256 amount) external;
}

/// Trades and provides liquidity with its own balances on Uniswap v2, v3 and v4; for traffic and tests.
/// Anyone may call it, and its callbacks trust every caller, because its tokens are worth nothing.
contract Trader {
    /// One inside each end of the price range. A swap that reaches the limit is filled in part instead of refused.
    uint160 private constant LOWEST_PRICE = 4295128740;
    uint160 private constant HIGHEST_PRICE = 1461446703485210103287273052203988822378723970341;

    receive() external payable {}

    function addV2(IPairV2 pair, uint256 amount0, uint256 amount1) external {
        _pay(pair.token0(), address(pair), amount0);
        _pay(pair.token1(), address(pair), amount1);
        pair.mint(address(this));
    }

    /// Sells exactly `amountIn`, by the constant product less 0.3 %.
    function swapV2(IPairV2 pair, bool zeroForOne, uint256 amountIn) external {
        (uint256 reserve0, uint256 reserve1, ) = pair.getReserves();
        (uint256 reserveIn, uint256 reserveOut) = zeroForOne ? (reserve0, reserve1) : (reserve1, reserve0);
        uint256 amountOut = (reserveOut * amountIn * 997) / (reserveIn * 1000 + amountIn * 997);
        _pay(zeroForOne ? pair.token0() : pair.token1(), address(pair), amountIn);
        pair.swap(zeroForOne ? 0 : amountOut, zeroForOne ? amountOut : 0, address(this), "");
    }

    function addV3(IPoolV3 pool, int24 lower, int24 upper, uint128 liquidity) external {
        pool.mint(address(this), lower, upper, liquidity, "");
    }

    /// Positive: sells exactly `amount`; negative: buys exactly that much.
    function swapV3(IPoolV3 pool, bool zeroForOne, int256 amount) external {
        pool.swap(address(this), zeroForOne, amount, zeroForOne ? LOWEST_PRICE : HIGHEST_PRICE, "");
    }

    function uniswapV3MintCallback(uint256 owed0, uint256 owed1, bytes calldata) external {
        if (owed0 > 0) _pay(IPoolV3(msg.sender).token0(), msg.sender, owed0);
        if (owed1 > 0) _pay(IPoolV3(msg.sender).token1(), msg.sender, owed1);
    }

    function uniswapV3SwapCallback(int256 delta0, int256 delta1, bytes calldata) external {
        if (delta0 > 0) _pay(IPoolV3(msg.sender).token0(), msg.sender, uint256(delta0));
        if (delta1 > 0) _pay(IPoolV3(msg.sender).token1(), msg.sender, uint256(delta1));
    }

    function addV4(IPoolManagerV4 manager, PoolKey calldata key, int24 lower, int24 upper, int256 liquidity) external {
        ModifyLiquidityParams memory params = ModifyLiquidityParams(lower, upper, liquidity, 0);
        manager.unlock(abi.encode(key, abi.encodeCall(manager.modifyLiquidity, (key, params, ""))));
    }

    /// Positive: sells exactly `amount`; negative: buys exactly that much. v4 itself uses the opposite signs.
    function swapV4(IPoolManagerV4 manager, PoolKey calldata key, bool zeroForOne, int256 amount) external {
        SwapParams memory params = SwapParams(zeroForOne, -amount, zeroForOne ? LOWEST_PRICE : HIGHEST_PRICE);
        manager.unlock(abi.encode(key, abi.encodeCall(manager.swap, (key, params, ""))));
    }

    /// Makes the call for which the pool manager was unlocked, then settles both balances. Each call returns its two deltas in its first word.
    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        (PoolKey memory key, bytes memory call) = abi.decode(data, (PoolKey, bytes));
        (bool success, bytes memory answer) = msg.sender.call(call);
        require(success, "Trader: refused by the pool manager");
        int256 deltas = abi.decode(answer, (int256));
        _square(IPoolManagerV4(msg.sender), key.currency0, deltas >> 128);
        _square(IPoolManagerV4(msg.sender), key.currency1, int128(deltas));
        return "";
    }

    function _square(IPoolManagerV4 manager, address currency, int256 delta) private {
        if (delta > 0) {
            manager.take(currency, address(this), uint256(delta));
        } else if (delta < 0 && currency == address(0)) {
            manager.settle{value: uint256(-delta)}();
        } else if (delta < 0) {
            manager.sync(currency);
            _pay(currency, address(manager), uint256(-delta));
            manager.settle();
        }
    }

    function _pay(address coin, address to, uint256 amount) private {
        require(ICoin(coin).transfer(to, amount), "Trader: transfer");
    }
}
