import StatusRules
import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// `PROTOCOL.md`, section 4, in the order of its steps.
@Suite struct RegistrationRulesTests {
    typealias ErrorType = PushNotificationRegistrationResponse.ErrorType
    typealias Change = @Sendable (inout PushNotificationRegistration) -> Void

    private static let server = PrivateKey.generate()
    private static let client = TestClient(of: server.publicKey)
    private let rules = RegistrationRules(identity: server)

    /// A decision in a comparable form.
    enum Decision: Hashable {
        case store(PushNotificationRegistration)
        case unregister(UInt64)
        case keep
        case refuse(ErrorType)
    }

    private func claim(sealed payload: [UInt8], by identity: PrivateKey = client.identity) throws -> RegistrationClaim? {
        let bytes = MetadataEnvelope.encode(.registration, payload: payload, signedBy: identity).bytes
        return rules.claim(in: try MetadataEnvelope(parsing: bytes, wakuSigner: identity.publicKey))
    }

    private func decision(
        on plain: [UInt8], stored: StoredState? = nil, rules: RegistrationRules? = nil
    ) throws -> Decision {
        let claim = try #require(try claim(sealed: Self.client.sealed(plain)))
        switch (rules ?? self.rules).decide(claim, storedVersion: stored?.version, registered: { stored?.registration }) {
        case .store(let key, let registration, let bytes):
            #expect(key == Self.client.key || registration.installationID != Self.client.installationID)
            #expect(bytes == plain)
            return .store(registration)
        case .unregister(let key, let version):
            #expect(key == Self.client.key)
            return .unregister(version)
        case .keep: return .keep
        case .refuse(let error): return .refuse(error)
        }
    }

    private func registered(_ registration: PushNotificationRegistration) -> StoredState {
        .registered(StoredRegistration(key: Self.client.key, registration: registration, storedAt: Timestamp(rawValue: 1)))
    }

    @Test func registrationsThatCannotBeUnsealedAreDiscarded() throws {
        let sealed = Self.client.sealed(Self.client.registration().encoded())
        #expect(try claim(sealed: sealed) != nil)
        #expect(try claim(sealed: sealed, by: .generate()) == nil)
        #expect(try claim(sealed: Array(sealed.dropLast())) == nil)
        #expect(try claim(sealed: [1, 2, 3]) == nil)
    }

