import Foundation
import LibP2P
import Logging
import PushClient
import WakuP2P

/// Prints the messages on a content topic.
@main struct Listener {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else {
            print("usage: listener NODE TOPIC")
            exit(64)
        }
        let (node, topic) = (try Multiaddr(arguments[1]), ContentTopic(rawValue: arguments[2]))
        let logger = Logger(label: "listener")
        let relay = P2PRelay(configuration: .init(key: .generate(), peers: [node]), logger: logger)
        // Messages may arrive more than once: by gossip, and from a store.
        var seen: Set<MessageHash> = []
        for await received in relay.messages() where received.message.contentTopic == topic && seen.insert(received.hash).inserted {
            logger.info("\(received.message.payload.count) bytes, \(received.hash)")
        }
    }
}
