/// What a message costs at the least: the bare library calls that the protocol and its guarantees demand, and nothing between them.
///
/// Sizes are those of ``Primitive``, which real messages exceed; small hashes of answers and the parsing of envelopes are left out. So this
/// errs on the low side.
public struct Floor: Sendable {
    public struct Item: Sendable {
        public let primitive: Primitive
        public let count: Double
        /// What needs it.
        public let reason: String

        init(_ primitive: Primitive, times count: Double = 1, _ reason: String) {
            self.primitive = primitive
            self.count = count
            self.reason = reason
        }
    }

    public let items: [Item]

    var primitives: Set<Primitive> { Set(items.map(\.primitive)) }

    /// The sum of the parts at their costs; a part that was not measured costs nothing.
    func cost(_ costs: [Primitive: FloorCost]) -> FloorCost {
        items.reduce(into: FloorCost()) { sum, item in
            let cost = costs[item.primitive] ?? FloorCost()
            sum.cpuMicroseconds += item.count * cost.cpuMicroseconds
            sum.coreMicroseconds += item.count * cost.coreMicroseconds
        }
    }
}

/// Of a primitive, or of their sum, with all cores at it.
public struct FloorCost: Hashable, Sendable {
    /// What the processors give to it.
    public var cpuMicroseconds = 0.0
    /// For how long one core is at it by the clock: more, when other programs take turns.
    public var coreMicroseconds = 0.0

    /// So many a second, on so many cores.
    func rate(cores: Int) -> Double {
        coreMicroseconds > 0 ? Double(cores) * 1e6 / coreMicroseconds : 0
    }
}

extension Floor {
    /// Encrypted to the node's key and signed twice, as registrations and requests come in.
    private static let openedFromKey: [Item] = [
        Item(.sha256, "hash of the message, by which it is known when it comes again"),
        Item(.eciesOpen, "decryption"),
        Item(.keccak600, "digest of the Waku payload"),
        Item(.recover, "signer of the Waku payload"),
        Item(.keccak600, "digest of the envelope's payload"),
        Item(.recover, "sender"),
    ]

    private static let answered: [Item] = [
        Item(.protobufEncode, "answer"),
        Item(.keccak65, "digest of the answer"),
        Item(.sign, "signature of the envelope"),
        Item(.keccak65, "topic of the answer"),
        Item(.keccak600, "digest of the Waku payload"),
        Item(.sign, "signature of the Waku payload"),
        Item(.eciesSeal, "encryption"),
        Item(.sha256, "hash of the answer, by which it is known when it comes back"),
    ]

    /// Up to the comparison of versions.
    private static let claimed: [Item] =
        openedFromKey + [
            Item(.ecdh, "key that the client sealed the registration with"),
            Item(.aesOpen, "registration"),
            Item(.protobufDecode, "registration"),
            Item(.shake256, times: 2, "key hash; request id"),
            Item(.select, "version that is stored"),
        ]

    /// New ones and new versions cost the same.
    public static let registration = Floor(
        items: claimed + [
            Item(.keccak65, "digest of the grant"),
            // A verification would not notice a wrong V, which the protocol refuses.
            Item(.recover, "signer of the grant"),
            Item(.keccak65, times: 2, "the two topics on which queries come in"),
            Item(.aesSeal, "registration, as it is stored"),
            Item(.upsert100, "row on disk: 100 registrations share a transaction"),
        ] + answered)

    /// VERSION_MISMATCH goes before the grant: nothing more is looked at.
    public static let stale = Floor(items: claimed + answered)

    /// With a topic key that was derived before.
    public static let query = Floor(
        items: [
            Item(.sha256, "hash of the message, by which it is known when it comes again"),
            Item(.aesOpen, "decryption by the topic's key"),
            Item(.keccak600, "digest of the Waku payload"),
            Item(.recover, "signer of the Waku payload"),
            Item(.keccak65, "digest of the envelope's payload"),
            Item(.recover, "asker"),
            Item(.keccak600, "id of the envelope, which the answer names"),
            Item(.select, "registration asked about"),
            Item(.aesOpen, "registration, as it is stored"),
            Item(.protobufDecode, "registration"),
        ] + answered)

    /// Without the post to gorush, for which a stand-in in this process is measured.
    public static let request = Floor(
        items: openedFromKey + [
            Item(.keccak600, "id of the envelope, by which the same request is known"),
            Item(.protobufDecode, "request"),
            Item(.select, "registration to be notified"),
            Item(.aesOpen, "registration, as it is stored"),
            Item(.protobufDecode, "registration"),
            Item(.sha256, "id of the delivery, by which it is made once"),
            Item(.aesSeal, "notification, as it waits for gorush"),
            Item(.aesOpen, "notification, on its way to gorush"),
            // The row of the outbox goes, and the answer is noted, as well: not counted.
            Item(.upsert100, times: 2, "row in the outbox before the post, row among the accepted after it"),
        ] + answered)
}
