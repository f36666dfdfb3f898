import Delivery
import Foundation
import NodeAssembly
import PushNode
import Core
import Storage
import StoreSQLite
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

/// gorush was unavailable for ten minutes, at 100 requests per second. Time is compressed: the store is filled with the result of such an outage.
@Suite("After an outage of gorush")
struct OutageTests {
    private static let age = Duration.seconds(600)
    private static let count = 60_000
    private static let deviceCount = 600
    private static let interval = Duration.milliseconds(10)

    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    @Test(
        "Waiting notifications are delivered once or expire, and new requests do not wait for all of them", .timeLimit(.minutes(10)))
    func backlog() async throws {
        try await fixture.withNode { [bob] node async throws in #expect(try await node.register(bob) == nil) }
        // The first ones were sent 605 s ago: they are too old.
        let began = Timestamp.now()
        let expiries = (0..<Self.count).map { began - .seconds(5) + Self.interval * $0 }
        try await enqueue(expiries)

        fixture.gorush.answer(.failed(retryAfter: nil))
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(100) }) { [bob] node async throws in
            #expect(try await node.notify(bob) == .internalError)
        }
        fixture.gorush.answer(.accepted)
        try await fixture.withNode { [self] node async throws in
            #expect(try await node.notify(bob) == nil)
            #expect(node.gorush.accepted.count < Self.count / 2)
            let store = try openStore()
            while try store.read(DeliveryStorage.waitingCount()) > 0 { try await Task.sleep(for: .milliseconds(50)) }
            try store.close()
        }

        let ended = Timestamp.now()
        var deliveryCounts: [[UInt8]: Int] = [:]
        for notification in fixture.gorush.accepted where !notification.message.isEmpty {
            deliveryCounts[notification.message, default: 0] += 1
        }
        #expect(deliveryCounts.values.allSatisfy { $0 == 1 })
        for (index, expiry) in expiries.enumerated() {
            let isDelivered = deliveryCounts[Self.message(index)] != nil
            if expiry <= began { #expect(!isDelivered) }
            if expiry > ended { #expect(isDelivered) }
        }
    }

    private static func message(_ index: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt64(index).bigEndian, Array.init)
    }

    private func openStore() throws -> SQLiteStore {
        try NodeAssembly.existingStore(in: fixture.folder.path, of: fixture.identity)
    }

    /// Notifications for several devices, none of them Bob's.
    private func enqueue(_ expiries: [Timestamp]) async throws {
        let store = try openStore()
        let devices = (0..<Self.deviceCount).map { TestClient(of: bob.server, installationID: InstallationID("device \($0)")) }
        let registrations = Registrations(store.sealer)
        var rows: [Int64] = []
        for device in devices {
            let registration = device.registration()
            try await store.commit(registrations.store(registration, bytes: registration.encoded(), as: device.key, at: .now()))
            rows.append(try #require(try store.read(Registrations.head(of: device.key))).id)
        }
        var changes: [Change] = []
        for (index, expires) in expiries.enumerated() {
            let (device, message) = (index % Self.deviceCount, Self.message(index))
            let notification = devices[device].notification { $0.message = message }
            changes.append(
                DeliveryStorage.enqueue(
                    DeliveryID(messageID: message, key: devices[device].key),
                    for: DeviceID(StatusStorage.protocolNumber, row: rows[device]), payload: StatusPayload.encode(notification),
                    expires: expires, by: store.sealer))
        }
        try await store.commit(StoreCommand.change(changes))
        try store.close()
    }
}
