import Core
import NodeAPI
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusServer

/// `Tests/models/status-rules.pml`: what each message, dead token and passage of time does to the row of an installation, by the node's own
/// handler on a store.
@Suite struct StatusModelTableTests {
    private enum RowKind: Int, CaseIterable { case absent, registered, ended, unfounded }
    private enum Intent: Int, CaseIterable { case register, unregister }
    private enum Relation: Int, CaseIterable {
        case below, equal
        case sameMessage = 2
        case above

        var version: UInt64 { self == .below ? 4 : self == .above ? 6 : 5 }
    }
    /// The change of a row: unchanged, or the new kind of row, or deleted.
    private static let changes = ["UNCHANGED"]
    private static let deleted = 4

    private static let server = PrivateKey.generate()
    private static let identity = PrivateKey.generate()
    private let fixture: StatusStoreFixture
    private var store: any Store { fixture.store }

    init() throws {
        fixture = try StatusStoreFixture()
    }

    // MARK: Cases

    private func client(_ number: Int) -> TestClient {
        TestClient(of: Self.server.publicKey, identity: Self.identity, installationID: InstallationID("installation-\(number)"))
    }

    private func hash(_ number: UInt8) -> MessageHash { MessageHash(bytes: [UInt8](repeating: number, count: 32)) }
    private static let storedMessage: UInt8 = 1

