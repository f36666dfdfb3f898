import PushNode
import ArgumentParser
import Cluster
import Delivery
import NodeAPI
import NodeAssembly
import Storage
import StorePostgreSQL
import Core
import WakuCrypto

extension Admin.Outbox {
    struct List: AdminCommand {
        static let configuration = CommandConfiguration(abstract: "Lists waiting notifications, oldest first. Contents are not decrypted.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Maximum number of results.") var limit = ResultLimit()

        func execute() async throws {
            let store = try await openStore()
            let rows = try rows(store)
            if admin.json { return try Output.json(rows) }
            Output.table(
                ["ID", "PROTOCOL", "KEY HASH", "INSTALLATION", "EXPIRES"],
                rows.map { row in
                    let keyHash = row.keyHash.isEmpty ? "" : row.keyHash.prefix(16) + "…"
                    return [String(row.id), row.protocol, keyHash, row.installation, row.expires]
                })
        }

        private func rows(_ store: any Store) throws -> [Row] {
            let waiting = try store.read(DeliveryStorage.waitingDeliveries(limit: limit.oneMore)).limited(to: limit)
            let owners = try NodeAssembly.owners(of: waiting.map(\.device), in: store)
            return waiting.map { waiting in
                let owner = owners[waiting.device]
                return Row(
                    id: waiting.id, protocol: NodeAssembly.protocolName(of: waiting.device.protocol),
                    keyHash: owner.map { hexString($0.keyHash) } ?? "", installation: owner?.installation ?? "",
                    expires: waiting.expires.formatted)
            }
        }

        private struct Row: Encodable {
            let id: Int64
            let `protocol`: String
            /// Empty for devices that are no longer registered, and for protocols that do not disclose it.
            let keyHash: String
            let installation: String
            let expires: String
        }
    }
}

/// Selects notifications of the outbox.
struct OutboxSelection: ParsableArguments {
    @Argument(help: "Ids, as printed by outbox list.") var ids: [Int64] = []
    @Flag(help: "All waiting notifications.") var all = false

    private static let namedCount = 10

    /// Reports ids that were not found: those of notifications that have ended, are being posted, or wait at other nodes.
    ///
    /// - Parameter elsewhere: how many of the selected notifications wait at other nodes of the cluster, by their names.
    /// - Throws: ``CommandFailure`` if ids are selected, and no notification was found.
    func report(_ found: AdminAPI.Count, elsewhere: [String: Int] = [:]) throws(CommandFailure) {
        let elsewhereCount = elsewhere.values.reduce(0, +)
        if elsewhereCount > 0 {
            let places = elsewhere.sorted { $0.key < $1.key }.map { "\($0.value) at \($0.key)" }.joined(separator: ", ")
            let message = "notifications wait at other nodes of the cluster (\(places)): run the command there"
            guard all || found.count > 0 else { throw CommandFailure(.data, message) }
            CommandFailure.report("warning: \(message)")
        }
        let count = Set(ids).count - found.count - elsewhereCount
        guard !all, count > 0 else { return }
        let reason = "not waiting: see waku-push admin outbox list"
        guard found.count > 0 else { throw CommandFailure(.data, "\(count == 1 ? "this id is" : "these ids are") \(reason)") }
        let names = Self.named(found.missing ?? [])
        CommandFailure.report("warning: \(count) of \(Set(ids).count) ids are \(reason)\(names.isEmpty ? "" : " (\(names))")")
    }

    /// `17, 18 and 3 more`
    static func named(_ ids: [Int64]) -> String {
        guard !ids.isEmpty else { return "" }
        let names = ids.prefix(namedCount).map(String.init).joined(separator: ", ")
        return ids.count > namedCount ? "\(names) and \(ids.count - namedCount) more" : names
    }

    func selected() throws(CommandFailure) -> AdminAPI.Selection {
        guard all == ids.isEmpty else { throw CommandFailure(.usage, "give ids, as printed by outbox list, or --all") }
        return AdminAPI.Selection(ids: all ? nil : ids)
    }
}

