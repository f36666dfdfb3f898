import ArgumentParser
import PushStore
import StatusProtocol
import Waku
import WakuCrypto

extension Admin.Outbox {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists what waits, oldest first. Contents stay sealed.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "How many.") var limit = 100

        func run() async throws {
            try await reportingFailures {
                guard limit > 0 else { throw CommandFailure(.usage, "--limit must be above 0") }
                let store = try admin.openStore(of: command)
                let rows = try store.read { try $0.outboxSummaries(limit: limit) }.map(Row.init)
                if admin.json { return try Output.json(rows) }
                Output.table(
                    ["ID", "KEY HASH", "INSTALLATION", "EXPIRES"],
                    rows.map { [String($0.id), String($0.keyHash.prefix(16)) + "…", Output.printable($0.installation), $0.expires] })
            }
        }

        private struct Row: Encodable {
            let id: Int64
            let keyHash: String
            let installation: String
            let expires: String

            init(_ summary: OutboxSummary) {
                id = summary.id
                keyHash = summary.key.keyHash.hex
                installation = summary.key.installationID.string
                expires = summary.expires.formatted
            }
        }
    }
}

extension Admin {
    struct Topics: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the content topics that concern the node: its own (with --identity), and one or two for each registrant.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "How many registrants.") var limit = 100

        func run() async throws {
            try await reportingFailures {
                guard limit > 0 else { throw CommandFailure(.usage, "--limit must be above 0") }
                let store = try admin.openStore(of: command)
                var rows: [Row] = []
                if let identity = admin.identityFile {
                    let overview = IdentityOverview(try IdentityFile.read(identity).publicKey)
                    rows.append(Row(contentTopic: overview.personalTopic, purpose: "personal", keyHash: overview.keyHash))
                    rows.append(Row(contentTopic: overview.partitionedTopic, purpose: "partitioned", keyHash: overview.keyHash))
                }
                for keyHash in try store.read({ try $0.registeredKeyHashes(limit: limit) }) {
                    let topics = QueryTopics(of: keyHash)
                    rows.append(Row(contentTopic: ContentTopic(topics.deployed).rawValue, purpose: "query", keyHash: keyHash.hex))
                    rows.append(
                        Row(contentTopic: ContentTopic(topics.published).rawValue, purpose: "query, published form", keyHash: keyHash.hex))
                }
                if admin.json { return try Output.json(rows) }
                Output.table(
                    ["CONTENT TOPIC", "PURPOSE", "KEY HASH"],
                    rows.map { [$0.contentTopic, $0.purpose, String($0.keyHash.prefix(16)) + "…"] })
            }
        }

        private struct Row: Encodable {
            let contentTopic: String
            let purpose: String
            let keyHash: String
        }
    }
}
