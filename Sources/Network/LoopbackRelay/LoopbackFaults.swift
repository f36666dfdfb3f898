/// Faults that the node of a ``LoopbackNetwork`` simulates.
package struct LoopbackFaults: Hashable, Sendable {
    /// The status with which the store refuses queries: 412 from a node without a store, 429 from one over its rate limit. nil: it answers.
    package var storeStatus: Int?
    /// The store's response time.
    package var storeDelay: Duration = .zero
    package var servesLightpush: Bool = true
    /// The number of peers that lightpush reports to have reached; nil omits it.
    package var relayPeerCount: Int? = 1
    /// The next publications, this many, are accepted and lost.
    package var lostPublicationCount: Int = 0
}
