import Core

/// Decides which partitions of the outbox are scanned: those that other nodes' notifications name, and all of them from time to time, since a
/// notification may be missed.
struct OutboxScans {
    /// The interval of scans of the whole outbox.
    static let interval = Duration.seconds(1)
    /// The number of deliveries above which such a scan is costly, and its interval then.
    static let smallCount = 5_000
    static let busyInterval = Duration.seconds(10)

    private let partitionCount: Int
    private var nextFull: Instant

    init(partitionCount: Int, at now: Instant) {
        self.partitionCount = partitionCount
        nextFull = now
    }

    func partitions(noticed: Set<PartitionNumber>, at now: Instant) -> Set<PartitionNumber> {
        now >= nextFull ? Set(0..<partitionCount) : noticed
    }

    /// - Parameters:
    ///   - deliveryCount: the number of deliveries that were found.
    ///   - now: the end of the scan.
    mutating func scanned(_ partitions: Set<PartitionNumber>, deliveryCount: Int, at now: Instant) {
        guard partitions.count == partitionCount else { return }
        nextFull = now + (deliveryCount > Self.smallCount ? Self.busyInterval : Self.interval)
    }
}
