import Core
import StatusProtocol
import StatusServer
import TestSupport
import Testing
import WakuCrypto

@testable import StatusGoImport

/// Which rows are imported: a row is refused where the server's rules refuse a client's registration.
struct StatusGoRowTests {
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let client = TestClient(of: PrivateKey.generate().publicKey)

    private func row(
        keyHash: [UInt8]? = nil, installation: [UInt8]? = nil, version: Int64? = 1,
        _ change: (inout PushNotificationRegistration) -> Void = { _ in }
    ) -> StatusGoRow {
        StatusGoRow(
            keyHash: keyHash ?? client.keyHash.bytes, installationID: installation ?? client.key.installationID.bytes, version: version,
            registration: client.registration(change).encoded())
    }

    private func refusal(_ row: StatusGoRow) -> StatusGoRow.Refusal? {
        do throws(StatusGoRow.Refusal) {
            _ = try row.record(defaultTopic: "", at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func everyRecordedRowIsImportedByteForByte() throws {
        var count = 0
        for row in StatusGoVectors.recorded.flows.flatMap({ $0.serverRowsAfter ?? [] }) {
            let registration = row.registrationIsNull ? nil : row.registration?.bytes
            // The recorded server accepts APNs registrations without a topic; this one refuses them, from clients too.
            if let registration, try PushNotificationRegistration(parsing: registration).apnTopic.isEmpty,
                try PushNotificationRegistration(parsing: registration).platform == .apn
            {
                continue
            }
            let imported = StatusGoRow(
                keyHash: row.publicKey.bytes, installationID: Array(row.installationId.utf8), version: row.version,
                registration: registration)
            // A row of token type 3 was lost by that server: it is not imported as Web Push.
            if let registration,
                try PushNotificationRegistration(parsing: registration).platform.map({ $0 == .webPush }) ?? true
            {
                #expect(refusal(imported) == .platform)
                continue
            }
            let record = try imported.record(defaultTopic: "", at: now)
            #expect(record.registration == registration)
            #expect(record.key.keyHash.bytes == row.publicKey.bytes && record.version == UInt64(row.version))
            #expect(record.changedAt == now)
            count += 1
        }
        #expect(count > 300)
    }

    @Test func rowsThatTheServerWouldRefuseAreNamed() {
        #expect(refusal(row()) == nil)
        #expect(refusal(row(keyHash: [1, 2, 3])) == .keyHash)
        #expect(refusal(row(installation: [])) == .installationID)
        #expect(refusal(row(installation: [UInt8](repeating: 65, count: 129))) == .installationID)
        #expect(refusal(row(version: nil)) == .version)
        #expect(refusal(row(version: 0)) == .version)
        #expect(refusal(row(version: -1)) == .version)
        #expect(refusal(row(version: 2)) == .contradiction)
        #expect(refusal(row(installation: Array("another".utf8))) == .contradiction)
        #expect(refusal(row { $0.unregister = true }) == .contradiction)
        #expect(refusal(row { $0.tokenType = 9 }) == .platform)
        #expect(refusal(row { $0.deviceToken = DeviceToken("") }) == .deviceToken)
        #expect(refusal(row { $0.accessToken = AccessToken("no UUID") }) == .accessToken)
        #expect(refusal(row { $0.apnTopic = "" }) == .apnTopic)
        let malformed = StatusGoRow(
            keyHash: client.keyHash.bytes, installationID: client.key.installationID.bytes, version: 1, registration: [0xFF])
        #expect(refusal(malformed) == .malformed)
    }

    @Test func aDefaultTopicCompletesRegistrationsWithoutOne() throws {
        let bytes = try #require(try row { $0.apnTopic = "" }.record(defaultTopic: "im.status", at: now).registration)
        #expect(try PushNotificationRegistration(parsing: bytes) == client.registration { $0.apnTopic = "im.status" })
        let unchanged = try #require(try row().record(defaultTopic: "im.status", at: now).registration)
        #expect(unchanged == client.registration().encoded())
    }

    @Test func rowsWithoutContentAreTombstones() throws {
        let record = try StatusGoRow(
            keyHash: client.keyHash.bytes, installationID: client.key.installationID.bytes, version: .max, registration: nil
        ).record(defaultTopic: "", at: now)
        #expect(record.registration == nil && record.version == UInt64(Int64.max))
    }
}
