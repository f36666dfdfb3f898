import NodeAssembly

/// The minimum cost of a message: the library calls that the protocol and its guarantees require.
///
/// Each step has two counts. The *floor* counts calls that are needed with the node's data on disk: no result that is not used, no conversion and no
/// proof of data that were proved before. The *limit* counts those left with the best known implementation: keys and rows of known clients in memory, and
/// one appended row of a log in place of each row of a table.
///
/// Sizes are those of ``Primitive``, which real messages exceed; small hashes of answers and parsing of envelopes are left out. So both are low
/// estimates.
struct Floor: Sendable {
    struct Item: Sendable {
        let primitive: Primitive
        let count: Double
        /// The count in the limit.
        let limit: Double
        /// The purpose of the calls.
        let reason: String

        /// - Parameter limit: the count in the limit; nil if it is the same.
        init(_ primitive: Primitive, times count: Double = 1, limit: Double? = nil, _ reason: String) {
            self.primitive = primitive
            self.count = count
            self.limit = limit ?? count
            self.reason = reason
        }
    }

    let items: [Item]

    var primitives: Set<Primitive> { Set(items.map(\.primitive)) }

    /// - Parameters:
    ///   - costs: primitives that were not measured count as 0.
    ///   - store: the store that was measured, for the names of the parts.
    func measurement(_ costs: [Primitive: FloorCost], store: StoreLocation = .dataFolder) -> FloorMeasurement {
        var sum = FloorMeasurement()
        for item in items {
            sum.add(
                item.primitive.name(on: store), costs[item.primitive] ?? FloorCost(), times: item.count, limit: item.limit, item.reason)
        }
        return sum
    }
}

/// The CPU time of a primitive with all cores busy.
struct FloorCost: Hashable, Sendable {
    /// That of a server on this machine included.
    var cpuMicroseconds = 0.0
    /// The server's part of ``cpuMicroseconds``.
    var serverMicroseconds = 0.0
}

