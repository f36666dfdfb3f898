import WakuCrypto

/// Usage of a limit that several nodes count together, as reported to the other nodes: ``RateLimit/isTooLowToDivide``.
///
/// It is reported at once and counted by each node, so a sender cannot use the limit at one node and again at another, except with messages
/// that two nodes handle within the milliseconds of the report.
package struct SharedLimitUsage: Hashable, Sendable {
    package let limit: RateLimitTable.Refusal
    /// A keyed hash of the sender, registrant or device, because reports may be visible outside the nodes.
    package let key: [UInt8]
    package let cost: Int

    package init(_ limit: RateLimitTable.Refusal, key: [UInt8], cost: Int) {
        self.limit = limit
        self.key = key
        self.cost = cost
    }
}

extension SharedLimitUsage {
    /// The limit's option name and the key in hexadecimal digits, without the cost: `requests-by-sender:6b1f…`.
    package var name: String { limit.optionName + ":" + hexString(key) }

    /// Returns nil for a malformed name, or a limit unknown to this release.
    package init?(name: String, cost: Int) {
        let parts = name.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let limit = Limits.rates.first(where: { $0.limit.optionName == parts[0] })?.limit,
            let key = bytes(hex: parts[1]), !key.isEmpty, cost > 0
        else { return nil }
        self.init(limit, key: key, cost: cost)
    }
}

/// Connects the limits of a node to the usage reports between nodes.
package struct LimitUsageExchange: Sendable {
    /// The keyed hash of a limit's key, 16 bytes: equal at all nodes with the same identity, and opaque to anyone else.
    package let name: @Sendable (RateLimitTable.Refusal, [UInt8]) -> [UInt8]
    package let publish: @Sendable ([SharedLimitUsage]) -> Void

    /// - Parameters:
    ///   - hash: computes a keyed hash of some bytes for a purpose.
    ///   - publish: sends the names and costs to the other nodes.
    package init(hash: @escaping @Sendable ([UInt8], _ purpose: String) -> [UInt8], publish: @escaping @Sendable ([(String, Int)]) -> Void)
    {
        name = { limit, key in Array(hash(key, "limit " + limit.rawValue).prefix(Self.nameByteCount)) }
        self.publish = { usage in publish(usage.map { ($0.name, $0.cost) }) }
    }

    private static let nameByteCount = 16
}
