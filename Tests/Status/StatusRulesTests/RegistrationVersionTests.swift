import StatusRules
import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite struct RegistrationVersionTests {
    private static let server = PrivateKey.generate()
    private static let client = TestClient(of: server.publicKey)

    /// The error of the answer; nil is success.
    private func error(
        _ registration: PushNotificationRegistration, stored: StoredState?, isIdempotent: Bool = false
    ) throws -> PushNotificationRegistrationResponse.ErrorType? {
        if case .refuse(let error) = try decision(registration, stored: stored, isIdempotent: isIdempotent) { return error }
        return nil
    }

    private func decision(
        _ registration: PushNotificationRegistration, stored: StoredState?, isIdempotent: Bool = false
    ) throws -> RegistrationDecision {
        let rules = RegistrationRules(identity: Self.server, isIdempotent: isIdempotent)
        let envelope = try MetadataEnvelope(parsing: Self.client.envelope(registration), wakuSigner: Self.client.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope))
        return rules.decide(claim, storedVersion: stored?.version, registered: { stored?.registration })
    }

    private func registered(_ registration: PushNotificationRegistration) -> StoredState {
        .registered(StoredRegistration(key: Self.client.key, registration: registration, storedAt: Timestamp(rawValue: 1)))
    }

    @Test(arguments: [1, 2, 1 << 53, 1 << 63 - 1, 1 << 63, .max - 1, .max] as [UInt64])
    func aVersionMustBeAboveTheStoredOne(_ version: UInt64) throws {
        for stored in [registered(Self.client.registration(version: version)), .tombstone(version: version)] {
            #expect(stored.version == version)
            for registration in [Self.client.registration(version: version), Self.client.unregistration(version: version)] {
                #expect(try error(registration, stored: stored) == .versionMismatch)
                var lower = registration
                lower.version = max(1, version / 2)
                #expect(try error(lower, stored: stored) == .versionMismatch)
                guard version < .max else { continue }
                var higher = registration
                higher.version += 1
                #expect(try error(higher, stored: stored) == nil)
            }
        }
    }

    @Test func unregisteringChecksNothingButTheVersion() throws {
        for version in [UInt64(1), .max] {
            guard case .unregister(let key, let remembered) = try decision(Self.client.unregistration(version: version), stored: nil) else {
                Issue.record("not unregistered")
                return
            }
            #expect(key == Self.client.key)
            #expect(remembered == version)
        }
        #expect(try error(Self.client.unregistration(version: 0), stored: nil) == .malformedMessage)
    }

    @Test func aRepetitionIsAMismatchUnlessAskedForOtherwise() throws {
        let registration = Self.client.registration(version: 7)
        #expect(try error(registration, stored: registered(registration)) == .versionMismatch)
        guard case .keep = try decision(registration, stored: registered(registration), isIdempotent: true) else {
            Issue.record("a repetition was not kept")
            return
        }
    }

    /// A version stays known in memory when its tombstone has expired.
    @Test(arguments: [true, false]) func aVersionThatIsKnownButNotStoredAnyMoreDoesNotReplaceTheGrant(isGranted: Bool) throws {
        let rules = RegistrationRules(identity: Self.server)
        var registration = Self.client.registration(version: 3)
        if !isGranted { registration.grant[0] ^= 1 }
        let envelope = try MetadataEnvelope(parsing: Self.client.envelope(registration), wakuSigner: Self.client.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope, knownVersion: { _ in 5 }))
        guard case .refuse(.versionMismatch) = rules.decide(claim, storedVersion: 5, registered: { nil }) else {
            Issue.record("an older version was not refused")
            return
        }
        switch rules.decide(claim, storedVersion: nil, registered: { nil }) {
        case .store(_, _, _) where isGranted: break
        case .refuse(.malformedMessage) where !isGranted: break
        case let decision: Issue.record("\(decision)")
        }
    }

    private static let changes: [@Sendable (inout PushNotificationRegistration) -> Void] = [
        { $0.tokenType = 2 }, { $0.deviceToken = DeviceToken("another") }, { $0.accessToken = AccessToken("another") },
        { $0.enabled = false }, { $0.version = 8 }, { $0.version = 6 }, { $0.allowedKeyList = [[1]] }, { $0.blockedChatList = [[1]] },
        { $0.grant = [] }, { $0.allowFromContactsOnly = true }, { $0.apnTopic = "another" }, { $0.blockMentions = true },
        { $0.allowedMentionsChatList = [[1]] }, { $0.mutedChatList = [[1]] }, { $0.apnTopic = "cafe\u{301}" },
    ]

    @Test(arguments: changes.indices)
    func aRepetitionMustBeEqualInEveryField(_ index: Int) throws {
        // This text and that of one change are canonically equivalent in Unicode, but differ in their bytes.
        let old = Self.client.registration(version: 7) { $0.apnTopic = "caf\u{E9}" }
        var new = old
        Self.changes[index](&new)
        let decision = try decision(new, stored: registered(old), isIdempotent: true)
        if new.version > old.version {
            guard case .store = decision else {
                Issue.record("a newer version was not stored")
                return
            }
        } else {
            guard case .refuse(.versionMismatch) = decision else {
                Issue.record("taken for a repetition: \(decision)")
                return
            }
        }
    }

    @Test func aRepeatedRegistrationAfterUnregisteringIsAMismatch() throws {
        let registration = Self.client.registration(version: 7)
        #expect(try error(registration, stored: .tombstone(version: 7), isIdempotent: true) == .versionMismatch)
        #expect(try error(Self.client.unregistration(version: 7), stored: registered(registration), isIdempotent: true) == .versionMismatch)
    }
}