    /// While nodes of a cluster have other VAPID keys, another node may accept what this one refuses: the client tries again.
    @Test(arguments: [false, true])
    func webPushForAKeyOfAnotherNodeIsRefusedForNow(isChanging: Bool) throws {
        let receiver = WebPushReceiver()
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let key = P256PrivateKey.generate().publicKey
        func refusal(of named: P256PublicKey?, by own: [P256PublicKey]) throws -> ErrorType? {
            let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys, vapidKey: named))
            let registration = Self.client.registration {
                $0.tokenType = Platform.webPush.tokenType
                $0.deviceToken = DeviceToken(bytes: subscription.json)
            }
            let rules = RegistrationRules(identity: Self.server, webPushKeys: own, isWebPushChanging: { isChanging })
            let sealed = Self.client.sealed(registration.encoded())
            let bytes = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: Self.client.identity).bytes
            let envelope = try MetadataEnvelope(parsing: bytes, wakuSigner: Self.client.identity.publicKey)
            let claim = try #require(rules.claim(in: envelope))
            guard case .refuse(let error) = rules.decide(claim, storedVersion: nil, registered: { nil }) else { return nil }
            return error
        }
        #expect(try refusal(of: key, by: [key]) == nil)
        #expect(try refusal(of: nil, by: [key]) == nil)
        #expect(try refusal(of: P256PrivateKey.generate().publicKey, by: [key]) == (isChanging ? .internalError : .malformedMessage))
        #expect(try refusal(of: key, by: []) == (isChanging ? .internalError : .unsupportedTokenType))
    }

    /// A node of a release without Web Push would post the device to gorush, as an iOS one: the client tries again.
    @Test(arguments: [false, true])
    func webPushIsRefusedWhileANodeDoesNotKnowIt(isUnknown: Bool) throws {
        let receiver = WebPushReceiver()
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys))
        let rules = RegistrationRules(
            identity: Self.server, webPushKeys: [P256PrivateKey.generate().publicKey], isWebPushUnknown: { isUnknown })
        let webPush = Self.client.registration {
            $0.tokenType = Platform.webPush.tokenType
            $0.deviceToken = DeviceToken(bytes: subscription.json)
        }
        let cases: [(PushNotificationRegistration, ErrorType?)] = [
            (webPush, isUnknown ? .internalError : nil), (Self.client.registration(), nil),
        ]
        for (registration, error) in cases {
            let sealed = Self.client.sealed(registration.encoded())
            let bytes = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: Self.client.identity).bytes
            let envelope = try MetadataEnvelope(parsing: bytes, wakuSigner: Self.client.identity.publicKey)
            let claim = try #require(rules.claim(in: envelope))
            let decision = rules.decide(claim, storedVersion: nil, registered: { nil })
            if case .refuse(let refusal) = decision { #expect(refusal == error) } else { #expect(error == nil) }
        }
    }

    @Test func theRequestIDIsTheHashOfTheSealedBytes() throws {
        for plain in [Self.client.registration().encoded(), [0xFF]] {
            let sealed = Self.client.sealed(plain)
            let claim = try #require(try claim(sealed: sealed))
            #expect(claim.requestID == Shake256.hash64(sealed))
            #expect(claim.sender == Self.client.identity.publicKey)
        }
    }

    /// Invalid protobuf, a string that is not UTF-8, an empty plaintext.
    @Test(arguments: ["ff", "12028080", ""])
    func registrationsThatCannotBeParsedAreMalformed(_ digits: String) throws {
        #expect(try decision(on: hex(digits)) == .refuse(.malformedMessage))
        #expect(try #require(try claim(sealed: Self.client.sealed(hex(digits)))).key == nil)
    }

    @Test func aGoodRegistrationIsStoredAsItCame() throws {
        let registration = Self.client.registration()
        #expect(try decision(on: registration.encoded()) == .store(registration))
        // Unknown fields are kept: ``decision(on:stored:rules:)`` compares the bytes.
        #expect(try decision(on: registration.encoded() + hex("980601")) == .store(registration))
        #expect(try #require(try claim(sealed: Self.client.sealed(registration.encoded()))).key == Self.client.key)
    }

    @Test(arguments: [Platform.apn, .firebase])
    func bothPlatformsAreTaken(_ platform: Platform) throws {
        let registration = Self.client.registration { $0.tokenType = UInt32(platform.rawValue) }
        #expect(try decision(on: registration.encoded()) == .store(registration))
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let error: ErrorType?
        let change: Change

        init(_ description: String, _ error: ErrorType?, _ change: @escaping Change) {
            testDescription = description
            self.error = error
            self.change = change
        }
    }

    private static let rows = [
        Row("installation_id empty", .malformedMessage) { $0.installationID = InstallationID("") },
        Row("installation_id of 129 bytes", .malformedMessage) { $0.installationID = InstallationID(String(repeating: "i", count: 129)) },
        Row("installation_id of 128 bytes", nil) { $0.installationID = InstallationID(String(repeating: "i", count: 128)) },
        Row("installation_id of 65 letters of 2 bytes", .malformedMessage) {
            $0.installationID = InstallationID(String(repeating: "é", count: 65))
        },
        Row("version 0", .malformedMessage) { $0.version = 0 },
        Row("token_type 0", .unsupportedTokenType) { $0.tokenType = 0 },
        Row("token_type 3", .unsupportedTokenType) { $0.tokenType = 3 },
        Row("token_type 2^31", .unsupportedTokenType) { $0.tokenType = 1 << 31 },
        Row("device_token empty", .malformedMessage) { $0.deviceToken = DeviceToken("") },
        Row("access_token empty", .malformedMessage) { $0.accessToken = AccessToken("") },
        Row("access_token no UUID, but granted", .malformedMessage) {
            $0.accessToken = AccessToken("no-uuid")
            $0.grant = Grant.make(client: client.identity, server: server.publicKey, accessToken: $0.accessToken)
        },
        Row("access_token in another form, but granted", nil) {
            $0.accessToken = AccessToken("{9F1B0C6E-52D3-4B7A-8A57-0D2C6D1E4F3A}")
            $0.grant = Grant.make(client: client.identity, server: server.publicKey, accessToken: $0.accessToken)
        },
        Row("grant empty", .malformedMessage) { $0.grant = [] },
        Row("grant for the token in another form", .malformedMessage) {
            $0.accessToken = AccessToken("9F1B0C6E-52D3-4B7A-8A57-0D2C6D1E4F3A")
        },
        Row("grant by another client", .malformedMessage) {
            $0.grant = Grant.make(client: server, server: server.publicKey, accessToken: $0.accessToken)
        },
        Row("grant for another server", .malformedMessage) {
            $0.grant = Grant.make(client: client.identity, server: client.identity.publicKey, accessToken: $0.accessToken)
        },
        Row("grant with V of 27 and up", .malformedMessage) { $0.grant[64] += 27 },
        Row("APN without apn_topic", .malformedMessage) { $0.apnTopic = "" },
        Row("Firebase without apn_topic", nil) {
            $0.tokenType = 2
            $0.apnTopic = ""
        },
        Row("not enabled", nil) { $0.enabled = false },
        Row("version 2^63", nil) { $0.version = 1 << 63 },
        Row("version 2^64-1", nil) { $0.version = .max },
    ]

    @Test(arguments: rows)
    func eachRowOfTheTable(_ row: Row) throws {
        let registration = Self.client.registration(row.change)
        let expected = row.error.map(Decision.refuse) ?? .store(registration)
        #expect(try decision(on: registration.encoded()) == expected)
    }

    @Test func errorsComeInTheOrderOfTheTable() throws {
        // All fields are invalid at first, and are corrected one by one.
        var registration = PushNotificationRegistration()
        let stored = StoredState.tombstone(version: 5)
        func expect(_ decision: Decision) throws {
            #expect(try self.decision(on: registration.encoded(), stored: stored) == decision)
        }
        registration.version = 1
        try expect(.refuse(.malformedMessage))
        registration.installationID = Self.client.installationID
        registration.version = 0
        try expect(.refuse(.malformedMessage))
        registration.version = 5
        try expect(.refuse(.versionMismatch))
        registration.version = 6
        try expect(.refuse(.unsupportedTokenType))
        registration.tokenType = 1
        try expect(.refuse(.malformedMessage))
        registration.unregister = true
        try expect(.unregister(6))
        registration = Self.client.registration(version: 6)
        try expect(.store(registration))
    }
}
