import NIOCore
import Synchronization

/// Holds the ``ConnectionTable`` of a listener with connections on several event loops, and closes the connections that it evicts.
final class ConnectionRegister: Sendable {
    private struct State {
        var table: ConnectionTable<ObjectIdentifier>
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    private let state: Mutex<State>

    init(limit: Int) {
        state = Mutex(State(table: ConnectionTable(limit: limit)))
    }

    func opened(_ channel: any Channel, at now: NIODeadline) {
        let evicted = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.table.opened(ObjectIdentifier(channel), at: now).flatMap { state.channels.removeValue(forKey: $0) }
        }
        evicted?.close(promise: nil)
    }

    func advanced(_ channel: any Channel, isBusy: Bool, at now: NIODeadline) {
        state.withLock { $0.table.advanced(ObjectIdentifier(channel), isBusy: isBusy, at: now) }
    }

    func closed(_ channel: any Channel) {
        state.withLock { state in
            state.table.closed(ObjectIdentifier(channel))
            state.channels[ObjectIdentifier(channel)] = nil
        }
    }
}
