import Core
import StatusProtocol
@testable import StatusRules
import TestSupport
import Testing
import WakuCrypto

@Suite("Shared keys and grants of clients that registered lately")
struct RecentClientsTests {
    private let server = PrivateKey.generate()
    private let client: TestClient
    private let clients = RecentClients()
    private let rules: RegistrationRules

    init() {
        client = TestClient(of: server.publicKey)
        rules = RegistrationRules(identity: server, clients: clients)
    }

    private func claim(
        _ registration: PushNotificationRegistration, of client: TestClient, by rules: RegistrationRules
    ) throws -> RegistrationClaim? {
        rules.claim(in: try MetadataEnvelope(parsing: client.envelope(registration), wakuSigner: client.identity.publicKey))
    }

    private func isStored(_ registration: PushNotificationRegistration, of other: TestClient? = nil) throws -> Bool {
        let claim = try #require(try claim(registration, of: other ?? client, by: rules))
        if case .store = rules.decide(claim, storedVersion: nil, registered: { nil }) { return true }
        return false
    }

    @Test("An update with the same grant is accepted by the first proof")
    func sameGrant() throws {
        #expect(clients.client(client.identity.publicKey) == nil)
        #expect(try isStored(client.registration()))
        let known = try #require(clients.client(client.identity.publicKey))
        #expect(known.grant != nil)
        #expect(try isStored(client.registration(version: 2) { $0.mutedChatList = [[UInt8](repeating: 1, count: 64)] }))
        #expect(clients.client(client.identity.publicKey)?.grant == known.grant)
    }

    @Test("A changed grant, token or key is proved again")
    func changes() throws {
        #expect(try isStored(client.registration()))
        let token = AccessToken("00000000-52d3-4b7a-8a57-0d2c6d1e4f3a")
        for position in [0, 31, 32, 63, 64] {
            #expect(try !isStored(client.registration(version: 2) { $0.grant[position] ^= 1 }), "byte \(position)")
        }
        #expect(try !isStored(client.registration(version: 2) { $0.accessToken = token }))
        #expect(try !isStored(client.registration(version: 2) { $0.grant.append(0) }))
        // Another key with the first one's grant and token.
        let other = TestClient(of: server.publicKey)
        let grant = client.registration().grant
        #expect(try !isStored(other.registration { $0.grant = grant }, of: other))
        #expect(try isStored(other.registration(), of: other))
        #expect(try !isStored(other.registration { $0.grant = grant }, of: other))
        // The proof is still that of the valid grant, and a new valid one replaces it.
        let proof = clients.client(client.identity.publicKey)?.grant
        #expect(try isStored(client.registration(version: 2)))
        let renewed = TestClient(of: server.publicKey, identity: client.identity, accessToken: token)
        #expect(try isStored(renewed.registration(version: 3)))
        #expect(clients.client(client.identity.publicKey)?.grant != proof)
        #expect(try isStored(client.registration(version: 4)))
    }

