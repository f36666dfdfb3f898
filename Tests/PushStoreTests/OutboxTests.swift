import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("The outbox")
struct OutboxTests {
    let fixture: StoreFixture
    let key = StoreFixture.key()
    let delivery: DeliveryID
    var store: Store { fixture.store }

    init() async throws {
        fixture = try StoreFixture()
        delivery = DeliveryID(messageID: [1], key: key)
        try await fixture.store.register(key, version: 4)
    }

    @Test("A notification waits, with its content, also after the store was opened again")
    func waits() async throws {
        let waiting = try await store.enqueue(delivery, key, message: [9, 8, 7])
        try store.close()
        let store = try fixture.reopened()
        #expect(try store.read { try $0.waitingDeliveries() } == [waiting])
        #expect(try store.read { try $0.waiting(delivery) } == waiting)
        let entry = try #require(try store.entry(waiting.id))
        #expect(entry.notification.message == [9, 8, 7])
        #expect(entry.notification.kind == .mention)
        #expect(entry.notification.chatID == [3])
        #expect(entry.key == key)
        #expect(entry.delivery == delivery)
        #expect(entry.version == 4)
    }

    @Test("Many are loaded at once; those that are not there are left out")
    func loaded() async throws {
        let other = StoreFixture.key("tablet")
        try await store.register(other, version: 9)
        var waiting: [WaitingDelivery] = []
        for number in UInt8(1)...5 {
            let key = number.isMultiple(of: 2) ? other : key
            waiting.append(try await store.enqueue(DeliveryID(messageID: [number], key: key), key, message: [number]))
        }
        try await store.commit { [waiting] in try $0.drop(waiting[0].id) }
        let found = try store.read { try $0.outboxEntries(waiting.map(\.id) + [4711]) }
        #expect(Set(found.keys) == Set(waiting.dropFirst().map(\.id)))
        for (index, item) in waiting.enumerated().dropFirst() {
            guard case .entry(let entry)? = found[item.id] else { Issue.record("\(index) is missing"); continue }
            #expect(entry.delivery == item.delivery)
            #expect(entry.registration == item.registration)
            #expect(entry.notification.message == [UInt8(index + 1)])
            #expect(entry.version == (index.isMultiple(of: 2) ? 4 : 9))
        }
        #expect(Set(waiting.map(\.registration)).count == 2)
    }

    @Test("What gorush took leaves the outbox under whatever row, also when the device registered anew while it was on its way")
    func acceptedLate() async throws {
        _ = try await store.enqueue(delivery, key)
        try await store.commit { [key] in try $0.unregister(key, version: 5, at: Timestamp(rawValue: 2)) }
        try await store.register(key, version: 6)
        _ = try await store.enqueue(delivery, key)
        try await store.commit { [delivery] in try $0.accepted(delivery, at: Timestamp(rawValue: 5)) }
        #expect(try store.read { try $0.waitingDeliveries() }.isEmpty)
    }

    @Test("What gorush took leaves the outbox and stays known")
    func accepted() async throws {
        _ = try await store.enqueue(delivery, key)
        #expect(try store.read { try $0.wasAccepted(delivery) } == false)
        try await store.commit { try $0.accepted(delivery, at: Timestamp(rawValue: 5)) }
        #expect(try store.read { try $0.wasAccepted(delivery) })
        #expect(try store.read { try $0.waiting(delivery) } == nil)
        #expect(try store.read { try $0.waitingCount() } == 0)
    }

    @Test("What is dropped leaves no trace: it may be asked for again")
    func dropped() async throws {
        let waiting = try await store.enqueue(delivery, key)
        try await store.commit { try $0.drop(waiting.id) }
        #expect(try store.read { try $0.wasAccepted(delivery) } == false)
        let again = try await store.enqueue(delivery, key)
        #expect(again.id > waiting.id)
    }

    @Test("A device that is unregistered is not notified of what waited")
    func unregistered() async throws {
        let waiting = try await store.enqueue(delivery, key)
        try await store.commit { try $0.unregister(key, version: 5, at: Timestamp(rawValue: 2)) }
        #expect(try store.entry(waiting.id) == nil)
        #expect(try store.read { try $0.outboxEntries([waiting.id]) }.isEmpty)
        #expect(try store.read { try $0.waitingDeliveries() }.isEmpty)
    }

    @Test("An update reaches the new token")
    func updated() async throws {
        let waiting = try await store.enqueue(delivery, key)
        try await store.register(key, version: 5, token: "new")
        let entry = try #require(try store.entry(waiting.id))
        #expect(entry.deviceToken == DeviceToken("new"))
        #expect(entry.version == 5)
    }

    @Test("Deliveries and answers are forgotten by age and by count, oldest first")
    func pruned() async throws {
        let ids = (0..<10).map { DeliveryID(messageID: [$0], key: key) }
        for (index, id) in ids.enumerated() {
            _ = try await store.enqueue(id, key)
            try await store.commit { transaction in
                try transaction.accepted(id, at: Timestamp(rawValue: Int64(index)))
                try transaction.remember(answer: [0], to: id.bytes, at: Timestamp(rawValue: Int64(index)))
            }
        }
        func known() throws -> [Int] {
            try store.read { transaction in
                try ids.indices.filter { index in
                    let isAccepted = try transaction.wasAccepted(ids[index])
                    #expect(try (transaction.answer(to: ids[index].bytes) != nil) == isAccepted)
                    return isAccepted
                }
            }
        }
        try await store.commit { try $0.prune(before: Timestamp(rawValue: 3), keeping: 100) }
        #expect(try known() == Array(3..<10))
        try await store.commit { try $0.prune(before: Timestamp(rawValue: 0), keeping: 2) }
        #expect(try known() == [8, 9])
        try await store.commit { try $0.prune(before: Timestamp(rawValue: 100), keeping: 100) }
        #expect(try known() == [])
    }

    @Test("An answer is remembered as it was first given")
    func answers() async throws {
        try await store.commit { try $0.remember(answer: [1, 2], to: [7], at: Timestamp(rawValue: 1)) }
        try await store.commit { try $0.remember(answer: [9], to: [7], at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try $0.answer(to: [7]) } == [1, 2])
        #expect(try store.read { try $0.answer(to: [8]) } == nil)
    }
}
