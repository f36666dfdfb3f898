import Foundation
import Core
import SessionProtocol
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import SessionStandIns

@Suite struct SessionStandInTests {
    private let sodium: Sodium

    init() throws {
        sodium = try Sodium.load()
    }

    private func client(_ kind: SessionClient.Kind = .person) throws -> SessionClient {
        try #require(SessionClient(sodium: sodium, kind: kind))
    }

    // MARK: The client with this package's server

    @Test(arguments: [SessionClient.Kind.person, .group]) func bodiesAreAcceptedByTheServer(kind: SessionClient.Kind) throws {
        let client = try client(kind)
        let device = SessionClient.Device(token: "a \"token\"", namespaces: [-400, 0, 17], wantsData: false)
        let verifier = SignatureVerifier(sodium: sodium)
        let form = try SubscriptionForm(try JSONValue(parsing: client.subscribeBody(for: device, at: 1_700_000_000)[...]))
        try verifier.verify(form)
        #expect(form.authority.account == client.account && form.namespaces == [-400, 0, 17] && !form.wantsData)
        #expect(form.device == SubscriberDevice(service: .firebase, token: "a \"token\""))
        #expect(form.encryptionKey.secret.withBytes { Array($0) } == device.encryptionKey.secret.withBytes { Array($0) })
        try verifier.verify(try UnsubscriptionForm(try JSONValue(parsing: client.unsubscribeBody(for: device, at: 1_700_000_000)[...])))
    }

    @Test(arguments: OnionEncryption.allCases) func onionRequestIsOpenedAndItsAnswerToo(encryption: OnionEncryption) throws {
        let key = try #require(OnionKey(.random(count: 32), sodium: sodium))
        let onion = OnionClient(serverKey: key.publicKey, sodium: sodium)
        let request = try onion.request("POST", "/subscribe", body: [1, 2, 3], encryption: encryption)
        let opened = try key.open(request.body)
        let inner = try OnionInnerRequest(parsing: opened.plain)
        #expect(inner.method == "POST" && inner.path == "/subscribe" && inner.body == [1, 2, 3])
        let answer = try onion.open(opened.seal(.json("{}")), to: request)
        #expect(answer == OnionClient.Answer(code: 200, body: Array("{}".utf8)))
        // The answer to another request is refused.
        let other = try onion.request("POST", "/subscribe", body: [], encryption: encryption)
        #expect(throws: OnionClient.Malformed()) { try onion.open(opened.seal(.json("{}")), to: other) }
    }

