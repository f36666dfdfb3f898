import ArgumentParser
import NodeAPI
import NodeAssembly
import StatusProtocol
import StatusServer
import Storage
import Waku
import WakuCrypto

extension Admin {
    struct Topics: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the content topics that the node listens on: its own (with --identity), and one or two for each registrant.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Maximum number of registrants.") var limit = ResultLimit()

        func execute() async throws {
            let store = try await openStore()
            var rows: [Row] = []
            if let identity = admin.identityFile {
                let overview = IdentityOverview(try IdentityFile.read(identity).publicKey)
                rows.append(Row(contentTopic: overview.personalTopic, purpose: "personal", keyHash: overview.keyHash))
                rows.append(Row(contentTopic: overview.partitionedTopic, purpose: "partitioned", keyHash: overview.keyHash))
            }
            for keyHash in try store.read(StatusServer.Registrations.registeredKeyHashes(limit: limit.count)) {
                let topics = QueryTopics(of: keyHash)
                rows.append(Row(contentTopic: ContentTopic(topics.deployed).rawValue, purpose: "query", keyHash: keyHash.hex))
                rows.append(
                    Row(contentTopic: ContentTopic(topics.published).rawValue, purpose: "query, published form", keyHash: keyHash.hex))
            }
            for added in NodeAssembly.added {
                let topics = try added.learnedTopics.map { try store.read($0()) } ?? []
                rows += topics.prefix(limit.count).map { Row(contentTopic: $0.rawValue, purpose: added.name, keyHash: nil) }
            }
            if admin.json { return try Output.json(rows) }
            Output.table(
                ["CONTENT TOPIC", "PURPOSE", "KEY HASH"],
                rows.map { [$0.contentTopic, $0.purpose, $0.keyHash.map { String($0.prefix(16)) + "…" } ?? "–"] })
        }

        private struct Row: Encodable {
            let contentTopic: String
            let purpose: String
            /// nil for a topic of a protocol of another package, which several owners may have chosen.
            let keyHash: String?
        }
    }
}
