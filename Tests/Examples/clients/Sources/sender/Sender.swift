import Foundation
import LibP2P
import Logging
import PushClient
import WakuP2P

/// Notifies a friend's most recently active devices, up to three, and prints what became of each.
@main struct Sender {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5 else {
            print("usage: sender NODE SERVER FRIEND TEXT")
            exit(64)
        }
        let (node, server) = (try Multiaddr(arguments[1]), PushServer(key: try PublicKey(hex: arguments[2])))
        let friend = try PublicKey(hex: arguments[3])

        // Nothing is kept: neither the identity nor what is learnt about the friend's devices.
        let relay = P2PRelay(configuration: .init(key: .generate(), peers: [node]), logger: Logger(label: "sender"))
        let client = StatusPushClient(identity: .generate(), relay: relay)
        let running = Task { await client.run() }
        // The server is queried, so the friend's advertisement is not needed.
        client.setQueryServers([server])
        client.setSending(true)

        // The application encrypts the text for the friend; here it is sent as it is.
        let message = OutgoingNotification(
            messageID: SHA256.hash(Array(UUID().uuidString.utf8)), chatID: "a chat of two", kind: .message,
            content: Array(arguments[4].utf8), recipients: [.init(friend)])
        let outcomes = try await client.notify(message)
        for outcome in outcomes { print(outcome) }

        running.cancel()
        await running.value
        await relay.close()
        guard outcomes.contains(where: { if case .notified = $0.result { true } else { false } }) else { exit(1) }
    }
}
