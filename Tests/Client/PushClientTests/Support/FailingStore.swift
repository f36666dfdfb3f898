import PushClient
import Synchronization

/// A store whose commits can be made to fail, and fail in cancelled tasks, as GRDB's do.
final class FailingStore: ClientStore {
    private let memory = MemoryClientStore()
    private let isFailing = Mutex(false)

    func setFailing(_ value: Bool) { isFailing.withLock { $0 = value } }

    func load() async throws(ClientStoreError) -> [String: [UInt8]] { try await memory.load() }

    func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError) {
        guard !Task.isCancelled else { throw ClientStoreError(code: .unavailable, message: "cancelled") }
        if isFailing.withLock({ $0 }) { throw ClientStoreError(code: .unavailable, message: "the disk is full") }
        try await memory.commit(changes)
    }
}