    @Test func notificationIsReadByItsDevice() throws {
        let key = SymmetricKey.random()
        let account = try client().account
        for (byteCount, wantsData, service) in [
            (10, true, PushService.apns), (2501, true, .apns), (2501, true, .firebase), (10, false, .huawei),
        ] {
            let message = NotifyMessage(
                account: account, hash: String(repeating: "h", count: 43), namespace: -3, storedAt: 1, expiresAt: 2,
                data: [UInt8](repeating: 7, count: byteCount))
            let sealed = NotificationPayload(message, wantsData: wantsData, service: service).sealedBytes(with: key, sodium: sodium)
            let payload = Data(sealed).base64EncodedString()
            let read = try ReceivedNotification(opening: payload, key: key, sodium: sodium)
            #expect(read.account == account && read.hash == message.hash && read.namespace == -3)
            #expect(read.storedAt == 1 && read.expiresAt == 2)
            #expect(read.dataByteCount == (wantsData ? byteCount : nil) && read.isDataLeftOut == (byteCount == 2501))
            #expect(read.data == (byteCount == 10 && wantsData ? [UInt8](repeating: 7, count: 10) : nil))
            #expect(throws: ReceivedNotification.Malformed()) {
                try ReceivedNotification(opening: payload, key: .random(), sodium: sodium)
            }
        }
    }

    // MARK: The storage server

    /// A client's connection with the number 1 to a server.
    private func connect(to server: StorageServerStandIn) async throws -> (OxenMQClient, Events) {
        let events = Events()
        let connections = OxenMQClient(sodium: sodium) { _, event in
            events.append(event)
            return .proceed
        }
        let description = try #require(server.descriptions.first)
        connections.connect(.init(rawValue: 1), to: OxenAddress(endpoint: description.endpoint, serverKey: description.publicKey))
        try await eventually { events.all == [.hello] }
        return (connections, events)
    }

    @Test func storageServerMonitorsAndReports() async throws {
        let server = try await StorageServerStandIn(sodium: sodium, swarms: [5])
        let (connections, events) = try await connect(to: server)
        let connection = ConnectionNumber(rawValue: 1)
        let (person, group) = (try client(), try client(.group))
        let device = SessionClient.Device(token: "token")
        let entries = [person, group].map { $0.monitorEntry(of: device, at: 1_700_000_000) }
        var forged = entries[0].bytes
        forged[forged.count - 10] ^= 1
        let body = try #require(MonitorEntry.body(of: entries))
        connections.request(connection, MonitorEntry.command, tag: [1], body: body)
        connections.request(connection, MonitorEntry.command, tag: [2], body: forged)
        try await eventually { events.all.count == 3 }
        guard case .reply([1], let first) = events.all[1], case .reply([2], let second) = events.all[2] else {
            Issue.record("\(events.all)")
            return
        }
        #expect(MonitorOutcome.outcomes(parsing: first[0], count: 2) == [.success, .success])
        #expect(MonitorOutcome.outcomes(parsing: second[0], count: 1) == [.refused(.signature)])
        #expect(server.figures == .init(connections: 1, requests: 2, accepted: 2, refused: 1, accounts: 2))

        let message = NotifyMessage.sample(of: person.account, data: [9])
        #expect(server.report(message) == 1)
        try await eventually { events.all.count == 4 }
        #expect(events.all[3] == .command("notify.message", parts: [message.encoded()]))
        #expect(server.report(.sample(of: try client().account)) == 0)
        await connections.shutDown()
        try await eventually { server.figures.connections == 0 && !server.isMonitored(person.account) }
        await server.shutDown()
    }

    @Test func manyServersAreTellable() async throws {
        let servers = try await StorageServerStandIn(sodium: sodium, verifies: false, swarms: [5, 6, 7])
        let events = Events()
        let connections = OxenMQClient(sodium: try .load()) { connection, event in
            if connection.rawValue == 2 { events.append(event) }
            return .proceed
        }
        for (number, server) in servers.descriptions.enumerated() {
            connections.connect(.init(rawValue: UInt64(number)), to: OxenAddress(endpoint: server.endpoint, serverKey: server.publicKey))
        }
        try await eventually { servers.figures.connections == 3 && events.all == [.hello] }
        let group = try client(.group)
        let entry = group.monitorEntry(of: SessionClient.Device(token: "token"), at: 1_700_000_000)
        connections.request(.init(rawValue: 2), MonitorEntry.command, tag: [1], body: entry.bytes)
        try await eventually { events.all.count == 2 }
        // Only at the server that was asked.
        #expect(servers.report(.sample(of: group.account)) == 1)
        try await eventually { events.all.count == 3 }
        await connections.shutDown()
        await servers.shutDown()
    }

    @Test func forgottenConnectionsAreNotCounted() async throws {
        let server = try await StorageServerStandIn(sodium: sodium, verifies: false, swarms: [5])
        let (connections, events) = try await connect(to: server)
        let group = try client(.group)
        let entry = group.monitorEntry(of: SessionClient.Device(token: "token"), at: 1_700_000_000)
        connections.request(.init(rawValue: 1), MonitorEntry.command, tag: [1], body: entry.bytes)
        try await eventually { server.isMonitored(group.account) }
        server.forgetConnections()
        #expect(!server.isMonitored(group.account))
        connections.request(.init(rawValue: 1), MonitorEntry.command, tag: [2], body: entry.bytes)
        try await eventually { events.all.count == 3 }
        #expect(!server.isMonitored(group.account) && server.figures.connections == 0)
        await connections.shutDown()
        await server.shutDown()
    }

    @Test func serversEndWhenTheirUseFails() async throws {
        struct Failure: Error {}
        var port: UInt16?
        await #expect(throws: Failure.self) {
            try await StorageServerStandIn.running(sodium: sodium, swarms: [5]) { servers in
                port = servers.descriptions.first?.port
                throw Failure()
            }
        }
        // The port is free again.
        await (try OxenMQServer(sodium: sodium, ports: [try #require(port)]) { _, _ in [] }).shutDown()
    }

    @Test func portThatIsInUseIsAnError() async throws {
        let server = try await OxenMQServer(sodium: sodium) { _, _ in [] }
        let port = try #require(server.listeners.first).port
        let error = await #expect(throws: OxenMQServer.Failure.self) {
            _ = try await OxenMQServer(sodium: sodium, ports: [0, port]) { _, _ in [] }
        }
        #expect(error?.description == "OxenMQ cannot listen: Address already in use")
        await server.shutDown()
    }
}

