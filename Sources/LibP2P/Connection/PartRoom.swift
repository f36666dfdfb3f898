import NIOCore
import Synchronization

/// Room for parts of long messages, all together, on streams that others opened over connections that they opened: who begins many messages and ends
/// none fills neither the memory nor, for longer than a while, this room.
final class PartRoom: Sendable {
    /// A message of no more than this needs none: those that matter go on while others fill it.
    static let smallMessage = 64 * 1024

    private let limit: Int
    private let timeout: TimeAmount
    private let taken = Atomic(0)

    init(limit: Int, timeout: TimeAmount) {
        self.limit = limit
        self.timeout = timeout
    }

    var takenByteCount: Int { taken.load(ordering: .relaxed) }

    /// For a message of which a part has come: as much as it says that it is long, until the reservation is let go. If that takes too long, the stream is
    /// reset.
    func reserve(_ byteCount: Int, for stream: PeerStream) -> Reservation? {
        guard taken.wrappingAdd(byteCount, ordering: .relaxed).newValue <= limit else {
            taken.wrappingSubtract(byteCount, ordering: .relaxed)
            return nil
        }
        let expiry = stream.connection.schedule(in: timeout) { [weak stream] in stream?.reset(.timedOut) }
        return Reservation(room: self, byteCount: byteCount, expiry: expiry)
    }

    final class Reservation: Sendable {
        private let room: PartRoom
        private let byteCount: Int
        private let expiry: Scheduled<Void>

        fileprivate init(room: PartRoom, byteCount: Int, expiry: Scheduled<Void>) {
            self.room = room
            self.byteCount = byteCount
            self.expiry = expiry
        }

        deinit {
            expiry.cancel()
            room.taken.wrappingSubtract(byteCount, ordering: .relaxed)
        }
    }
}
