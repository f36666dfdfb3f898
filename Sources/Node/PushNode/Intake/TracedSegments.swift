import Core
import NodeAPI
import NodeMetrics
import Storage

/// The traces of segments whose message is not complete, by the hash that they announce. Empty when nothing is traced.
struct TracedSegments: Sendable {
    private static let messageLimit = 256
    private static let segmentLimit = 64

    private var segments = GenerationalCache<[UInt8], [EndedTrace]>(capacity: Self.messageLimit)

    /// - Parameter announcedHash: of the whole message.
    mutating func add(_ trace: MessageTrace, of announcedHash: [UInt8]) {
        trace.mark(.decoded)
        let known = segments.value(of: announcedHash) ?? []
        if known.count < Self.segmentLimit { segments.set(known + [trace.asSegment], of: announcedHash) }
    }

    /// Removes and returns the traces of a message's segments, without the last.
    mutating func take(_ message: ReassembledMessage) -> [EndedTrace] {
        defer { segments.remove(message.announcedHash) }
        return segments.value(of: message.announcedHash) ?? []
    }
}

extension StoreCommand {
    /// Calls `note` when the command's changes are decided: again each time that the transaction is repeated.
    func whenDecided(_ note: @escaping @Sendable () -> Void) -> StoreCommand {
        switch self {
        case .read(let reads, let next): return .read(reads) { try next($0).whenDecided(note) }
        case .apply:
            note()
            return self
        }
    }
}