    /// - Returns: the error of the answer; nil is success.
    @discardableResult
    private func take(
        _ registration: PushNotificationRegistration, _ message: UInt8, of client: TestClient, isKnown: Bool = false,
        isIdempotent: Bool = false
    ) async throws -> PushNotificationRegistrationResponse.ErrorType? {
        let rules = RegistrationRules(identity: Self.server, isIdempotent: isIdempotent)
        let envelope = try MetadataEnvelope(parsing: client.envelope(registration), wakuSigner: client.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope, knownVersion: { _ in isKnown ? 9 : nil }))
        let handler = RegistrationHandler(
            rules: rules, registrations: fixture.registrations, limits: StatusLimits(.none), drain: Drain())
        return try await store.commit(handler.change(claim, hash(message), at: Timestamp(rawValue: 1))).error
    }

    private func head(of client: TestClient) throws -> RegistrationHead? { try fixture.store.read(Registrations.head(of: client.key)) }

    private func kind(_ head: RegistrationHead?) -> RowKind {
        guard let head else { return .absent }
        return head.isRegistered ? .registered : head.neverRegistered ? .unfounded : .ended
    }

    /// Makes a row of this kind, of version 5.
    private func prepare(_ kind: RowKind, of client: TestClient) async throws {
        switch kind {
        case .absent: break
        case .registered: try await take(client.registration(version: 5), Self.storedMessage, of: client)
        case .ended:
            try await take(client.registration(version: 4), 0, of: client)
            try await take(client.unregistration(version: 5), Self.storedMessage, of: client)
        case .unfounded: try await take(client.unregistration(version: 5), Self.storedMessage, of: client)
        }
        #expect(self.kind(try head(of: client)) == kind)
    }

    private static func describe(_ error: PushNotificationRegistrationResponse.ErrorType?) -> Int {
        switch error {
        case nil: 1
        case .versionMismatch: 2
        case .malformedMessage: 3
        default: 9
        }
    }

    // MARK: Tables

    private func messages() async throws -> [ModelTable.Entry] {
        var entries: [ModelTable.Entry] = []
        for row in RowKind.allCases {
            for intent in Intent.allCases {
                for relation in Relation.allCases {
                    for place in 0..<8 {
                        let (isFlawed, isKnown, isIdempotent) = (place & 4 != 0, place & 2 != 0, place & 1 != 0)
                        let isPossible =
                            (row != .absent || relation == .above) && !(intent == .unregister && isFlawed)
                            && !(relation == .sameMessage && (isFlawed || (row == .registered) != (intent == .register)))
                        let description =
                            "\(row), \(intent), \(relation), \(isFlawed ? "flawed" : "granted"), \(isKnown ? "known" : "not known"), "
                            + (isIdempotent ? "idempotent" : "strict")
                        guard isPossible else {
                            entries.append((ModelTable.impossible, description))
                            continue
                        }
                        let client = client(entries.count)
                        try await prepare(row, of: client)
                        let before = try head(of: client)
                        var registration =
                            intent == .register
                            ? client.registration(version: relation.version) : client.unregistration(version: relation.version)
                        if isFlawed { registration.grant[0] ^= 1 }
                        let message = relation == .sameMessage ? Self.storedMessage : 2
                        let error = try await take(registration, message, of: client, isKnown: isKnown, isIdempotent: isIdempotent)
                        let after = try head(of: client)
                        let isUnchanged =
                            before?.version == after?.version && before?.message == after?.message && kind(before) == kind(after)
                        if !isUnchanged {
                            // The model relies on this: a changed row has version and mark of the message.
                            #expect(after?.version == relation.version && after?.message == MessageMark(of: hash(message)))
                        }
                        let change = isUnchanged ? 0 : after == nil ? Self.deleted : kind(after).rawValue
                        entries.append((10 * Self.describe(error) + change, description))
                    }
                }
            }
        }
        return entries
    }

    /// The kind of row after a change that the node makes itself; the version stays, and the mark goes.
    private func change(of client: TestClient, _ command: (RegistrationHead?) async throws -> Void) async throws -> Int {
        let before = try head(of: client)
        try await command(before)
        let after = try head(of: client)
        guard kind(before) != kind(after) else {
            #expect(before?.version == after?.version && before?.message == after?.message)
            return 0
        }
        guard let after else { return Self.deleted }
        #expect(after.version == before?.version && after.message == nil)
        return kind(after).rawValue
    }

    private func failures() async throws -> [ModelTable.Entry] {
        let source = StatusDeliverySource(fixture.store.sealer)
        let sources = DeliverySources([source])
        var entries: [ModelTable.Entry] = []
        for row in RowKind.allCases {
            for isPosted in [false, true] {
                let client = client(10_000 + entries.count)
                try await prepare(row, of: client)
                let version: UInt64 = isPosted ? 5 : 4
                let change = try await change(of: client) { head in
                    guard let head else { return }
                    let device = Registrations.device(head.id)
                    let stored = try fixture.store.read(sources.versions(of: [device]))[device]
                    let decision = VerdictRules.decide(
                        .dead, storedVersion: stored, notifiedVersion: version, doubt: nil, at: Timestamp(rawValue: 2))
                    guard decision == .unregister else { return }
                    try await store.commit(source.endDevice(head.id, version: version, at: Timestamp(rawValue: 2)))
                }
                entries.append((change, "\(row), posted to \(isPosted ? "its" : "another") version"))
            }
        }
        return entries
    }

    private func times(
        from number: Int, _ command: @escaping (TestClient) async throws -> Void
    ) async throws -> [ModelTable.Entry] {
        var entries: [ModelTable.Entry] = []
        for row in RowKind.allCases {
            let client = client(number + row.rawValue)
            try await prepare(row, of: client)
            entries.append((try await change(of: client) { _ in try await command(client) }, "\(row)"))
        }
        return entries
    }

    private func reusesIDs() async throws -> Bool {
        let other = try StatusStoreFixture()
        let (first, second) = (StatusStoreFixture.key(), StatusStoreFixture.key())
        try await other.store.unregister(first, version: 1)
        let id = try other.store.read(Registrations.head(of: first))?.id
        let later = Timestamp(rawValue: 9) + .seconds(30 * 24 * 3600)
        #expect(try await other.store.commit(Registrations.unfounded.forget(at: later, limit: 1)) == 1)
        try await other.store.register(second)
        return try other.store.read(Registrations.head(of: second))?.id == id
    }

    @Test func rules() async throws {
        var table = ModelTable("status-rules.pml", by: "StatusModelTableTests")
        table.define(["ABSENT", "REGISTERED", "ENDED", "UNFOUNDED", "FORGOTTEN"])
        table.define(Self.changes)
        table.define(["REGISTER", "UNREGISTER"])
        table.define(["BELOW", "EQUAL", "SAME_MESSAGE", "ABOVE"])
        table.define(["GRANTED", "FLAWED"])
        table.define(["SUCCESS", "VERSION_MISMATCH", "MALFORMED"], from: 1)
        table.add("statusRules", try await messages())
        table.add("statusFailures", try await failures())
        let later = Timestamp(rawValue: 9)
        table.add(
            "statusLifetime",
            try await times(from: 20_000) { client in
                _ = try await store.commit(Registrations.expire(client.key, unchangedSince: later, at: later))
            })
        table.add(
            "statusForgetting",
            try await times(from: 30_000) { _ in
                _ = try await store.commit(Registrations.unfounded.forget(at: later + .seconds(30 * 24 * 3600), limit: 10_000))
            })
        table.define("statusReusesIDs", try await reusesIDs())
        try table.write()
    }

    /// The models leave such messages out.
    @Test func messagesOfOthersAndForOthersAreDropped() throws {
        let client = client(0)
        let rules = RegistrationRules(identity: Self.server)
        let sealed = client.sealed(client.registration().encoded())
        let forger = PrivateKey.generate()
        let forged = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: forger).bytes
        #expect(rules.claim(in: try MetadataEnvelope(parsing: forged, wakuSigner: forger.publicKey)) == nil)
        let elsewhere = RegistrationRules(identity: .generate())
        let own = try MetadataEnvelope(parsing: client.envelope(client.registration()), wakuSigner: client.identity.publicKey)
        #expect(rules.claim(in: own) != nil && elsewhere.claim(in: own) == nil)
    }
}