extension AdminCommand {
    /// How many of the selected notifications other nodes of the daemon's cluster have, by their names: a node retries and drops its own.
    fileprivate func waitingElsewhere(_ selection: AdminAPI.Selection, except found: AdminAPI.Count) async throws -> [String: Int] {
        let ids = found.missing ?? selection.ids
        let client = try client()
        guard ids?.isEmpty != true, let nodes = try await client.status()?.cluster?.nodes, nodes.count > 1 else { return [:] }
        guard case .postgreSQL(let address) = try await location() else { return [:] }
        let database = ClusterDatabase(address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox)
        defer { database.close() }
        let own = nodes.first(where: \.isSelf)?.name
        // This user may have no access to the database, which the command itself does not need.
        return (try? database.waitingCounts(among: ids))?.filter { $0.key != own } ?? [:]
    }
}

extension Admin.Outbox {
    struct Retry: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retries waiting notifications at once, without waiting for the back-off.",
            discussion: "EXAMPLE\n  waku-push admin outbox retry --all --data data")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var selection: OutboxSelection

        func execute() async throws {
            let selected = try selection.selected()
            let count: AdminAPI.Count = try await client().post("/outbox/retry", selected)
            if admin.json {
                try Output.json(AdminAPI.Count(count: count.count))
            } else {
                Output.line("\(count.count) notifications are retried now.")
            }
            try selection.report(count, elsewhere: try await waitingElsewhere(selected, except: count))
        }
    }

    struct Drop: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Drops waiting notifications. Those that are being posted to gorush may still be delivered.",
            discussion: "EXAMPLE\n  waku-push admin outbox drop 17 18 --data data --yes")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var selection: OutboxSelection
        @Flag(help: "Drop them. Without it the command only prints how many there are.") var yes = false

        func execute() async throws {
            let selected = try selection.selected()
            let found = yes ? try await drop(selected) : AdminAPI.Count(try await waiting(selected), of: selected)
            if admin.json {
                try Output.json(Report(count: found.count, trial: yes ? nil : true))
            } else {
                let count = found.count
                Output.line(yes ? "\(count) notifications dropped." : "\(count) notifications would be dropped: repeat with --yes.")
            }
            try selection.report(found, elsewhere: yes ? try await waitingElsewhere(selected, except: found) : [:])
        }

        private struct Report: Encodable {
            let count: Int
            /// Nothing was dropped; nil otherwise.
            let trial: Bool?
        }

        private func waiting(_ selection: AdminAPI.Selection) async throws -> [Int64] {
            let waiting = try await openStore().read(DeliveryStorage.waitingDeliveries()).map(\.id)
            return selection.ids.map { $0.filter(Set(waiting).contains) } ?? waiting
        }

        /// A running daemon holds waiting notifications in memory, so it has to drop them. Without a daemon the folder is locked meanwhile.
        private func drop(_ selection: AdminAPI.Selection) async throws -> AdminAPI.Count {
            let client = try client()
            if try await client.status() != nil {
                return try await client.post("/outbox/drop", selection, timeout: AdminClient.workLimit)
            }
            let lock = try DataFolder(locking: folder)
            defer { lock.unlock() }
            try await requireNoNodeElsewhere()
            let ids = try await waiting(selection)
            let store = try await openStore(isChanging: true)
            try await audited(.outboxDrop) {
                try await store.commit(DeliveryStorage.drop(ids, of: NodeAssembly.deliverySources(of: store), at: .now()))
            }
            try store.close()
            return AdminAPI.Count(ids, of: selection)
        }

        /// - Throws: ``CommandFailure`` while nodes of other data folders use the PostgreSQL database: they hold waiting notifications, and would post
        ///   what is dropped.
        private func requireNoNodeElsewhere() async throws {
            guard case .postgreSQL(let address) = try await location() else { return }
            do throws(StoreError) {
                try CommitTest.lock(at: address, isShared: false)
            } catch {
                guard error.code == .locked else { throw error }
                throw CommandFailure(
                    .unavailable,
                    "nodes run on PostgreSQL (\(address)), and each drops its own notifications: run the command with their data folders")
            }
        }
    }
}
