import CurlClient
import Foundation
import NodeAssembly
import NodeMetrics
import PushNode
import SessionProtocol
import SessionStandIns
import WakuCrypto
import WakuPushCommands

/// The steps of the demo of Session's push server. Prints and checks each.
struct SessionDemoScript: DemoSteps {
    let server: Server
    let servers: StorageServerStandIn
    let gorush: GorushStandIn
    /// X25519, 32 bytes.
    let onionKey: [UInt8]
    let sodium: Sodium
    private let http = CurlClient()
    /// Generous, for machines under load.
    private static let timeout = Duration.seconds(60)

    func run() async throws {
        try await settle("the node listens") { server.sessionPort != nil }
        let url = "http://127.0.0.1:\(server.sessionPort ?? 0)"
        Output.line("Started three storage servers, a fake gorush, and a node that is Session's push server at \(url):")
        Output.line("  key for onion requests \(hexString(onionKey))")
        let carol = try clientInTheFirstSwarm()
        let device = SessionClient.Device(token: "a-token-from-google")

        step("Carol's phone subscribes by an onion request, encrypted for the node.")
        let subscribed = try await ask("/subscribe", body: carol.subscribeBody(for: device, at: now), encryption: .xChaCha20, at: url)
        try check(subscribed.contains(#""added":true"#), "the node answers \(subscribed)")
        try await wait("both storage servers of Carol's swarm monitor her account") { servers.figures.accepted == 2 }

        step("A message for Carol arrives in her swarm. Both of its storage servers report it.")
        try check(report("first", for: carol.account, data: Array("sealed for Carol".utf8)) == 2, "two reports")
        try await wait("gorush received one post:") { !gorush.posts.isEmpty }
        show(gorush.posts[0])
        let notification = try opened(gorush.posts[0], device)
        try check(
            notification.account == carol.account && notification.data == Array("sealed for Carol".utf8),
            "Carol's phone opens it with its key, and finds the message inside")

        step("Another message is too large for a push notification.")
        _ = report("second", for: carol.account, data: [UInt8](repeating: 7, count: 5000))
        try await wait("gorush received one post more, and none for the second report of the first message") { gorush.posts.count == 2 }
        let second = try opened(gorush.posts[1], device)
        try check(second.isDataLeftOut && second.dataByteCount == 5000, "it tells the phone to fetch 5,000 bytes")

        step("Carol's phone unsubscribes, by an onion request of the other kind.")
        let removed = try await ask("/unsubscribe", body: carol.unsubscribeBody(for: device, at: now), encryption: .aesGCM, at: url)
        try check(removed.contains(#""removed":true"#), "the node answers \(removed)")
        _ = report("third", for: carol.account, data: [1])

        step("Dave subscribes, and is notified.")
        let dave = try clientInTheFirstSwarm()
        _ = try await ask("/subscribe", body: dave.subscribeBody(for: device, at: now), encryption: .aesGCM, at: url)
        try await wait("his account is monitored") { servers.isMonitored(dave.account) }
        _ = report("fourth", for: dave.account, data: [2])
        try await wait("gorush received a post for Dave, and none for Carol's last message") { gorush.posts.count == 3 }
        try check(try opened(gorush.posts[2], device).account == dave.account, "Dave's phone opens it")
        // The node stops after this: without gorush's answer, the notification would be posted again after the next start.
        try await settle("gorush's last answer") { server.node.counters.count(.notificationAccepted) == 3 }
    }

    private var now: Int64 { Int64(Date().timeIntervalSince1970) }

    private func clientInTheFirstSwarm() throws -> SessionClient {
        let descriptions = servers.descriptions
        let ring = SwarmRing(descriptions.map(\.swarm))
        // Half of all accounts match.
        for _ in 0..<1000 {
            if let client = SessionClient(sodium: sodium), ring.swarm(at: client.account.swarmPosition) == descriptions[0].swarm {
                return client
            }
        }
        throw failure("an account in the first swarm")
    }

    private func ask(_ endpoint: String, body: [UInt8], encryption: OnionEncryption, at url: String) async throws -> String {
        let onion = OnionClient(serverKey: onionKey, sodium: sodium)
        let request = try onion.request("POST", endpoint, body: body, encryption: encryption)
        let response = try await http.send(
            HTTPRequest(method: "POST", url: url + "/oxen/v4/lsrpc", body: request.body, timeout: Self.timeout))
        guard response.status == 200, let answer = try? onion.open(response.body, to: request), answer.code == 200 else {
            throw failure("the node answers an onion request with 200")
        }
        return String(decoding: answer.body, as: UTF8.self)
    }

    /// - Returns: The number of connections on which the message is reported.
    private func report(_ name: String, for account: AccountID, data: [UInt8]) -> Int {
        let milliseconds = Int64(Date().timeIntervalSince1970 * 1000)
        let hash = Data(SHA256.hash(Array(name.utf8), account.bytes)).base64EncodedString()
        return servers.report(
            NotifyMessage(
                account: account, hash: hash, namespace: 0, storedAt: milliseconds, expiresAt: milliseconds + 14 * 86_400_000, data: data))
    }

    private func opened(_ post: String, _ device: SessionClient.Device) throws -> ReceivedNotification {
        struct Body: Decodable {
            struct Notification: Decodable { let data: [String: String] }
            let notifications: [Notification]
        }
        let body = try JSONDecoder().decode(Body.self, from: Data(post.utf8))
        guard body.notifications.count == 1, let payload = body.notifications.first?.data["enc_payload"] else {
            throw failure("one notification with enc_payload")
        }
        return try ReceivedNotification(opening: payload, key: device.encryptionKey, sodium: sodium)
    }

    private func wait(_ expectation: String, _ condition: () -> Bool) async throws {
        try await settle(expectation, condition)
        Output.line("  ok: \(expectation)")
    }

    private func settle(_ expectation: String, _ condition: () -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.timeout
        while !condition() {
            guard ContinuousClock.now < deadline else { throw failure(expectation) }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
