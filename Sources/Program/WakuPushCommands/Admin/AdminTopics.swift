import ArgumentParser
import NodeAPI
import NodeAssembly
import PushNode
import StatusProtocol
import StatusServer
import Storage
import Waku
import WakuCrypto

extension Admin {
    struct Topics: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the content topics that the node listens on: its own (with --identity), and two for each registrant.",
            discussion: """
                With several --identity options, the topics of each are listed. That of version 0.1 is listed if the daemon that runs on the data \
                folder serves it, or without a daemon if --status-v0.1 is set in the environment or the configuration file. Of protocols that \
                were added to the program, only the topics of registrations are listed.
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Maximum number of registrants.") var limit = ResultLimit()

        func execute() async throws {
            let store = try await openStore()
            var rows: [Row] = []
            let identities = admin.identity.isEmpty ? Environment.list("identity") : admin.identity
            let hasV01 = identities.isEmpty ? false : try await servesV01()
            for identity in identities {
                let key = try IdentityFile.read(identity).publicKey
                let overview = IdentityOverview(key)
                rows.append(Row(contentTopic: overview.personalTopic, purpose: "personal", keyHash: overview.keyHash))
                rows.append(Row(contentTopic: overview.partitionedTopic, purpose: "partitioned", keyHash: overview.keyHash))
                guard hasV01 else { continue }
                let topic = ContentTopic(TopicTag(of: V01.serverTopic(key))).rawValue
                rows.append(Row(contentTopic: topic, purpose: "version 0.1", keyHash: overview.keyHash))
            }
            for keyHash in try store.read(StatusServer.Registrations.registeredKeyHashes(limit: limit.oneMore)).limited(to: limit) {
                let topics = QueryTopics(of: keyHash)
                rows.append(Row(contentTopic: ContentTopic(topics.deployed).rawValue, purpose: "query", keyHash: keyHash.hex))
                rows.append(
                    Row(contentTopic: ContentTopic(topics.published).rawValue, purpose: "query, published form", keyHash: keyHash.hex))
            }
            for added in NodeAssembly.added {
                let topics = try added.learnedTopics.map { try store.read($0()) } ?? []
                rows += topics.limited(to: limit).map { Row(contentTopic: $0.rawValue, purpose: added.name, keyHash: nil) }
            }
            if admin.json { return try Output.json(rows) }
            Output.table(
                ["CONTENT TOPIC", "PURPOSE", "KEY HASH"],
                rows.map { [$0.contentTopic, $0.purpose, $0.keyHash.map { String($0.prefix(16)) + "…" } ?? "–"] })
        }

        /// Whether the daemon serves version 0.1; without one, as the environment and the configuration file say.
        private func servesV01() async throws -> Bool {
            let setup = try await AdminClient.setup(of: folder)
            return setup?.protocols.map { $0[StatusV01Options.protocolName] != nil } ?? Environment.flag("status-v0.1")
        }

        private struct Row: Encodable {
            let contentTopic: String
            let purpose: String
            /// nil for a topic of a protocol of another package, which several owners may have chosen.
            let keyHash: String?
        }
    }
}
