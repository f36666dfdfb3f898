import Foundation
import Core
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusServer

/// For any content of the file, nothing traps, and reads return either the stored data or nothing.
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
        let path = sample.path
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        let pageCount = whole.count / Self.pageByteCount
        #expect(pageCount > 20)
        var refusals = 0
        for page in Self.pages(of: pageCount, damage) {
            try Self.damaged(whole, page, damage, &generator).write(to: URL(fileURLWithPath: path))
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            do {
                let store = try sample.open()
                refusals += try await sample.look(at: store)
                await store.check()
                // Closes the store now, not when its last reference is released, because the file is overwritten next.
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
        let path = sample.path
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        var refusals = 0
        for page in Self.pages(of: whole.count / Self.pageByteCount, damage) where page > 0 {
            try whole.write(to: URL(fileURLWithPath: path))
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            let store = try sample.open()
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

    /// In the short form each damage meets a quarter of the pages, and each page one damage.
    private static func pages(of pageCount: Int, _ damage: Damage) -> [Int] {
        if LongTests.areEnabled { return Array(0..<pageCount) }
        let all = Damage.allCases
        return (0..<pageCount).filter { all[$0 % all.count] == damage }
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

    /// A database with rows in each table.
    private struct Sample {
        let folder: TemporaryFolder
        let storageKey = SymmetricKey.random()
        let store: SQLiteStore
        let keys = (0..<60).map { StatusStoreFixture.key("phone \($0)") }
        let deliveries = (0..<20).map { DeliveryID(hashing: [UInt8($0)]) }
        private static let payload = [UInt8](repeating: 7, count: 900)

        var path: String { DataFolder.databasePath(in: folder.path) }

        init() async throws {
            folder = try TemporaryFolder()
            store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: StatusStoreFixture.parts)
            for key in keys { try await store.register(key, version: 3, token: "token of \(key.installationID.string)") }
            for (row, delivery) in deliveries.enumerated() {
                let device = Registrations.device(Int64(row + 1))
                let waits = DeliveryStorage.enqueue(
                    delivery, for: device, payload: Self.payload, expires: Timestamp(rawValue: 1_000), by: store.sealer)
                try await store.commit(.change([waits]))
                if row == 0 {
                    let posted = PostedNotification(delivery: delivery, device: device, version: 3)
                    try await store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: Timestamp(rawValue: 5))))
                }
            }
            let doubt = TokenDoubt(version: 3, at: Timestamp(rawValue: 5))
            try await store.commit(
                .change([
                    AnswerStorage.remember([1], to: [9], at: Timestamp(rawValue: 5)),
                    DeliveryStorage.setDoubt(doubt, of: Registrations.device(1)),
                ]))
        }

        func open() throws -> SQLiteStore {
            try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: StatusStoreFixture.parts)
        }

        /// Performs the reads and changes of a daemon. Returns the number of refused ones.
        func look(at store: SQLiteStore) async throws -> Int {
            var refusals = 0
            func attempt(_ body: () throws -> Void) throws {
                do {
                    try body()
                } catch is StoreError {
                    refusals += 1
                }
            }
            let registrations = Registrations(store.sealer)
            try attempt { _ = try TopicKeyStorage.allTopics(in: store) }
            for key in keys {
                try attempt {
                    guard case .registered(let stored)? = try store.state(of: key) else { return }
                    #expect(stored.registration.deviceToken.revealed == "token of \(key.installationID.string)")
                    #expect(stored.version == 3)
                }
                try attempt {
                    for stored in try store.read(registrations.registrations(of: [key.keyHash])) {
                        #expect(stored.registration.deviceToken.revealed == "token of \(stored.key.installationID.string)")
                    }
                }
            }
            try attempt { _ = try store.read(DeliveryStorage.waitingDeliveries()) }
            try attempt { _ = try store.read(DeliveryStorage.states(of: deliveries)) }
            try attempt { _ = try store.read(DeliveryStorage.posted(under: deliveries[0].bytes)) }
            try attempt { _ = try store.read(DeliveryStorage.doubt(of: Registrations.device(1))) }
            try attempt { _ = try store.read(AnswerStorage.answer(to: [9])) }
            for id in 1...20 as ClosedRange<Int64> {
                try attempt {
                    for stored in try store.read(DeliveryStorage.stored([id])).values {
                        let binding = Value.bytes(stored.waiting.delivery.bytes)
                        guard let payload = try? store.sealer.open(stored.sealed, in: DeliveryStorage.outbox, boundTo: [binding]) else {
                            continue
                        }
                        #expect(payload == Self.payload)
                    }
                    guard let key = try store.read(Registrations.keys(ofDevices: [id]))[id],
                        case .registered(let stored)? = try store.state(of: key)
                    else { return }
                    #expect(stored.registration.deviceToken.revealed == "token of \(key.installationID.string)")
                }
            }
            let changes = await store.commitEach(
                keys.map { key in
                    let registration = StatusStoreFixture.registration(key, version: 4)
                    return registrations.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 9))
                })
            for result in changes {
                if case .failure = result { refusals += 1 }
            }
            let time = Timestamp(rawValue: 3)
            do { try await DeliveryStorage.prune(store, before: time, at: time, keeping: 100) } catch { refusals += 1 }
            do { try await store.prune(AnswerStorage.rows, before: time, at: time, keeping: 100) } catch { refusals += 1 }
            return refusals
        }
    }
}
