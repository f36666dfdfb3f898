import PushClient
import Synchronization

/// A store that lists its commits, and calls a function during each.
final class RecordingStore: ClientStore {
    private struct Inner {
        var commits: [Set<String>] = []
        var duringCommit: (@Sendable (_ number: Int) throws(ClientStoreError) -> Void)?
    }

    private let memory = MemoryClientStore()
    private let inner = Mutex(Inner())

    /// The names of the records in each commit.
    var commits: [Set<String>] { inner.withLock(\.commits) }

    /// - Parameter body: Gets the number of commits so far.
    func setDuringCommit(_ body: @escaping @Sendable (_ number: Int) throws(ClientStoreError) -> Void) {
        inner.withLock { $0.duringCommit = body }
    }

    func load() async throws(ClientStoreError) -> [String: [UInt8]] { try await memory.load() }

    func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError) {
        let (number, body) = inner.withLock { inner in
            inner.commits.append(Set(changes.keys))
            return (inner.commits.count, inner.duringCommit)
        }
        try body?(number)
        try await memory.commit(changes)
    }
}
