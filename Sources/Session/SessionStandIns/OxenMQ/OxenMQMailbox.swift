import CZeroMQ
import Foundation
import Synchronization

/// Passes messages to the thread of an ``OxenMQServer`` and wakes it with an eventfd.
final class OxenMQMailbox: Sendable {
    typealias Command = (peer: OxenMQServer.Peer, parts: [[UInt8]])

    private struct State {
        var commands: [Command] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Readable if there are commands, or the mailbox was closed.
    let descriptor: Int32

    init() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(descriptor >= 0, "the system has no descriptor for an eventfd")
    }

    deinit {
        Foundation.close(descriptor)
    }

    func post(_ command: Command) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.commands.append(command)
            // Only the first command wakes the loop, which takes all commands at once.
            if state.commands.count == 1 { wake() }
        }
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            wake()
        }
    }

    /// Takes all commands, for the loop. No command follows once `isClosed` was returned.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            var count: UInt64 = 0
            _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
            defer { state.commands = [] }
            return (state.commands, state.isClosed)
        }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