/// With PyNaCl and pyzmq as peers, if `LIBP2P_PYTHON` names a Python that has them.
@Suite(
    .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with pyzmq: see Deploy/test"), .timeLimit(.minutes(5)))
struct SessionStandInInteropTests {
    private let sodium: Sodium
    private let python: PythonPeer

    init() throws {
        sodium = try Sodium.load()
        python = try PythonPeer("session_client.py")
    }

    @Test func storageServerIsOneForPyzmq() async throws {
        let server = try await StorageServerStandIn(sodium: sodium, swarms: [5])
        let description = try #require(server.descriptions.first)
        let key = Ed25519PrivateKey.generate()
        let client = try #require(SessionClient(sodium: sodium, key: key))
        let seed = key.seed.withBytes { hexString($0) }
        try python.tell("monitor \(description.port) \(hexString(description.publicKey)) \(seed) 1700000000")
        #expect(try await python.says("monitored") == [hexString(Array("d7:successi1ee".utf8))])
        let message = NotifyMessage.sample(of: client.account, data: [9])
        #expect(server.report(message) == 1)
        try python.tell("report")
        #expect(try await python.says("reported") == [hexString(message.encoded())])
        await server.shutDown()
    }

    @Test(arguments: [SessionClient.Kind.person, .group]) func subscriptionIsSignedForPyNaCl(kind: SessionClient.Kind) async throws {
        let client = try #require(SessionClient(sodium: sodium, kind: kind))
        let device = SessionClient.Device(token: "token", namespaces: [-400, 0, 17])
        try python.tell("subscription \(hexString(client.subscribeBody(for: device, at: 1_700_000_000)))")
        #expect(try await python.says("subscription") == ["ok"])
    }

    @Test(arguments: OnionEncryption.allCases) func onionRequestIsOneForPyNaCl(encryption: OnionEncryption) async throws {
        let secret = SecretBytes.random(count: 32)
        let onion = OnionClient(serverKey: sodium.x25519PublicKey(of: secret), sodium: sodium)
        let request = try onion.request("POST", "/subscribe", body: Array("{1}".utf8), encryption: encryption)
        try python.tell("onion \(secret.withBytes { hexString($0) }) \(hexString(request.body))")
        let opened = try await python.says("onion")
        let head = String(decoding: bytes(hex: opened[0]) ?? [], as: UTF8.self)
        #expect(head == #"{"method":"POST","endpoint":"/subscribe","headers":{"content-type":"application/json"}}"#)
        #expect(opened.dropFirst() == [hexString(Array("{1}".utf8)), "whole"])
        let sealed = try #require(bytes(hex: try await python.says("answer")[0]))
        #expect(try onion.open(sealed, to: request) == OnionClient.Answer(code: 201, body: Array("}1{".utf8)))
    }

    @Test func notificationOfPyNaClIsRead() async throws {
        let key = SymmetricKey.random()
        let account = try #require(SessionClient(sodium: sodium)).account
        try python.tell("payload \(key.secret.withBytes { hexString($0) }) \(account.hex) abc 0708")
        let read = try ReceivedNotification(opening: try await python.says("payload")[0], key: key, sodium: sodium)
        #expect(read.account == account && read.hash == "abc" && read.namespace == -3 && read.data == [7, 8] && read.dataByteCount == 2)
    }
}

private final class Events: Sendable {
    private let events = Mutex<[OxenMQClient.Event]>([])

    var all: [OxenMQClient.Event] { events.withLock { $0 } }
    func append(_ event: OxenMQClient.Event) { events.withLock { $0.append(event) } }
}