    @Test("A grant for another server is not accepted, with its own memory or the other's")
    func servers() throws {
        let otherServer = PrivateKey.generate()
        let there = TestClient(of: otherServer.publicKey, identity: client.identity)
        #expect(try isStored(client.registration()))
        #expect(try claim(client.registration(), of: client, by: RegistrationRules(identity: otherServer)) == nil)
        let grant = client.registration().grant
        let memories = [RecentClients(), RecentClients()]
        let (here, elsewhere) = (
            RegistrationRules(identity: server, clients: memories[0]), RegistrationRules(identity: otherServer, clients: memories[1])
        )
        _ = try claim(client.registration(), of: client, by: here)
        let claim = try #require(try claim(there.registration { $0.grant = grant }, of: there, by: elsewhere))
        guard case .refuse(.malformedMessage) = elsewhere.decide(claim, storedVersion: nil, registered: { nil }) else {
            Issue.record("a grant for another server was accepted")
            return
        }
        // The digest covers the server, so that even a shared memory of proofs would not accept it.
        let proof = memories[0].client(client.identity.publicKey)?.grant
        #expect(proof != nil)
        #expect(
            Grant.proof(
                of: grant, client: client.identity.publicKey, server: otherServer.publicKey, accessToken: client.accessToken, known: proof)
                == nil)
    }

    /// With a memory that does not know the client, as after a restart.
    private func error(
        _ registration: PushNotificationRegistration, of other: TestClient? = nil, proved: PushNotificationRegistration?
    ) throws -> PushNotificationRegistrationResponse.ErrorType? {
        let rules = RegistrationRules(identity: server)
        let other = other ?? client
        let envelope = try MetadataEnvelope(parsing: other.envelope(registration), wakuSigner: other.identity.publicKey)
        let claim = try #require(rules.claim(in: envelope, isStored: { _ in true }))
        #expect(claim.leavesGrant)
        let decision = rules.decide(
            claim, storedVersion: proved?.version,
            proved: { proved },
            registered: {
                Issue.record("the version is newer")
                return nil
            })
        if case .refuse(let error) = decision { return error }
        return nil
    }

    @Test("A grant that was proved when it was stored is accepted for the same token, and no other")
    func storedGrant() throws {
        let stored = client.registration()
        #expect(try error(client.registration(version: 2), proved: stored) == nil)
        // The stored registration vouches for its bytes: even for a grant that would not be valid.
        var unproved = stored
        unproved.grant[0] ^= 1
        #expect(try error(client.registration(version: 2) { $0.grant[0] ^= 1 }, proved: unproved) == nil)
        #expect(try error(client.registration(version: 2) { $0.grant[0] ^= 1 }, proved: nil) == .malformedMessage)
        for position in [0, 31, 32, 63, 64] {
            #expect(
                try error(client.registration(version: 2) { $0.grant[position] ^= 1 }, proved: stored) == .malformedMessage,
                "byte \(position)")
        }
        #expect(try error(client.registration(version: 2) { $0.grant.append(0) }, proved: stored) == .malformedMessage)
        #expect(try error(client.registration(version: 2) { $0.grant = [] }, proved: stored) == .malformedMessage)
        // The same UUID in another spelling is another token, for which the grant is not valid.
        let token = AccessToken(bytes: Array("{".utf8) + client.accessToken.bytes + Array("}".utf8))
        #expect(token.isUUID)
        #expect(try error(client.registration(version: 2) { $0.accessToken = token }, proved: stored) == .malformedMessage)
        // A changed token with a grant for it is proved.
        let renewed = TestClient(of: server.publicKey, identity: client.identity, accessToken: token)
        #expect(try error(renewed.registration(version: 2), of: renewed, proved: stored) == nil)
        #expect(try error(client.registration(version: 2), proved: nil) == nil)
    }

    @Test("A grant is not left to the decision when another flaw is certain, or the client's own grant is in memory")
    func grantsThatAreNotLeft() throws {
        func claim(_ registration: PushNotificationRegistration) throws -> RegistrationClaim {
            let envelope = try MetadataEnvelope(parsing: client.envelope(registration), wakuSigner: client.identity.publicKey)
            return try #require(rules.claim(in: envelope, isStored: { _ in true }))
        }
        #expect(try !claim(client.registration { $0.deviceToken = DeviceToken("") }).leavesGrant)
        #expect(try claim(client.registration()).leavesGrant)
        #expect(try isStored(client.registration()))
        #expect(try !claim(client.registration(version: 2)).leavesGrant)
    }

    @Test("The shared key is the client's, and is kept only after its registration was decrypted")
    func sharedKeys() throws {
        let plain = client.registration().encoded()
        #expect(try isStored(client.registration()))
        let known = try #require(clients.client(client.identity.publicKey))
        #expect(try AESGCM.open(client.sealed(plain), key: known.key, layout: .nonceFirst) == plain)
        // A stranger who signs another client's sealed registration.
        let stranger = PrivateKey.generate()
        let forged = MetadataEnvelope.encode(.registration, payload: client.sealed(plain), signedBy: stranger).bytes
        #expect(rules.claim(in: try MetadataEnvelope(parsing: forged, wakuSigner: stranger.publicKey)) == nil)
        #expect(clients.client(stranger.publicKey) == nil)
        // The noted key is used: with a wrong one nothing opens.
        clients.note(RecentClients.Client(key: .random(), grant: nil), of: client.identity.publicKey)
        #expect(try claim(client.registration(), of: client, by: rules) == nil)
    }

    @Test("Clients that do not register again are dropped")
    func lifetime() {
        let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
        let (one, other) = (PrivateKey.generate().publicKey, PrivateKey.generate().publicKey)
        func note(_ key: PublicKey) { clients.note(RecentClients.Client(key: .random(), grant: nil), of: key) }
        clients.endMinute(at: start)
        note(one)
        note(other)
        clients.endMinute(at: start + .seconds(599))
        #expect(clients.client(one) != nil)
        clients.endMinute(at: start + .seconds(600))
        note(one)
        clients.endMinute(at: start + .seconds(1_200))
        #expect(clients.client(one) != nil && clients.client(other) == nil)
        // A clock that was set back does not keep them.
        clients.endMinute(at: start)
        #expect(clients.client(one) == nil)
    }

    @Test("Their number is bounded")
    func capacity() {
        let clients = RecentClients(capacity: 2)
        let keys = (0..<5).map { _ in PrivateKey.generate().publicKey }
        for key in keys { clients.note(RecentClients.Client(key: .random(), grant: nil), of: key) }
        #expect(keys.map { clients.client($0) != nil } == [false, false, true, true, true])
    }
}
