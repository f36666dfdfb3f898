import Core
import StatusProtocol
import StatusRules
import TestSupport
import Testing
import WakuCrypto

/// `V01.md`, section 3, in the order of its steps.
@Suite("Version 0.1: rules of registrations")
struct V01RegisterRulesTests {
    typealias ErrorType = V01.RegistrationResponse.ErrorType

    private static let server = PrivateKey.generate()
    private let account = V01Account(of: server.publicKey)
    private let rules = V01.RegisterRules(server: server.publicKey)

    enum Decision: Hashable {
        case store(V01.Preferences)
        case end(UInt64)
        case keep
        case refuse(ErrorType)
    }

    private func decide(
        _ register: V01.Register, stored: V01.RecordHead? = nil, isTokenTaken: Bool = false, rules: V01.RegisterRules? = nil
    ) throws -> Decision {
        let claim = try #require((rules ?? self.rules).claim(in: register, from: account.identity.publicKey))
        #expect(claim.requestID == SHA3.hash256(register.signature))
        #expect(claim.keyHash == account.keyHash)
        switch (rules ?? self.rules).decide(claim, stored: stored, isTokenTaken: isTokenTaken) {
        case .store(let preferences, let payload):
            #expect(payload == register.payload)
            return .store(preferences)
        case .end(let version): return .end(version)
        case .keep: return .keep
        case .refuse(let error): return .refuse(error)
        }
    }

    private func decide(
        version: UInt64 = 1, stored: V01.RecordHead? = nil, isTokenTaken: Bool = false, rules: V01.RegisterRules? = nil,
        _ change: (inout V01.Preferences) -> Void
    ) throws -> Decision {
        try decide(
            account.register(account.preferences(version: version, change)), stored: stored, isTokenTaken: isTokenTaken, rules: rules)
    }

    private func head(_ version: UInt64, _ register: V01.Register? = nil) -> V01.RecordHead {
        V01.RecordHead(version: version, mark: register.map { V01.RegisterMark(requestID: $0.requestID) })
    }

    // MARK: 1 Signature