extension Floor {
    /// Opening a registration or request, which is encrypted to the node's key. Only the envelope's signature is needed.
    private static let openedFromKey: [Item] = [
        Item(.sha256, "hash of the message, by which it is known when it comes again"),
        Item(.eciesOpen, "decryption"),
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

    /// A registration up to the comparison of versions.
    ///
    /// - Parameter isKnown: whether the client registered before, so that its shared key can be in memory.
    private static func claimed(isKnown: Bool) -> [Item] {
        openedFromKey + [
            Item(.ecdh, limit: isKnown ? 0 : 1, "key that the client sealed the registration with"),
            Item(.aesOpen, "registration"),
            Item(.protobufDecode, "registration"),
            Item(.shake256, times: 2, "key hash; request id"),
            Item(.select, limit: 0, "version that is stored"),
        ]
    }

    private static let stored: [Item] = [
        Item(.aesSeal, "registration, as it is stored"),
        Item(.upsert100, limit: 0, "row on disk: 100 registrations share a transaction"),
        Item(.append100, times: 0, limit: 1, "row on disk: 100 registrations share a sync"),
    ]

    static let registration = Floor(
        items: claimed(isKnown: false) + [
            Item(.keccak65, "digest of the grant"),
            // Recovery instead of verification: verification would not detect a wrong recovery id, which the protocol rejects.
            Item(.recover, "signer of the grant"),
            Item(.keccak65, times: 2, "the two topics on which queries come in"),
        ] + stored + answered)

    /// A new version with the grant that is stored, which was proved before.
    static let update = Floor(
        items: claimed(isKnown: true) + [
            Item(.aesOpen, limit: 0, "registration that is replaced, for its grant"),
            Item(.protobufDecode, limit: 0, "registration that is replaced"),
        ] + stored + answered)

    /// VERSION_MISMATCH is decided before the grant is checked.
    static let stale = Floor(items: claimed(isKnown: true) + answered)

    /// A query with a topic key that was derived before.
    static let query = Floor(
        items: [
            Item(.sha256, "hash of the message, by which it is known when it comes again"),
            Item(.aesOpen, "decryption by the topic's key"),
            Item(.keccak65, "digest of the envelope's payload"),
            Item(.recover, "sender"),
            Item(.keccak600, "id of the envelope, which the answer names"),
            Item(.select, limit: 0, "registration asked about"),
            Item(.aesOpen, limit: 0, "registration, as it is stored"),
            Item(.protobufDecode, limit: 0, "registration"),
        ] + answered)

    /// Without the post to gorush, which any number of notifications may share.
    static let request = Floor(
        items: openedFromKey + [
            Item(.keccak600, "id of the envelope, by which the same request is known"),
            Item(.protobufDecode, "request"),
            Item(.select, limit: 0, "registration to be notified"),
            Item(.aesOpen, limit: 0, "registration, as it is stored"),
            Item(.protobufDecode, limit: 0, "registration"),
            Item(.sha256, "id of the delivery, by which it is made once"),
            Item(.aesSeal, "notification, as it waits for gorush"),
            // Deleting the outbox row and storing the answer are not counted.
            Item(.upsert100, times: 2, limit: 0, "row in the outbox before the post, row among the accepted after it"),
            Item(.append100, times: 0, limit: 2, "row before the post, row after it"),
        ] + answered)
}

/// Version 0.1. SHA3-256 is counted as SHAKE-256: the same library, and the same permutation for each of these inputs.
extension Floor {
    /// A new account with one device.
    static let v01Register = Floor(
        items: openedFromKey + [
            Item(.protobufDecode, "record"),
            Item(.keccak600, "digest of the record and the server's key"),
            Item(.recover, "signer of the record"),
            Item(.shake256, times: 2, "key hash; request id"),
            Item(.hmac, "keyed hash of the access token"),
            Item(.select, times: 2, limit: 0, "version that is stored; record that has the token"),
            Item(.aesSeal, times: 2, limit: 1, "record, as it is stored; device token"),
            Item(.upsert100, times: 2, limit: 0, "row of the record, row of its device: 100 registrations share a transaction"),
            Item(.append100, times: 0, limit: 1, "row on disk: 100 registrations share a sync"),
        ] + answered)

    static let v01Query = Floor(
        items: openedFromKey + [
            Item(.select, limit: 0, "record asked about"),
            Item(.aesOpen, limit: 0, "record, as it is stored"),
            Item(.protobufDecode, limit: 0, "record"),
        ] + answered)

    /// Without the post to gorush, which any number of notifications may share. The acknowledgement is encrypted with the sender's key.
    static let v01Request = Floor(
        items: openedFromKey + [
            Item(.sha256, "by which the same request is known"),
            Item(.protobufDecode, "request"),
            Item(.hmac, "keyed hash of the access token"),
            Item(.select, times: 4, limit: 0, "earlier answer; record that has the token; its content; whether it was delivered before"),
            Item(.aesOpen, limit: 0, "record, as it is stored"),
            Item(.protobufDecode, limit: 0, "record"),
            Item(.sha256, "id of the delivery, by which it is made once"),
            Item(.aesSeal, "notification, as it waits for gorush"),
            Item(.aesOpen, limit: 0, "device token, on its way to gorush"),
            // Deleting the outbox row is not counted.
            Item(
                .upsert100, times: 3, limit: 0,
                "row in the outbox before the post, row among the accepted after it, answer that the same request gets again"),
            Item(.append100, times: 0, limit: 2, "row before the post, row after it"),
            Item(.protobufEncode, "acknowledgement"),
            Item(.keccak65, "digest of the acknowledgement"),
            Item(.sign, "signature of the envelope"),
            Item(.shake256, "topic of the acknowledgement"),
            Item(.keccak600, "digest of the Waku payload"),
            Item(.sign, "signature of the Waku payload"),
            Item(.aesSeal, "encryption"),
            Item(.sha256, "hash of the acknowledgement, by which it is known when it comes back"),
        ])
}
