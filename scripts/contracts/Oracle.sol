// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A price oracle with Chainlink's read interface, with a proxy's round ids: the phase is in the bits above the round's own 64.
/// Anyone may publish, because nothing here is worth anything.
contract Oracle {
    struct Round {
        int256 answer;
        uint256 updatedAt;
    }

    uint8 public immutable decimals;
    uint16 public immutable phaseId;
    string public constant description = "USYC / USD";

    Round[] private _rounds;

    constructor(uint8 decimals_, uint16 phaseId_, int256[] memory answers, uint256[] memory times) {
        decimals = decimals_;
        phaseId = phaseId_;
        for (uint256 i = 0; i < answers.length; i++) publish(answers[i], times[i]);
    }

    function publish(int256 answer, uint256 updatedAt) public {
        _rounds.push(Round(answer, updatedAt));
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return _read(uint64(_rounds.length));
    }

    function getRoundData(uint80 id) external view returns (uint80, int256, uint256, uint256, uint80) {
        require(id >> 64 == phaseId, "No data present");
        return _read(uint64(id));
    }

    function _read(uint64 number) private view returns (uint80, int256, uint256, uint256, uint80) {
        require(number > 0 && number <= _rounds.length, "No data present");
        Round storage round = _rounds[number - 1];
        uint80 id = (uint80(phaseId) << 64) | number;
        return (id, round.answer, round.updatedAt, round.updatedAt, id);
    }
}
