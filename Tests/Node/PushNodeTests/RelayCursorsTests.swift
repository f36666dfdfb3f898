import NodeAssembly
import Storage
import StoreSQLite
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Cursors of pubsub topics")
struct RelayCursorsTests {
    private let one = PubsubTopic.statusDefault
    private let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
    private let time = Timestamp(rawValue: 1_800_000_000_123_456_789)

    private func withStore(_ body: (any Store) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let store = try NodeAssembly.store(in: folder.path, of: .generate())
        try await body(store)
        try store.close()
    }

    @Test("Each topic has its own cursor, and keeps it while the node does not listen on it")
    func own() async throws {
        try await withStore { [one, other, time] store async throws in
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [:])
            try await store.commit(StoreCommand.change(RelayCursors.write([one: time])))
            try await store.commit(StoreCommand.change(RelayCursors.write([other: time + .seconds(1)])))
            #expect(
                try store.read(RelayCursors.read(of: [one, other])) == [one: time, other: time + .seconds(1)])
        }
    }

    @Test("The cursor of an older database is used for every topic, until each has its own")
    func migrated() async throws {
        try await withStore { [one, other, time] store async throws in
            let bytes = withUnsafeBytes(of: time.rawValue.bigEndian, Array.init)
            try await store.commit(StoreCommand.change([Properties.set("relay seen until", to: bytes)]))
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [one: time, other: time])
            // A relay without a cursor does not change it.
            try await store.commit(StoreCommand.change(RelayCursors.write([:])))
            #expect(try store.read(RelayCursors.read(of: [one])) == [one: time])
            try await store.commit(StoreCommand.change(RelayCursors.write([one: time + .seconds(5)])))
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [one: time + .seconds(5)])
        }
    }
}
