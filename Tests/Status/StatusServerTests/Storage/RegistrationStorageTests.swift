import Foundation
import GRDB
import Core
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Synchronization
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusServer

@Suite("Stored registrations")
struct RegistrationStorageTests {
    let fixture: StatusStoreFixture
    var store: SQLiteStore { fixture.store }

    init() throws {
        fixture = try StatusStoreFixture()
    }

    @Test("An installation that never registered has no state")
    func unknown() throws {
        #expect(try store.state(of: StatusStoreFixture.key()) == nil)
    }

    @Test("A registration is read as it was stored, also after the store was reopened")
    func survivesReopening() async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key, version: 7, at: Timestamp(rawValue: 99))
        let expected = StoredRegistration(
            key: key, registration: StatusStoreFixture.registration(key, version: 7), storedAt: Timestamp(rawValue: 99))
        #expect(try store.state(of: key) == .registered(expected))
        try store.close()
        #expect(try fixture.reopened().state(of: key) == .registered(expected))
    }

    @Test("A stored registration that the parser refuses counts as unregistered, and is logged once")
    func unparsable() async throws {
        let (log, registrant) = (RecordedLog(), PrivateKey.generate())
        let registrations = Registrations(store.sealer, errors: RepeatedErrors(log.logger))
        let (key, other) = (StatusStoreFixture.key(of: registrant), StatusStoreFixture.key("other", of: registrant))
        let bytes: [UInt8] = [0x0A]
        #expect(throws: ProtobufError.self) { try PushNotificationRegistration(parsing: bytes) }
        try await store.commit(
            registrations.store(StatusStoreFixture.registration(key), bytes: bytes, as: key, at: Timestamp(rawValue: 1)))
        try await store.register(other)
        #expect(try store.read(registrations.state(of: key)) == .tombstone(version: 1))
        #expect(try store.read(registrations.registrations(of: [key.keyHash])).map(\.key) == [other])
        let record = RegistrationRecord(key: key, version: 9, changedAt: Timestamp(rawValue: 2), registration: bytes)
        #expect(try await store.commit(registrations.merge(record)) == false)
        #expect(log.messages == ["failed to parse a stored registration"])
        try await store.register(key, version: 2)
        #expect(try store.state(of: key)?.registration?.version == 2)
    }

    @Test("A device that is not notified by Web Push belongs to no push service")
    func noOrigin() async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key)
        #expect(try store.read(Registrations.head(of: key))?.isDevice(ofOrigin: 1) == false)
    }

    @Test("Versions keep all their 64 bits", arguments: [1, UInt64(Int64.max), 1 << 63, .max])
    func versions(version: UInt64) async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key, version: version)
        #expect(try store.state(of: key)?.version == version)
        try await store.unregister(key, version: version, at: Timestamp(rawValue: 2))
        #expect(try store.state(of: key) == .tombstone(version: version))
    }

    @Test("Installation ids that differ after a NUL are different")
    func embeddedNul() async throws {
        let owner = PrivateKey.generate()
        try await store.register(StatusStoreFixture.key("a\0b", of: owner), version: 3)
        #expect(try store.state(of: StatusStoreFixture.key("a", of: owner)) == nil)
        #expect(try store.state(of: StatusStoreFixture.key("a\0b", of: owner))?.version == 3)
    }

    @Test("All installations of a registrant are found, without tombstones and those of other registrants")
    func installations() async throws {
        let owner = PrivateKey.generate()
        for name in ["one", "two", "three"] { try await store.register(StatusStoreFixture.key(name, of: owner)) }
        try await store.register(StatusStoreFixture.key("one"))
        try await store.unregister(StatusStoreFixture.key("two", of: owner), version: 2, at: Timestamp(rawValue: 2))
        func found(within budget: QueryBudget?) throws -> [String] {
            let found = fixture.registrations.registrations(of: [KeyHash(of: owner.publicKey)], within: budget)
            return try store.read(found).map(\.key.installationID.string)
        }
        // Most recently changed first.
        #expect(try found(within: nil) == ["three", "one"])
        #expect(try found(within: QueryBudget()) == ["three", "one"])
        // A budget with room for a single row more.
        var spent = QueryBudget()
        for _ in 1..<QueryBudget.rowLimit { _ = spent.admits(storedByteCount: 1) }
        #expect(try found(within: spent) == ["three"])
    }

    /// Each registrant's rows are within what is free of one query.
    @Test func whatIsFreeCountsForTheWholeQuery() async throws {
        var owners: [KeyHash] = []
        for _ in 0..<8 {
            let key = StatusStoreFixture.key()
            var registration = StatusStoreFixture.registration(key)
            registration.blockedChatList = Array(repeating: [7], count: 5_000)
            try await store.commit(
                fixture.registrations.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 1)))
            owners.append(key.keyHash)
        }
        var rates = Limits.none
        // 8 KiB are read after those that are free.
        try rates.set("answer-kib=1/min")
        let limits = StatusLimits(rates)
        let found = fixture.registrations.registrations(
            of: owners, within: QueryBudget(),
            admits: { !limits.refusesReading($2, about: $1, on: &$0, at: Timestamp(rawValue: 1)) })
        #expect((1...2).contains(try store.read(found).count))
    }

    @Test func refusedRowsEndTheReading() async throws {
        var owners: [KeyHash] = []
        for _ in 0..<Registrations.registrantChunk + 8 {
            let key = StatusStoreFixture.key()
            try await store.register(key)
            owners.append(key.keyHash)
        }
        let asked = Mutex<[KeyHash]>([])
        let found = fixture.registrations.registrations(
            of: owners, within: QueryBudget(),
            admits: { [first = owners[0]] _, key, _ in
                asked.withLock { $0.append(key) }
                return key != first
            })
        #expect(try store.read(found).count == Registrations.registrantChunk - 1)
        #expect(asked.withLock { Set($0).isDisjoint(with: owners.suffix(8)) })
    }

    @Test func aLongQueryReadsKnownRegistrantsFirst() throws {
        let limits = StatusLimits(.standard)
        let owners = (0..<Registrations.registrantChunk + 8).map { _ in StatusStoreFixture.key().keyHash }
        let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
        limits.accepted(limits.standings.hasher.payer(.deviceToken, [1]), of: owners[20], at: now)
        #expect(limits.readingOrder(owners, at: now) == [owners[20]] + owners[..<20] + owners[21...])
        #expect(limits.readingOrder(Array(owners[..<30]), at: now) == Array(owners[..<30]))
    }

    /// Lists that no answer contains make a registration as large as those that answers do.
    @Test func storedSizesDecideWhatAnAnswerReads() async throws {
        let (owner, other) = (PrivateKey.generate(), PrivateKey.generate())
        for number in 1...10 {
            var registration = StatusStoreFixture.registration(StatusStoreFixture.key("\(number)", of: owner))
            registration.allowedMentionsChatList = Array(repeating: [UInt8](repeating: 7, count: 64), count: 9_000)
            try await store.commit(
                fixture.registrations.store(
                    registration, bytes: registration.encoded(), as: StatusStoreFixture.key("\(number)", of: owner),
                    at: Timestamp(rawValue: Int64(number))))
        }
        try await store.register(StatusStoreFixture.key("small", of: other), at: Timestamp(rawValue: 20))

        let sizes = Mutex<[KeyHash: Int]>([:])
        func found(refusing refused: KeyHash?) throws -> [String] {
            let found = fixture.registrations.registrations(
                of: [owner, other].map { KeyHash(of: $0.publicKey) }, within: QueryBudget(),
                admits: { _, key, byteCount in
                    sizes.withLock { $0[key] = byteCount }
                    return key != refused
                })
            return try store.read(found).map(\.key.installationID.string)
        }
        #expect(try found(refusing: nil) == ["small", "10", "9", "8", "7", "6", "5", "4"])
        #expect(try #require(sizes.withLock { $0[KeyHash(of: owner.publicKey)] }) / 7 > 9_000 * 64)
        #expect(try found(refusing: KeyHash(of: owner.publicKey)) == ["small"])
    }

    @Test("A tombstone has only key hash, installation and version")
    func tombstone() async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key, token: "tombstone-token")
        try await store.unregister(key, version: 5, at: Timestamp(rawValue: 2))
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        let left = try await queue.read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM registration WHERE version = 5 AND platform IS NULL AND query_topic IS NULL
                    AND published_query_topic IS NULL AND sealed IS NULL
                    """)
        }
        #expect(left == 1)
    }

    @Test(
        "Tombstones of installations that were never registered are forgotten after a while; others stay, and refuse older versions")
    func unfounded() async throws {
        let (registered, never, anew) = (StatusStoreFixture.key(), StatusStoreFixture.key(), StatusStoreFixture.key())
        try await store.register(registered, version: 1)
        for key in [registered, never, anew] { try await store.unregister(key, version: 2, at: Timestamp(rawValue: 10)) }
        #expect(try store.read(Registrations.head(of: never))?.neverRegistered == true)
        #expect(try store.read(Registrations.countedInstallations(of: never.keyHash, limit: 10)) == 1)
        #expect(try store.read(Registrations.countedInstallations(of: registered.keyHash, limit: 2)) == 0)
        // So many tombstones that no more are read.
        #expect(try store.read(Registrations.countedInstallations(of: registered.keyHash, limit: 1)) == 1)
        #expect(try store.read(Registrations.countedRegistrations()) == 2)
        // Registered later and unregistered again: now the tombstone stays.
        try await store.register(anew, version: 3)
        try await store.unregister(anew, version: 4, at: Timestamp(rawValue: 11))
        let month = Duration.seconds(30 * 24 * 3600)
        #expect(try await store.commit(Registrations.unfounded.forget(at: Timestamp(rawValue: 10) + month, limit: 10)) == 0)
        #expect(try await store.commit(Registrations.unfounded.forget(at: Timestamp(rawValue: 1_000) + month, limit: 10)) == 1)
        #expect(try store.state(of: never) == nil)
        #expect(try store.state(of: registered)?.version == 2)
        #expect(try store.state(of: anew)?.version == 4)
        // Imported tombstones belong to installations that were registered at another server, unless the file says otherwise.
        for (neverRegistered, forgotten) in [(false, 0), (true, 1)] {
            let record = RegistrationRecord(
                key: StatusStoreFixture.key(), version: 7, changedAt: Timestamp(rawValue: 1), registration: nil,
                neverRegistered: neverRegistered)
            #expect(try await store.commit(fixture.registrations.merge(record)))
            var exported: Bool?
            try fixture.registrations.forEachRecord(in: store) { found in
                if found.key == record.key { exported = found.neverRegistered }
                return true
            }
            #expect(exported == neverRegistered)
            let later = Timestamp(rawValue: 1_000) + month
            #expect(try await store.commit(Registrations.unfounded.forget(at: later, limit: 10)) == forgotten)
        }
    }

    @Test("Unregistering deletes token doubts, and with the last installation the registrant's topic keys")
    func unregistrationLeavesNothing() async throws {
        let phone = StatusStoreFixture.key("phone")
        let tablet = RegistrationKey(keyHash: phone.keyHash, installationID: InstallationID("tablet"))
        for key in [phone, tablet] { try await store.register(key) }
        let topics = [StatusTopics.query(phone.keyHash), StatusTopics.publishedQuery(phone.keyHash)]
        for topic in topics { try await store.keep(.random(), of: topic) }
        let devices = [1, 2].map { Registrations.device($0) }
        let doubt = TokenDoubt(version: 1, at: Timestamp(rawValue: 1))
        try await store.commit(.change(devices.map { DeliveryStorage.setDoubt(doubt, of: $0) }))
        try await store.unregister(phone, version: 2, at: Timestamp(rawValue: 2))
        #expect(try devices.map { try store.read(DeliveryStorage.doubt(of: $0)) } == [nil, doubt])
        #expect(try store.topicKey(topics[0]) != nil)
        try await store.unregister(tablet, version: 2, at: Timestamp(rawValue: 2))
        #expect(try store.read(DeliveryStorage.hasDoubts()) == false)
        for topic in topics { #expect(try store.topicKey(topic) == nil) }
    }

    @Test("A row that cannot be decrypted expires like any other, and does not prevent others from expiring")
    func unreadableRowsExpire() async throws {
        let keys = (0..<3).map { _ in StatusStoreFixture.key() }
        for key in keys { try await store.register(key, version: 4) }
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try await queue.write { try $0.execute(sql: "UPDATE registration SET sealed = x'00' WHERE id = 1") }
        try queue.close()
        let reopened = try fixture.reopened()
        let (cutoff, now) = (Timestamp(rawValue: 100), Timestamp(rawValue: 200))
        let old = try reopened.read(Registrations.registrations(unchangedSince: cutoff))
        #expect(old == keys)
        let ended = try await reopened.commit(
            StoreCommand<[Bool]>.each(old.map { Registrations.expire($0, unchangedSince: cutoff, at: now) }))
        #expect(ended == [true, true, true])
        for key in keys {
            #expect(try reopened.state(of: key)?.version == 4)
            #expect(try reopened.read(Registrations.installationCount(of: key.keyHash)) == 0)
        }
    }

    @Test("Registrants without a topic key are found page by page, newest first")
    func withoutTopicKey() async throws {
        let keys = (0..<5).map { _ in StatusStoreFixture.key() }
        for key in keys { try await store.register(key) }
        // A second device of the first registrant, and an unregistered one.
        try await store.register(RegistrationKey(keyHash: keys[0].keyHash, installationID: InstallationID("tablet")))
        try await store.unregister(keys[3], version: 2, at: Timestamp(rawValue: 2))
        let topic = StatusTopics.query(keys[2].keyHash)
        try await store.keep(.random(), of: topic)
        let hashes = keys.map(\.keyHash)
        let all = try store.read(TopicKeyStorage.registrantsWithoutKey(before: nil, limit: 100))
        #expect(all.registrants == [hashes[0], hashes[4], hashes[1]] && all.next == nil)
        let first = try store.read(TopicKeyStorage.registrantsWithoutKey(before: nil, limit: 3))
        #expect(first.registrants == [hashes[0], hashes[4]])
        let second = try store.read(TopicKeyStorage.registrantsWithoutKey(before: first.next, limit: 3))
        #expect(second.registrants == [hashes[1], hashes[0]] && second.next == nil)
    }

    @Test("A topic tag finds all of its registrants, with the matching form of the topic string")
    func topics() async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key)
        let topics = QueryTopics(of: key.keyHash)
        #expect(try store.read(TopicKeyStorage.queryTopics(withTag: topics.deployed)).map(\.topic) == [key.keyHash.hex])
        #expect(try store.read(TopicKeyStorage.queryTopics(withTag: topics.published)).map(\.topic) == ["0x" + key.keyHash.hex])

        // Finding two keys with the same topic tag would take too long, so another registrant is moved to the topic by SQL.
        let other = StatusStoreFixture.key()
        try await store.register(other)
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try await queue.write {
            try $0.execute(
                sql: "UPDATE registration SET query_topic = ? WHERE key_hash = ?",
                arguments: [Int64(topics.deployed.rawValue), Data(other.keyHash.bytes)])
        }
        try queue.close()
        let found = try fixture.reopened().read(TopicKeyStorage.queryTopics(withTag: topics.deployed))
        #expect(Set(found.map(\.topic)) == [key.keyHash.hex, other.keyHash.hex])
    }

    @Test("The topics of all registered keys are listed, without those of unregistered ones")
    func topicList() async throws {
        let stays = StatusStoreFixture.key(), leaves = StatusStoreFixture.key()
        try await store.register(stays)
        try await store.register(leaves)
        try await store.unregister(leaves, version: 2, at: Timestamp(rawValue: 2))
        let tags = try TopicKeyStorage.allTopics(in: store)
        #expect(tags == [QueryTopics(of: stays.keyHash).deployed, QueryTopics(of: stays.keyHash).published])
    }

    @Test("The topics are listed, whatever a damaged id is", arguments: [Int64.min, -1, .max])
    func topicListWithDamagedID(id: Int64) async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key)
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try await queue.write { try $0.execute(sql: "UPDATE registration SET id = ?", arguments: [id]) }
        try queue.close()
        let tags = try TopicKeyStorage.allTopics(in: fixture.reopened())
        #expect(tags == [QueryTopics(of: key.keyHash).deployed, QueryTopics(of: key.keyHash).published])
    }

    @Test("The files disclose no device token, and are not readable by other users")
    func sealed() async throws {
        let token = "a-token-that-must-not-be-found"
        try await store.register(StatusStoreFixture.key(), token: token)
        for file in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            let path = fixture.folder.path + "/" + file
            let content = try #require(FileManager.default.contents(atPath: path))
            #expect(content.range(of: Data(token.utf8)) == nil, "\(file) holds the token")
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(try #require(mode) & 0o077 == 0, "\(file) can be read by others")
        }
    }

    @Test("A row that was moved to another installation cannot be decrypted")
    func bound() async throws {
        let key = StatusStoreFixture.key("mine"), other = StatusStoreFixture.key("theirs")
        try await store.register(key)
        try await store.register(other)
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try await queue.write {
            try $0.execute(sql: "UPDATE registration SET sealed = (SELECT sealed FROM registration WHERE id = 1) WHERE id = 2")
        }
        try queue.close()
        let reopened = try fixture.reopened()
        #expect(throws: StoreError.self) { try reopened.state(of: other) }
        #expect(try reopened.state(of: key) != nil)
    }

    @Test("A registrant is found by a prefix of its hash")
    func prefixes() async throws {
        let keys = (0..<20).map { StatusStoreFixture.key(String($0)) }
        for key in keys { try await store.register(key) }
        for key in keys {
            #expect(try store.read(Registrations.keyHashes(prefix: String(key.keyHash.hex.prefix(32)), limit: 2)) == [key.keyHash])
        }
        #expect(try store.read(Registrations.keyHashes(prefix: "", limit: 50)).count == 20)
        #expect(try store.read(Registrations.registeredKeyHashes(limit: 3)) == keys.prefix(3).map(\.keyHash))
    }

    @Test("A filter selects by every condition, also by several at once")
    func filters() async throws {
        let key = StatusStoreFixture.key("phone")
        try await store.register(key, at: Timestamp(rawValue: 5))
        let hash = key.keyHash.bytes
        let digits = String(hash[0] >> 4, radix: 16)
        func found(_ set: (inout RegistrationFilter) -> Void) throws -> Int {
            var filter = RegistrationFilter()
            set(&filter)
            return try store.read(Registrations.summaries(filter, limit: 10)).count
        }
        #expect(try found { _ in } == 1)
        #expect(try found { $0.platform = .apn } == 1)
        #expect(try found { $0.platform = .firebase } == 0)
        #expect(try found { $0.isRegistered = true } == 1)
        #expect(try found { $0.isRegistered = false } == 0)
        #expect(try found { $0.changedBefore = Timestamp(rawValue: 5) } == 0)
        #expect(try found { $0.changedSince = Timestamp(rawValue: 5) } == 1)
        #expect(try found { $0.changedSince = Timestamp(rawValue: 6) } == 0)
        let all: (inout RegistrationFilter) -> Void = {
            $0.keyHashPrefix = digits
            $0.installationPrefix = Array("pho".utf8)
            $0.platform = .apn
            $0.isRegistered = true
            $0.changedBefore = Timestamp(rawValue: 6)
            $0.changedSince = Timestamp(rawValue: 5)
        }
        #expect(try found(all) == 1)
        #expect(
            try found {
                all(&$0)
                $0.installationPrefix = Array("pad".utf8)
            } == 0)
    }

    @Test("Many concurrent registrations are all stored and counted")
    func concurrency() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 { group.addTask { try await store.register(StatusStoreFixture.key(String(index))) } }
            try await group.waitForAll()
        }
        let statistics = try store.read(Registrations.statistics())
        #expect(statistics.apn == 200 && statistics.registrants == 200 && statistics.tombstones == 0)
    }

    @Test("Registrations in one batch see the version stored by the previous one")
    func batches() async throws {
        let (key, registrations) = (StatusStoreFixture.key(), fixture.registrations)
        let results = await store.commitEach(
            (1...50 as ClosedRange<UInt64>).map { version -> StoreCommand<UInt64> in
                let registration = StatusStoreFixture.registration(key, version: version)
                return Registrations.head(of: key).then { head in
                    let changes = registrations.store(
                        registration, bytes: registration.encoded(), as: key, replacing: head, at: Timestamp(rawValue: 1))
                    return .change(changes, head?.version ?? 0)
                }
            })
        #expect(try results.map { try $0.get() } == Array(0..<50))
        #expect(try store.state(of: key)?.version == 50)
    }
}
