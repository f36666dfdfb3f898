/// What a node of a ``LoopbackNetwork`` does otherwise than one hopes.
package struct LoopbackFaults: Hashable, Sendable {
    /// What the store answers instead of messages: 412 is a node without any, 429 one that is asked too often.
    package var storeStatus: Int?
    /// How long the store takes.
    package var storeDelay: Duration
    package var servesLightpush: Bool
    /// How many peers lightpush says that it reached; nil: it does not say.
    package var relayPeerCount: Int?
    /// So many publications are taken, and go nowhere.
    package var lostPublicationCount: Int

    package init(
        storeStatus: Int? = nil, storeDelay: Duration = .zero, servesLightpush: Bool = true, relayPeerCount: Int? = 1,
        lostPublicationCount: Int = 0
    ) {
        self.storeStatus = storeStatus
        self.storeDelay = storeDelay
        self.servesLightpush = servesLightpush
        self.relayPeerCount = relayPeerCount
        self.lostPublicationCount = lostPublicationCount
    }
}