    @Test func aSignatureThatIsNotTheSendersIsDiscarded() {
        let register = account.register(version: 1)
        let others = [
            V01.Register(payload: register.payload + [0x20, 1], signature: register.signature),
            V01.Register(payload: register.payload, signature: []),
            V01.Register(payload: register.payload, signature: Array(register.signature.dropLast())),
            V01.Register(payload: register.payload, signature: register.signature.dropLast() + [27 + register.signature[64]]),
            V01.Register(account.preferences(), for: PrivateKey.generate().publicKey, signedBy: account.identity),
            V01.Register(account.preferences(), for: Self.server.publicKey, signedBy: .generate()),
        ]
        #expect(rules.claim(in: register, from: account.identity.publicKey) != nil)
        #expect(rules.claim(in: register, from: Self.server.publicKey) == nil)
        for other in others { #expect(rules.claim(in: other, from: account.identity.publicKey) == nil) }
    }

    // MARK: 2 Malformed

    @Test func versionZeroIsMalformed() throws {
        #expect(try decide(version: 0) { _ in } == .refuse(.malformedMessage))
        #expect(try decide(version: 0, stored: head(5)) { _ in } == .refuse(.malformedMessage))
        #expect(try decide(account.unregister(version: 0)) == .refuse(.malformedMessage))
    }

    @Test func aPayloadThatDoesNotParseIsMalformed() throws {
        let good = account.preferences().encoded()
        for payload in [Array(good.dropLast()), [0x0A, 0xFF], []] {
            let register = V01.Register(payload: payload, for: Self.server.publicKey, signedBy: account.identity)
            #expect(try decide(register) == .refuse(.malformedMessage))
            #expect(try decide(register, stored: head(5)) == .refuse(.malformedMessage))
        }
    }

    @Test func anAccessTokenThatIsNoUUIDIsMalformed() throws {
        for token in ["", "token", "9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3g"] {
            #expect(try decide { $0.accessToken = AccessToken(token) } == .refuse(.malformedMessage))
        }
    }

    @Test func anEmptyTokenIsMalformed() throws {
        #expect(try decide { $0.devices.append(V01Account.device("b", token: "")) } == .refuse(.malformedMessage))
    }

    @Test func anEmptyOrLongInstallationIDIsMalformed() throws {
        #expect(try decide { $0.devices[0].installationID = InstallationID("") } == .refuse(.malformedMessage))
        let long = String(repeating: "i", count: 129)
        #expect(try decide { $0.devices[0].installationID = InstallationID(long) } == .refuse(.malformedMessage))
        let longest = account.preferences { $0.devices[0].installationID = InstallationID(String(long.dropLast())) }
        #expect(try decide(account.register(longest)) == .store(longest))
    }

    @Test func anInstallationIDTwiceIsMalformed() throws {
        #expect(try decide { $0.devices.append(V01Account.device(tokenType: 2)) } == .refuse(.malformedMessage))
    }

    @Test func moreThan64DevicesAreMalformed() throws {
        let devices = (0..<65).map { V01Account.device("device-\($0)") }
        #expect(try decide { $0.devices = devices } == .refuse(.malformedMessage))
        let most = account.preferences { $0.devices = Array(devices.dropLast()) }
        #expect(try decide(account.register(most)) == .store(most))
    }

    // MARK: 3 Token types

    @Test(arguments: [0, 3, 77] as [UInt32]) func otherTokenTypesAreUnsupported(type: UInt32) throws {
        #expect(try decide { $0.devices[0].tokenType = type } == .refuse(.unsupportedTokenType))
        #expect(try decide { $0.devices.append(V01Account.device("b", tokenType: type)) } == .refuse(.unsupportedTokenType))
    }

    @Test func aPlatformThatNoGorushServesIsUnsupported() throws {
        let rules = V01.RegisterRules(server: Self.server.publicKey) { $0 == .firebase }
        #expect(try decide(rules: rules) { _ in } == .refuse(.unsupportedTokenType))
        let firebase = account.preferences { $0.devices[0].tokenType = 2 }
        #expect(try decide(account.register(firebase), rules: rules) == .store(firebase))
    }

    @Test func unsupportedTokenTypesComeBeforeWhatElseIsMalformed() throws {
        let faults: [(inout V01.Preferences) -> Void] = [
            { $0.accessToken = AccessToken("no uuid") }, { $0.devices[0].token = DeviceToken("") },
            { $0.devices[0].installationID = InstallationID("") }, { $0.devices += (0..<65).map { V01Account.device("\($0)") } },
        ]
        for fault in faults {
            let decision = try decide(isTokenTaken: true) {
                fault(&$0)
                $0.devices.append(V01Account.device("other", tokenType: 3))
            }
            #expect(decision == .refuse(.unsupportedTokenType))
        }
    }

    // MARK: 4 Version

    @Test func aVersionThatIsNotAboveTheStoredOneIsAMismatch() throws {
        for version in [1, 4, 5] as [UInt64] {
            #expect(try decide(version: version, stored: head(5)) { _ in } == .refuse(.versionMismatch))
        }
        let newer = account.preferences(version: 6)
        #expect(try decide(account.register(newer), stored: head(5)) == .store(newer))
        #expect(try decide(account.unregister(version: 5), stored: head(5)) == .refuse(.versionMismatch))
    }

    @Test func versionsThatAreNotNewerAreAMismatch() throws {
        let faults: [(inout V01.Preferences) -> Void] = [
            { $0.devices[0].tokenType = 3 }, { $0.accessToken = AccessToken("no uuid") }, { $0.devices = [] }, { $0.unregister = true },
            { $0.devices += (0..<65).map { V01Account.device("\($0)") } },
        ]
        for fault in faults { #expect(try decide(version: 2, stored: head(2), isTokenTaken: true, fault) == .refuse(.versionMismatch)) }
    }

    @Test(arguments: [1 << 63 - 1, 1 << 63, .max] as [UInt64]) func allOfUInt64AreVersions(version: UInt64) throws {
        let preferences = account.preferences(version: version)
        #expect(try decide(account.register(preferences), stored: head(version - 1)) == .store(preferences))
        #expect(try decide(account.register(preferences), stored: head(version)) == .refuse(.versionMismatch))
    }

    @Test func theStoredRegisterAgainIsKept() throws {
        let register = account.register(version: 3)
        #expect(try decide(register, stored: head(3, register)) == .keep)
        #expect(try decide(register, stored: head(4, register)) == .refuse(.versionMismatch))
        #expect(try decide(register, stored: head(3, account.register(version: 4))) == .refuse(.versionMismatch))
        let end = account.unregister(version: 4)
        #expect(try decide(end, stored: head(4, end)) == .keep)
    }

    // MARK: 5 Access token, 6 unregistration

    @Test func anAccessTokenOfAnotherRecordIsMalformed() throws {
        #expect(try decide(isTokenTaken: true) { _ in } == .refuse(.malformedMessage))
    }

    @Test func unregisterLooksAtNothingElse() throws {
        let changes: [(inout V01.Preferences) -> Void] = [
            { _ in }, { $0.devices[0].tokenType = 3 }, { $0.devices.append($0.devices[0]) }, { $0.accessToken = AccessToken("") },
            { $0.devices = (0..<65).map { V01Account.device("\($0)") } },
        ]
        for change in changes {
            let decision = try decide(version: 9, stored: head(8), isTokenTaken: true) {
                change(&$0)
                $0.unregister = true
            }
            #expect(decision == .end(9))
        }
    }

    @Test func noDevicesEndTheRecord() throws {
        #expect(try decide(version: 2) { $0.devices = [] } == .end(2))
    }
}
