import Core
import NIOCore
import NIOSupport
import Synchronization

/// Holds the ``ConnectionTable`` of a listener with connections on several event loops, and closes the connections that it evicts. Each event loop has its
/// own ``InputScheduler``.
final class ConnectionRegister: Sendable {
    private struct State {
        var table: ConnectionTable<ObjectIdentifier>
        var channels: [ObjectIdentifier: any Channel] = [:]
        var schedulers: [ObjectIdentifier: NIOLoopBound<InputScheduler>] = [:]
    }

    private let state: Mutex<State>

    init(limit: Int) {
        state = Mutex(State(table: ConnectionTable(limit: limit)))
    }

    func opened(_ channel: any Channel, at now: NIODeadline) {
        let network = channel.clientNetwork
        let evicted = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.table.opened(ObjectIdentifier(channel), of: network, at: now).flatMap { state.channels.removeValue(forKey: $0) }
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

    /// Called on the event loop.
    func scheduler(on loop: any EventLoop) -> InputScheduler {
        state.withLock { state in
            if let scheduler = state.schedulers[ObjectIdentifier(loop)] { return scheduler }
            let scheduler = NIOLoopBound(InputScheduler(on: loop), eventLoop: loop)
            state.schedulers[ObjectIdentifier(loop)] = scheduler
            return scheduler
        }.value
    }
}

extension Channel {
    /// The network of the client, as limits count it; nil without an IP address.
    var clientNetwork: AddressRange? { remoteAddress.flatMap { IPAddress($0) }?.block }
}
