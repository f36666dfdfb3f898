import Core

/// Whether a node offers to monitor a share of the accounts: from its first connection to a storage server, until it had none for a while and another
/// node can take the accounts. A value without I/O.
struct AccountOffer: Sendable {
    /// How long a node without a connection keeps its accounts.
    static let withdrawalTime = Duration.seconds(60)

    private(set) var isOffered = false
    private var connectedAt: Instant?

    /// - Parameters:
    ///   - isConnected: whether the node is connected to any storage server.
    ///   - hasOthers: whether other nodes offer to monitor accounts.
    /// - Returns: whether ``isOffered`` has changed.
    mutating func update(isConnected: Bool, hasOthers: Bool, at now: Instant) -> Bool {
        if isConnected { connectedAt = now }
        let wasOffered = isOffered
        isOffered = isConnected || isOffered && !(hasOthers && connectedAt.map { now - $0 >= Self.withdrawalTime } ?? true)
        return isOffered != wasOffered
    }
}
