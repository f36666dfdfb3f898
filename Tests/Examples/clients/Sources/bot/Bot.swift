import Foundation
import LibP2P
import Logging
import PushClient
import PushClientSQLite
import WakuP2P

/// Stays registered with a push server, and greets each friend once there is a device of theirs to notify.
@main struct Bot {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 4 else {
            print("usage: bot NODE SERVER FOLDER FRIEND …")
            exit(64)
        }
        let (node, server) = (try Multiaddr(arguments[1]), PushServer(key: try PublicKey(hex: arguments[2])))
        let friends = try arguments[4...].map { try PublicKey(hex: $0) }
        let logger = Logger(label: "bot")

        // Takes part in the Waku network, with a new key at each start, and dials the node.
        let relay = P2PRelay(configuration: .init(key: .generate(), peers: [node]), logger: logger)
        let identity = try identity(in: arguments[3])
        let store = try SQLiteClientStore(folder: arguments[3], identity: identity)
        let client = try await StatusPushClient.open(identity: identity, relays: [relay], store: store)
        client.setQueryServers([server])
        client.setSending(true)
        logger.info("the bot is \(client.publicKey)")

        let events = client.events
        await withDiscardingTaskGroup { tasks in
            let greet: @Sendable (PublicKey) async -> Void = { friend in
                // The same message id notifies a device once in 24 hours, also after a restart. How it ended is an event.
                let id = Array("greeting of \(friend)".utf8)
                _ = try? await client.notify(.init(messageID: id, chatID: "greetings", kind: .message, recipients: [.init(friend)]))
            }
            tasks.addTask { await client.run() }
            tasks.addTask {
                let profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("the bot's device token"))
                _ = try? await client.register(profile, with: [server], enablesReceiving: true)
            }
            // Finds their devices, and listens to their advertisements from now on.
            for friend in friends { tasks.addTask { await greet(friend) } }
            for await event in events {
                logger.info("\(event)")
                if case .discovered(let friend, deviceCount: 1...) = event { tasks.addTask { await greet(friend) } }
            }
        }
    }

    /// The bot's key, kept in its folder. A file that can't be read is not replaced by another identity.
    private static func identity(in folder: String) throws -> PrivateKey {
        let file = URL(filePath: folder).appending(path: "identity")
        if FileManager.default.fileExists(atPath: file.path) { return try PrivateKey(bytes: Data(contentsOf: file)) }
        umask(0o077)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let key = PrivateKey.generate()
        try key.withBytes { Data($0) }.write(to: file, options: .withoutOverwriting)
        return key
    }
}
