/// The minimum cost of a message: the bare library calls that the protocol and its guarantees require, and nothing else.
///
/// A step is counted as the library's call for it, even if the node avoids the call, for instance by not proving stored data again.
///
/// Sizes are those of ``Primitive``, which real messages exceed; small hashes of answers and parsing of envelopes are left out. So the floor is a
/// low estimate.
package struct Floor: Sendable {
    package struct Item: Sendable {
        package let primitive: Primitive
        package let count: Double
        /// The purpose of the calls.
        package let reason: String

        init(_ primitive: Primitive, times count: Double = 1, _ reason: String) {
            self.primitive = primitive
            self.count = count
            self.reason = reason
        }
    }

    package let items: [Item]

    var primitives: Set<Primitive> { Set(items.map(\.primitive)) }

    /// The sum of the parts' costs; parts that were not measured count as 0.
    func cost(_ costs: [Primitive: FloorCost]) -> FloorCost {
        items.reduce(into: FloorCost()) { sum, item in
            let cost = costs[item.primitive] ?? FloorCost()
            sum.cpuMicroseconds += item.count * cost.cpuMicroseconds
            sum.coreMicroseconds += item.count * cost.coreMicroseconds
            sum.serverMicroseconds += item.count * cost.serverMicroseconds
            sum.writerMicroseconds += item.count * cost.writerMicroseconds
        }
    }
}

/// The cost of a primitive, or of a sum of them, with all cores busy.
package struct FloorCost: Hashable, Sendable {
    /// CPU time, including that of a server on this machine.
    package var cpuMicroseconds = 0.0
    /// Wall time on one core, which is longer if other programs compete for it.
    package var coreMicroseconds = 0.0
    /// The server's part of ``cpuMicroseconds``.
    package var serverMicroseconds = 0.0
    /// The part of ``coreMicroseconds`` that is limited to one thread on any number of cores: SQLite has one writer. 0 with PostgreSQL.
    package var writerMicroseconds = 0.0

    /// Operations per second on this number of cores.
    func rate(cores: Int) -> Double {
        let microseconds = max(coreMicroseconds / Double(cores), writerMicroseconds)
        return microseconds > 0 ? 1e6 / microseconds : 0
    }
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
    private static let claimed: [Item] =
        openedFromKey + [
            Item(.ecdh, "key that the client sealed the registration with"),
            Item(.aesOpen, "registration"),
            Item(.protobufDecode, "registration"),
            Item(.shake256, times: 2, "key hash; request id"),
            Item(.select, "version that is stored"),
        ]

    /// New registrations and new versions cost the same.
    package static let registration = Floor(
        items: claimed + [
            Item(.keccak65, "digest of the grant"),
            // Recovery instead of verification: verification would not detect a wrong recovery id, which the protocol rejects.
            Item(.recover, "signer of the grant"),
            Item(.keccak65, times: 2, "the two topics on which queries come in"),
            Item(.aesSeal, "registration, as it is stored"),
            Item(.upsert100, "row on disk: 100 registrations share a transaction"),
        ] + answered)

    /// VERSION_MISMATCH is decided before the grant is checked.
    package static let stale = Floor(items: claimed + answered)

    /// A query with a topic key that was derived before.
    package static let query = Floor(
        items: [
            Item(.sha256, "hash of the message, by which it is known when it comes again"),
            Item(.aesOpen, "decryption by the topic's key"),
            Item(.keccak65, "digest of the envelope's payload"),
            Item(.recover, "sender"),
            Item(.keccak600, "id of the envelope, which the answer names"),
            Item(.select, "registration asked about"),
            Item(.aesOpen, "registration, as it is stored"),
            Item(.protobufDecode, "registration"),
        ] + answered)

    /// Without the post to gorush, which is measured with a stand-in in this process.
    package static let request = Floor(
        items: openedFromKey + [
            Item(.keccak600, "id of the envelope, by which the same request is known"),
            Item(.protobufDecode, "request"),
            Item(.select, "registration to be notified"),
            Item(.aesOpen, "registration, as it is stored"),
            Item(.protobufDecode, "registration"),
            Item(.sha256, "id of the delivery, by which it is made once"),
            Item(.aesSeal, "notification, as it waits for gorush"),
            Item(.aesOpen, "notification, on its way to gorush"),
            // Deleting the outbox row and storing the answer are not counted.
            Item(.upsert100, times: 2, "row in the outbox before the post, row among the accepted after it"),
        ] + answered)
}

/// Version 0.1. SHA3-256 is counted as SHAKE-256: the same library, and the same permutation for each of these inputs.
extension Floor {
    /// A new account with one device.
    package static let v01Register = Floor(
        items: openedFromKey + [
            Item(.protobufDecode, "record"),
            Item(.keccak600, "digest of the record and the server's key"),
            Item(.recover, "signer of the record"),
            Item(.shake256, times: 2, "key hash; request id"),
            Item(.hmac, "keyed hash of the access token"),
            Item(.select, times: 2, "version that is stored; record that has the token"),
            Item(.aesSeal, times: 2, "record, as it is stored; device token"),
            Item(.upsert100, times: 2, "row of the record, row of its device: 100 registrations share a transaction"),
        ] + answered)

    package static let v01Query = Floor(
        items: openedFromKey + [
            Item(.select, "record asked about"),
            Item(.aesOpen, "record, as it is stored"),
            Item(.protobufDecode, "record"),
        ] + answered)

    /// Without the post to gorush, which is measured with a stand-in in this process. The acknowledgement is encrypted with the sender's key.
    package static let v01Request = Floor(
        items: openedFromKey + [
            Item(.sha256, "by which the same request is known"),
            Item(.protobufDecode, "request"),
            Item(.hmac, "keyed hash of the access token"),
            Item(.select, times: 4, "earlier answer; record that has the token; its content; whether it was delivered before"),
            Item(.aesOpen, "record, as it is stored"),
            Item(.protobufDecode, "record"),
            Item(.sha256, "id of the delivery, by which it is made once"),
            Item(.aesSeal, "notification, as it waits for gorush"),
            Item(.aesOpen, times: 2, "notification and device token, on their way to gorush"),
            // Deleting the outbox row is not counted.
            Item(
                .upsert100, times: 3,
                "row in the outbox before the post, row among the accepted after it, answer that the same request gets again"),
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
