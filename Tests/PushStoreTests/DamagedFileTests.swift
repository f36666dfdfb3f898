import Foundation
import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku

/// Whatever stands in the file: nothing traps, and what is found is what was stored, or nothing.
@Suite("A damaged database file", .timeLimit(.minutes(5)))
struct DamagedFileTests {
    private static let pageByteCount = 4096

    enum Damage: CaseIterable {
        case zeros, noise, flippedBits, anotherPage
    }

    @Test("Any page of a database may be overwritten while no daemon runs", arguments: Damage.allCases)
    func atRest(damage: Damage) async throws {
        let sample = try await Sample()
        try sample.store.close()
        var generator = SeededGenerator(seed: 1)
        let path = DataFolder.databasePath(in: sample.fixture.folder.path)
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        let pageCount = whole.count / Self.pageByteCount
        #expect(pageCount > 20)
        var refusals = 0
        for page in 0..<pageCount {
            try Self.damaged(whole, page, damage, &generator).write(to: URL(fileURLWithPath: path))
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            do {
                let store = try sample.fixture.open()
                refusals += try await sample.look(at: store)
                await store.check()
                // Now, and not when the last thread lets go of it: the file is to be overwritten.
                try? store.close()
            } catch let error as StoreError {
                #expect(!error.message.isEmpty && !error.message.contains("\n"))
                refusals += 1
            }
        }
        #expect(refusals > 0)
    }

    @Test("Any page may be overwritten while the daemon runs", arguments: Damage.allCases)
    func running(damage: Damage) async throws {
        let sample = try await Sample()
        try sample.store.close()
        var generator = SeededGenerator(seed: 2)
        let path = DataFolder.databasePath(in: sample.fixture.folder.path)
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        var refusals = 0
        for page in 1..<whole.count / Self.pageByteCount {
            try whole.write(to: URL(fileURLWithPath: path))
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            let store = try sample.fixture.open()
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.seek(toOffset: UInt64(page * Self.pageByteCount))
            let start = page * Self.pageByteCount
            try file.write(contentsOf: Self.damaged(whole, page, damage, &generator)[start..<start + Self.pageByteCount])
            try file.close()
            let refused = try await sample.look(at: store)
            if refused > 0 { #expect(store.failure != nil, "page \(page)") }
            refusals += refused
            try? store.close()
        }
        #expect(refusals > 0)
    }

    private static func damaged(_ whole: Data, _ page: Int, _ damage: Damage, _ generator: inout SeededGenerator) -> Data {
        var bytes = Array(whole)
        let range = page * pageByteCount..<(page + 1) * pageByteCount
        switch damage {
        case .zeros: bytes.replaceSubrange(range, with: Array(repeating: 0, count: pageByteCount))
        case .noise: bytes.replaceSubrange(range, with: generator.bytes(pageByteCount))
        case .flippedBits:
            for _ in 0..<20 { bytes[Int.random(in: range, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator) }
        case .anotherPage:
            let other = Int.random(in: 0..<bytes.count / pageByteCount, using: &generator) * pageByteCount
            bytes.replaceSubrange(range, with: bytes[other..<other + pageByteCount])
        }
        return Data(bytes)
    }

    /// A database with something in each table.
    private struct Sample {
        let fixture: FaultyStoreFixture
        let store: Store
        let keys = (0..<60).map { StoreFixture.key("phone \($0)") }
        let deliveries = (0..<20).map { DeliveryID(messageID: [UInt8($0)], key: StoreFixture.key()) }

        init() async throws {
            fixture = try FaultyStoreFixture()
            store = try fixture.open()
            for key in keys { try await store.register(key, version: 3, token: "token of \(key.installationID.string)") }
            for (delivery, key) in zip(deliveries, keys) {
                _ = try await store.enqueue(delivery, key, message: Array(repeating: 7, count: 900))
                if key == keys[0] { try await store.commit { try $0.accepted(delivery, at: Timestamp(rawValue: 5)) } }
            }
            try await store.commit { try $0.remember(answer: [1], to: [9], at: Timestamp(rawValue: 5)) }
        }

        /// Reads and changes what a daemon does. Returns how much of it was refused.
        func look(at store: Store) async throws -> Int {
            var refusals = 0
            func attempt(_ body: () throws -> Void) throws {
                do {
                    try body()
                } catch is StoreError {
                    refusals += 1
                }
            }
            try attempt { try store.read { try $0.forEachQueryTopic { _ in } } }
            for key in keys {
                try attempt {
                    guard case .registered(let stored)? = try store.read({ try $0.state(of: key) }) else { return }
                    #expect(stored.registration.deviceToken.revealed == "token of \(key.installationID.string)")
                    #expect(stored.version == 3)
                }
                try attempt {
                    try store.read { transaction in
                        try transaction.forEachRegistration(of: key.keyHash) { stored in
                            #expect(stored.registration.deviceToken.revealed == "token of \(stored.key.installationID.string)")
                            return true
                        }
                    }
                }
            }
            try attempt { _ = try store.read { try $0.waitingDeliveries() } }
            for id in 1...20 {
                try attempt {
                    guard let entry = try store.entry(Int64(id)) else { return }
                    #expect(entry.notification.message == Array(repeating: 7, count: 900))
                    #expect(entry.deviceToken.revealed == "token of \(entry.key.installationID.string)")
                }
            }
            let changes = await store.commitEach(keys) { transaction, key in
                let registration = StoreFixture.registration(key, version: 4)
                try transaction.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 9))
            }
            refusals += changes.count { if case .failure = $0 { true } else { false } }
            return refusals
        }
    }
}
