import Foundation
import LibP2P
import Logging
import PushClient
import PushClientSQLite
import WakuP2P

/// A share extension. It has a few seconds; the app finishes the rest, since both open the store in the folder that they share. It must
/// start within ten minutes: older messages are given up.
///
/// On a phone, FOLDER is that of the app group, and the identity comes from the keychain that the two share.
@main struct Share {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 7, let seconds = Int(arguments[6]) else {
            print("usage: share NODE SERVER FOLDER FRIEND MESSAGE-ID SECONDS")
            exit(64)
        }
        let (node, server) = (try Multiaddr(arguments[1]), PushServer(key: try PublicKey(hex: arguments[2])))
        let folder = URL(filePath: arguments[3])
        let identity = try PrivateKey(bytes: Data(contentsOf: folder.appending(path: "identity")))

        let relay = P2PRelay(configuration: .init(key: .generate(), peers: [node]), logger: Logger(label: "share"))
        // Only one client can use a store at a time, and the app may be using its own now: shared messages have a store of their own.
        let store = try SQLiteClientStore(folder: folder.appending(path: "shared").path(percentEncoded: false), identity: identity)
        let client = try await StatusPushClient.open(identity: identity, relays: [relay], store: store)
        client.setQueryServers([server])
        client.setSending(true)
        let message = OutgoingNotification(
            messageID: Array(arguments[5].utf8), chatID: "a chat of two", kind: .message,
            recipients: [.init(try PublicKey(hex: arguments[4]))])

        let running = Task { await client.run() }
        let sending = Task { try await client.notify(message) }
        let deadline = Task {
            try await Task.sleep(for: .seconds(seconds))
            running.cancel()
        }
        // Not sending.cancel(): that would give the message up, and this leaves it in the store.
        Task {
            for outcome in try await sending.value { print(outcome) }
            deadline.cancel()
            running.cancel()
        }
        await running.value
        await relay.close()
    }
}
