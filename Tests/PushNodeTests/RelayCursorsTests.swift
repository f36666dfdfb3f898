import PushStore
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Up to when each pubsub topic was seen")
struct RelayCursorsTests {
    private let one = PubsubTopic.statusDefault
    private let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
    private let time = Timestamp(rawValue: 1_800_000_000_123_456_789)

    private func withStore(_ body: (Store) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let store = try Store(folder: folder.path, storageKey: Store.storageKey(of: .generate()))
        try await body(store)
        try store.close()
    }

    @Test("Each topic has its own, and keeps it while it is not listened on")
    func own() async throws {
        try await withStore { [one, other, time] store async throws in
            #expect(try store.read { try RelayCursors.read(of: [one, other], from: $0) } == [:])
            try await store.commit { try RelayCursors.write([one: time], to: $0) }
            try await store.commit { try RelayCursors.write([other: time + .seconds(1)], to: $0) }
            #expect(
                try store.read { try RelayCursors.read(of: [one, other], from: $0) } == [one: time, other: time + .seconds(1)])
        }
    }

    @Test("The one of an older database holds for every topic, until each has its own")
    func migrated() async throws {
        try await withStore { [one, other, time] store async throws in
            let bytes = withUnsafeBytes(of: time.rawValue.bigEndian, Array.init)
            try await store.commit { try $0.setProperty("relay seen until", bytes) }
            #expect(try store.read { try RelayCursors.read(of: [one, other], from: $0) } == [one: time, other: time])
            // A relay that knows nothing yet leaves it.
            try await store.commit { try RelayCursors.write([:], to: $0) }
            #expect(try store.read { try RelayCursors.read(of: [one], from: $0) } == [one: time])
            try await store.commit { try RelayCursors.write([one: time + .seconds(5)], to: $0) }
            #expect(try store.read { try RelayCursors.read(of: [one, other], from: $0) } == [one: time + .seconds(5)])
        }
    }
}
