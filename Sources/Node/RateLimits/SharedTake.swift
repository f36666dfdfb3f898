import WakuCrypto

/// What a node has taken from a limit that several nodes count together, for the others: ``RateLimit/isTooLowToDivide``.
///
/// The others are told of it at once, and count it themselves. So a sender who is known to one node can't have the same again from another, but
/// for messages that two nodes handle within the milliseconds that telling takes.
package struct SharedTake: Hashable, Sendable {
    package let limit: Admission.Refusal
    /// Of the sender, registrant or device: a keyed hash, since others than nodes may hear of it.
    package let key: [UInt8]
    package let cost: Int

    package init(_ limit: Admission.Refusal, key: [UInt8], cost: Int) {
        self.limit = limit
        self.key = key
        self.cost = cost
    }
}

extension SharedTake {
    /// Without the cost: a limit's name in options, and the key in hexadecimal digits, `requests-by-sender:6b1f…`.
    package var name: String { (Limits.name(of: limit) ?? "") + ":" + hexString(key) }

    /// nil for a limit that this release does not have.
    package init?(name: String, cost: Int) {
        let parts = name.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let limit = Limits.ratesByRefusal.keys.first(where: { Limits.name(of: $0) == String(parts[0]) }),
            let key = bytes(hex: parts[1]), !key.isEmpty, cost > 0
        else { return nil }
        self.init(limit, key: key, cost: cost)
    }
}

/// How a node's limits take part in what several nodes count together.
package struct TakeExchange: Sendable {
    /// The name of a key of a limit: the same at every node of an identity, and nobody else can tell the key from it.
    package let name: @Sendable (Admission.Refusal, [UInt8]) -> [UInt8]
    package let publish: @Sendable ([SharedTake]) -> Void

    /// - Parameters:
    ///   - hash: of some bytes, for a purpose.
    ///   - tell: gets names of takes with their costs.
    package init(hash: @escaping @Sendable ([UInt8], _ purpose: String) -> [UInt8], tell: @escaping @Sendable ([(String, Int)]) -> Void) {
        name = { limit, key in Array(hash(key, "limit " + limit.rawValue).prefix(Self.nameByteCount)) }
        publish = { takes in tell(takes.map { ($0.name, $0.cost) }) }
    }

    private static let nameByteCount = 16
}
