package import Core
package import Delivery
package import NodeMetrics
package import Storage
package import Waku

/// The membership of a node that works alone: it handles every message and posts for every device.
package struct SoleMembership: ClusterMembership {
    package init() {}

    package var isShared: Bool { false }
    package var nodeName: String? { nil }
    package func offerKeys(_ isOffered: Bool) {}

    package func hear(
        _ messages: [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])]
    ) -> [(place: Int, incoming: Incoming)] {
        messages.flatMap(\.arrivals)
    }

    package func hear(_ whole: ReassembledMessage, completedBy hash: MessageHash, handle: @escaping @Sendable () -> Void) -> Bool { true }

    package func claim<Outcome>(
        _ hash: MessageHash, _ kind: KindLabel, sentAt: Timestamp, for command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>> {
        command.map(Claimed.unclaimed)
    }

    package func handling(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void) {}
    package func committed(_ hash: MessageHash) {}
    package func finished(_ hash: MessageHash) {}
    package func abandoned(_ hash: MessageHash) {}
    package func claimedElsewhere(_ hash: MessageHash, _ kind: KindLabel) {}
    package func failed(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void) { giveUp() }
    package var transactionInterval: Duration { .zero }

    package var outboxShare: (any OutboxShare)? { nil }
    package var isMaintainer: Bool { true }

    package func run(_ duties: ClusterDuties) async {}
    package func setDraining(_ isDraining: Bool) {}
    package func beginLeaving() {}
    package var hasLeft: Bool { true }
    package func leave() async {}
    package func replaceSettings(_ settings: [String: String]) {}

    package var failure: String? { nil }
    package var outboxFailure: String? { nil }
    package var claimGap: Duration? { nil }
    package var areAllClocksOff: Bool { false }
    package var conflicts: [String] { [] }
    package func isDisputed(_ setting: String) -> Bool { false }
    package func isUnknownElsewhere(_ setting: String) -> Bool { false }
    package var nodeCount: Int { 1 }
    package var share: Int { 0 }
    package var facts: [ProtocolFact] { [] }
    package var status: ClusterStatus? { nil }
}
